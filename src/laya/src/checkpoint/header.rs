//! The header of a safetensors file, read with every bound checked before anything is believed: length, number of
//! tensors, shapes in checked arithmetic, data that fills the file without gap or overlap (wire.md 12.3).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};

/// Largest header that is looked at.
pub(crate) const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Most tensors of a file.
pub(crate) const MAX_TENSORS: usize = 4096;

/// Number formats that weights may be stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Dtype {
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    BF16,
    /// IEEE single precision.
    F32,
}

impl Dtype {
    /// Bytes of one number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
        }
    }
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// How its numbers are stored.
    pub(crate) dtype: Dtype,
    /// Its dimensions, outermost first.
    pub(crate) shape: Vec<usize>,
    /// Where its bytes lie in the file.
    pub(crate) range: Range<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// Tensors in the order of the header; a name that comes twice is an error.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    if entries.len() == MAX_TENSORS {
                        return Err(serde::de::Error::custom(format!(
                            "more than {MAX_TENSORS} tensors"
                        )));
                    }
                    let entry = map.next_value()?;
                    entries.push((name, entry));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Table)
    }
}

/// Reads the header of a file whose bytes are `file`.
///
/// # Errors
/// One sentence about what is wrong, with limit and value.
pub(crate) fn parse(file: &[u8]) -> Result<BTreeMap<String, Tensor>, String> {
    let length = file
        .first_chunk::<8>()
        .map(|bytes| u64::from_le_bytes(*bytes));
    let length = length.ok_or_else(|| format!("{} bytes are no safetensors file", file.len()))?;
    if length > MAX_HEADER_BYTES {
        return Err(format!(
            "header of {length} bytes, limit {MAX_HEADER_BYTES}"
        ));
    }
    // At most 16 MiB, so it fits a usize.
    let start = 8 + length as usize;
    let header = file
        .get(8..start)
        .ok_or_else(|| format!("header of {length} bytes in a file of {}", file.len()))?;
    let Entries(entries) = serde_json::from_slice(header).map_err(|e| format!("header: {e}"))?;

    let mut tensors = BTreeMap::new();
    for (name, entry) in entries {
        let tensor =
            locate(&entry, start, file.len()).map_err(|why| format!("tensor '{name}': {why}"))?;
        if tensors.insert(name.clone(), tensor).is_some() {
            return Err(format!("tensor '{name}' is listed twice"));
        }
    }
    let mut in_order: Vec<(&String, &Tensor)> = tensors.iter().collect();
    in_order.sort_by_key(|(_, t)| (t.range.start, t.range.end));
    let mut at = start;
    for (name, tensor) in in_order {
        if tensor.range.start != at {
            let what = if tensor.range.start < at {
                "overlaps the tensor before it"
            } else {
                "leaves a gap before it"
            };
            return Err(format!(
                "tensor '{name}' {what}: begins at {}, expected {}",
                tensor.range.start - start,
                at - start
            ));
        }
        at = tensor.range.end;
    }
    if at != file.len() {
        return Err(format!("tensors end at byte {at} of {}", file.len()));
    }
    Ok(tensors)
}

fn locate(entry: &Entry, start: usize, file_len: usize) -> Result<Tensor, String> {
    let (begin, end) = entry.data_offsets;
    let room = (file_len - start) as u64;
    if begin > end || end > room {
        return Err(format!(
            "offsets {begin}..{end} outside the {room} bytes of data"
        ));
    }
    let count = entry
        .shape
        .iter()
        .try_fold(1u64, |product, d| product.checked_mul(*d));
    let bytes = count.and_then(|count| count.checked_mul(entry.dtype.size() as u64));
    if bytes != Some(end - begin) {
        return Err(format!(
            "shape {:?} of {:?} does not fill {} bytes",
            entry.shape,
            entry.dtype,
            end - begin
        ));
    }
    // Everything is bounded by the length of the file now.
    let shape = entry.shape.iter().map(|d| *d as usize).collect();
    Ok(Tensor {
        dtype: entry.dtype,
        shape,
        range: start + begin as usize..start + end as usize,
    })
}

