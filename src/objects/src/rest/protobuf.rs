//! The one object that `kubectl` sends as protobuf and never as anything else: what `kubectl create namespace` makes. Read as
//! far as that goes (name, labels, annotations); whatever says more has to come as JSON.

use serde_json::{Map, Value, json};

/// What bodies of Kubernetes in protobuf begin with.
const MAGIC: &[u8] = b"k8s\0";

/// A namespace out of its envelope (`runtime.Unknown`); nothing where it is anything else, or has fields we do not read.
pub(super) fn namespace(body: &[u8]) -> Option<Value> {
    let mut raw: &[u8] = &[];
    let mut names = Map::new();
    each(body.strip_prefix(MAGIC)?, |number, field| {
        match (number, field) {
            (1, Field::Bytes(of)) => texts(of, &[(1, "apiVersion"), (2, "kind")], &mut names)?,
            (2, Field::Bytes(object)) => raw = object,
            // Encoding and type of the content: none.
            (3 | 4, field) if field.is_empty() => {}
            _ => return None,
        }
        Some(())
    })?;
    if names.get("apiVersion")? != "v1" || names.get("kind")? != "Namespace" {
        return None;
    }
    let mut metadata = Map::new();
    each(raw, |number, field| match (number, field) {
        (1, Field::Bytes(of)) => read_metadata(of, &mut metadata),
        // Spec and status are the server's.
        (2, field) if field.is_empty() => Some(()),
        (3, Field::Bytes(status)) => each(status, |_, field| field.is_empty().then_some(())),
        _ => None,
    })?;
    Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
}

fn read_metadata(message: &[u8], metadata: &mut Map<String, Value>) -> Option<()> {
    each(message, |number, field| {
        let name = match (number, field) {
            // Go writes what is empty, too.
            (_, field) if field.is_empty() => return Some(()),
            (1, _) => "name",
            (2, _) => "generateName",
            (3, _) => "namespace",
            (11, Field::Bytes(entry)) => return read_entry(entry, metadata, "labels"),
            (12, Field::Bytes(entry)) => return read_entry(entry, metadata, "annotations"),
            _ => return None,
        };
        metadata.insert(name.to_owned(), field.text()?.into());
        Some(())
    })
}

/// One entry of a map from texts to texts.
fn read_entry(message: &[u8], metadata: &mut Map<String, Value>, map: &str) -> Option<()> {
    let mut entry = Map::new();
    texts(message, &[(1, "key"), (2, "value")], &mut entry)?;
    let key = entry.get("key").and_then(Value::as_str).unwrap_or_default();
    let value = entry.get("value").cloned().unwrap_or_else(|| "".into());
    let entries = metadata.entry(map).or_insert_with(|| json!({}));
    entries[key] = value;
    Some(())
}

/// A message that has texts alone.
fn texts(message: &[u8], names: &[(u64, &str)], out: &mut Map<String, Value>) -> Option<()> {
    each(message, |number, field| {
        let (_, name) = names.iter().find(|(known, _)| *known == number)?;
        out.insert((*name).to_owned(), field.text()?.into());
        Some(())
    })
}

/// The value of a field.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    const fn is_empty(self) -> bool {
        match self {
            Self::Number(number) => number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Number(_) => None,
            Self::Bytes(bytes) => str::from_utf8(bytes).ok(),
        }
    }
}

/// Hands on each field with its number; ends where one is not wanted or the message is cut.
fn each<'a>(
    mut message: &'a [u8],
    mut take: impl FnMut(u64, Field<'a>) -> Option<()>,
) -> Option<()> {
    while !message.is_empty() {
        let tag = number(&mut message)?;
        let field = match tag & 7 {
            0 => Field::Number(number(&mut message)?),
            2 => {
                let length = usize::try_from(number(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        take(tag >> 3, field)?;
    }
    Some(())
}

/// A number of up to ten bytes, seven bits in each.
fn number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What kubectl 1.35 sends for `kubectl create namespace x`.
    const SENT: &[u8] = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x19\n\x11\n\x01x\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\0\x1a\x02\n\0\x1a\0\"\0";

    #[test]
    fn reads_what_kubectl_sends() {
        assert_eq!(
            namespace(SENT),
            Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        );
        let mut labelled =
            b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x0d\n\x0b\n\x01xZ\x06\n\x01a\x12\x01b"
                .to_vec();
        let read = namespace(&labelled).unwrap();
        assert_eq!(read["metadata"], json!({"name": "x", "labels": {"a": "b"}}));
        labelled.pop();
        assert_eq!(namespace(&labelled), None, "cut");
    }

    #[test]
    fn whatever_says_more_is_not_read() {
        for (what, body) in [
            ("nothing", b"".as_slice()),
            ("no magic", &SENT[4..]),
            (
                "of another kind",
                b"k8s\0\n\x09\n\x02v1\x12\x03Pod\x12\x05\n\x03\n\x01x",
            ),
            (
                "a finalizer",
                b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x09\n\x07\n\x01xr\x02ab",
            ),
            (
                "a length beyond the end",
                b"k8s\0\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            ),
            (
                "a number without end",
                b"k8s\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            ),
        ] {
            assert_eq!(namespace(body), None, "{what}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80), at in 0..SENT.len()) {
            let _ = namespace(&bytes);
            let mut changed = SENT.to_vec();
            for (place, byte) in changed[at..].iter_mut().zip(&bytes) {
                *place = *byte;
            }
            let _ = namespace(&changed);
        }
    }
}
