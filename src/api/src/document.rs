//! Reads documents: YAML files as `kubectl` reads them (untyped first, so that `0.5` is a number and `"0.5"` a string
//! here and on an API server alike), JSON bodies, and typed values out of either with the path of what was refused.

use routing::request::FieldError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;
const MAX_ALIASES: usize = 100;

/// A file that is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is larger than [`MAX_BYTES`].
    #[error("has {got} bytes, limit {MAX_BYTES}")]
    TooLarge {
        /// Its size.
        got: usize,
    },
    /// It does not parse.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// What is wrong there.
        message: String,
    },
    /// It parses and a field is wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Reads one YAML document into a JSON tree: YAML 1.2 booleans only, no duplicate keys, bounded depth and aliases.
///
/// # Errors
/// [`DocumentError::TooLarge`] or [`DocumentError::Syntax`] with the place.
pub fn read_yaml(text: &str) -> Result<Value, DocumentError> {
    if text.len() > MAX_BYTES {
        return Err(DocumentError::TooLarge { got: text.len() });
    }
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::Error;
    options.non_finite_float_policy = serde_saphyr::NonFiniteFloatPolicy::Reject;
    let mut budget = options.budget.take().unwrap_or_default();
    budget.max_depth = MAX_DEPTH;
    budget.max_aliases = MAX_ALIASES;
    options.budget = Some(budget);
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location();
        DocumentError::Syntax {
            line: place.map_or(1, |place| place.line()),
            column: place.map_or(1, |place| place.column()),
            message: error.to_string(),
        }
    })
}

/// A typed value out of a tree.
///
/// # Errors
/// The path of the first field that is unknown, missing or of the wrong type.
pub fn typed<T: DeserializeOwned>(tree: Value) -> Result<T, FieldError> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(tree, &mut track);
    T::deserialize(deserializer).map_err(|error| {
        let path = track.path().to_string();
        FieldError::new(
            if path == "." { String::new() } else { path },
            error.to_string(),
        )
    })
}

/// Compact JSON with sorted keys at every depth: equal trees have equal bytes.
#[must_use]
pub fn canonical(tree: &Value) -> String {
    let mut out = String::new();
    write_canonical(tree, &mut out);
    out
}

fn write_canonical(tree: &Value, out: &mut String) {
    match tree {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// `sha256:` and the hex digest of the canonical form.
#[must_use]
pub fn digest(tree: &Value) -> String {
    let hash = Sha256::digest(canonical(tree).as_bytes());
    hash.iter().fold(String::from("sha256:"), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_yaml_as_an_api_server_would() {
        let tree = read_yaml("a: yes\nb: 0.5\nc: \"0.5\"\nd: true\ne: [1, 2]\n").unwrap();
        assert_eq!(
            tree,
            serde_json::json!({"a": "yes", "b": 0.5, "c": "0.5", "d": true, "e": [1, 2]})
        );
    }

    #[test]
    fn refuses_what_is_no_document_with_its_place() {
        for (name, text) in [
            ("duplicate key", "a: 1\nb: 2\na: 3\n"),
            ("open bracket", "a: [1, 2\n"),
            ("infinite", "a: .inf\n"),
            ("two documents", "a: 1\n---\na: 2\n"),
        ] {
            assert!(
                matches!(read_yaml(text), Err(DocumentError::Syntax { .. })),
                "{name}: {:?}",
                read_yaml(text)
            );
        }
        let Err(DocumentError::Syntax { line, .. }) = read_yaml("a: 1\nb: 2\na: 3\n") else {
            panic!("accepted")
        };
        assert_eq!(line, 3);
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(read_yaml(&deep).is_err());
        let large = format!("a: \"{}\"", "x".repeat(MAX_BYTES));
        assert!(matches!(
            read_yaml(&large),
            Err(DocumentError::TooLarge { .. })
        ));
    }

    #[test]
    fn canonical_form_does_not_depend_on_order() {
        let one = serde_json::json!({"b": [1, {"y": null, "x": "é\n"}], "a": true});
        assert_eq!(
            canonical(&one),
            r#"{"a":true,"b":[1,{"x":"é\n","y":null}]}"#
        );
    }
}