/// Writes a header for `tensors` (name, number format, shape), whose data follows in the same order.
pub(crate) fn write(tensors: &[(String, Dtype, Vec<usize>)]) -> Vec<u8> {
    let mut table = serde_json::Map::new();
    let mut at = 0;
    for (name, dtype, shape) in tensors {
        let end = at + shape.iter().product::<usize>() * dtype.size();
        let entry = serde_json::json!({"dtype": format!("{dtype:?}"), "shape": shape, "data_offsets": [at, end]});
        table.insert(name.clone(), entry);
        at = end;
    }
    let mut text = serde_json::Value::Object(table).to_string().into_bytes();
    // Padding with spaces aligns the data.
    text.resize(text.len().next_multiple_of(64) + 56, b' ');
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend(text);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + data, 0);
        file
    }

    #[test]
    fn reads_what_it_wrote() {
        let tensors = [
            ("a".to_owned(), Dtype::F16, vec![2, 3]),
            ("b".to_owned(), Dtype::F32, vec![4]),
        ];
        let mut bytes = write(&tensors);
        let start = bytes.len();
        assert_eq!(start % 64, 0);
        bytes.resize(start + 12 + 16, 0);
        let read = parse(&bytes).unwrap();
        assert_eq!(
            read["a"],
            Tensor {
                dtype: Dtype::F16,
                shape: vec![2, 3],
                range: start..start + 12
            }
        );
        assert_eq!(read["b"].range, start + 12..start + 28);
    }

    #[test]
    fn hostile_headers_are_refused_with_the_reason() {
        let one = |offsets: &str, shape: &str| {
            format!(r#"{{"a":{{"dtype":"F16","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        let rows: Vec<(&str, Vec<u8>, &str)> = vec![
            ("empty file", vec![], "0 bytes are no safetensors file"),
            (
                "length beyond the limit",
                u64::MAX.to_le_bytes().to_vec(),
                "limit 16777216",
            ),
            (
                "length beyond the file",
                100u64.to_le_bytes().to_vec(),
                "header of 100 bytes in a file of 8",
            ),
            ("no JSON", file("nonsense", 0), "header: expected"),
            ("no table", file("[]", 0), "a table of tensors"),
            ("deep nesting", file(&"[".repeat(5000), 0), "header:"),
            (
                "unknown type",
                file(
                    r#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#,
                    8,
                ),
                "unknown variant",
            ),
            (
                "unknown key",
                file(
                    r#"{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2],"x":1}}"#,
                    2,
                ),
                "unknown field",
            ),
            ("negative shape", file(&one("[0,2]", "[-1]"), 2), "header:"),
            ("end before begin", file(&one("[2,0]", "[1]"), 2), "outside"),
            (
                "end beyond the file",
                file(&one("[0,4]", "[2]"), 2),
                "outside the 2 bytes",
            ),
            (
                "shape too small",
                file(&one("[0,4]", "[1]"), 4),
                "does not fill 4 bytes",
            ),
            (
                "shape overflows",
                file(&one("[0,2]", "[9223372036854775807,4]"), 2),
                "does not fill",
            ),
            (
                "bytes left over",
                file(&one("[0,2]", "[1]"), 4),
                "tensors end at byte",
            ),
            ("gap at the start", file(&one("[2,4]", "[1]"), 4), "gap"),
            (
                "overlap",
                file(
                    r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}}"#,
                    6,
                ),
                "'b' overlaps",
            ),
            (
                "the same name twice",
                file(
                    r#"{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}}"#,
                    4,
                ),
                "'a' is listed twice",
            ),
        ];
        for (name, bytes, expected) in rows {
            let error = parse(&bytes).expect_err(name);
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn too_many_tensors_are_refused() {
        let entries: Vec<String> = (0..=MAX_TENSORS)
            .map(|i| format!(r#""t{i}":{{"dtype":"F16","shape":[0],"data_offsets":[0,0]}}"#))
            .collect();
        let error = parse(&file(&format!("{{{}}}", entries.join(",")), 0)).unwrap_err();
        assert!(error.contains("more than 4096 tensors"), "{error}");
    }
}
