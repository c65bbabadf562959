//! States: their text for the model and their length for the limit (wire.md 4.2, 4.6).

use super::limits::MAX_STATE_CHARS;
use crate::json::{Value, json_text};

/// Text of a state, an instruction, a description or a level: a string as it is, else JSON text.
#[must_use]
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        other => json_text(other),
    }
}

/// Length of a state in code points, as refusals report it. Large structured states are judged by a quick lower bound
/// first, and then that bound is the length.
#[must_use]
pub fn state_chars(state: &Value) -> usize {
    match state {
        Value::String(text) => text.len_code_points(),
        other => quick_bound(other).unwrap_or_else(|| json_text(other).chars().count()),
    }
}

/// The summed lengths of strings among the values met first, once the sum is beyond the limit; none where 64 values do
/// not settle it or one of them is neither string nor container.
fn quick_bound(state: &Value) -> Option<usize> {
    const VALUES: usize = 64;
    let mut stack = vec![state];
    let mut chars = 0;
    for _ in 0..VALUES {
        match stack.pop()? {
            Value::String(text) => chars += text.len_code_points(),
            Value::Object(object) => stack.extend(object.values()),
            Value::List(items) => stack.extend(items),
            _ => return None,
        }
        if chars > MAX_STATE_CHARS {
            return Some(chars);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    #[test]
    fn measures_states() {
        let long = |count: usize| format!("\"{}\"", "é".repeat(count));
        let rows = [
            ("string", long(50_001), 50_001),
            ("string of astral characters", r#""😀😀""#.to_owned(), 2),
            ("number", "1.50".to_owned(), 3),
            ("true", "true".to_owned(), 4),
            ("empty list", "[]".to_owned(), 2),
            ("list", r#"["a","é"]"#.to_owned(), 10),
            ("object", r#"{"a":{"b":null}}"#.to_owned(), 18),
            (
                "sum of strings beyond the limit",
                format!("[{},{}]", long(30_000), long(30_000)),
                60_000,
            ),
            (
                "keys do not count in the bound",
                format!(r#"{{"key":{}}}"#, long(50_001)),
                50_001,
            ),
            (
                "the last values come first",
                format!("[{},{}]", long(60_000), long(50_002)),
                50_002,
            ),
            (
                "a number ends the bound",
                format!("[{},1]", long(50_001)),
                50_001 + 7,
            ),
            (
                "a string before the number is met",
                format!("[1,{}]", long(50_001)),
                50_001,
            ),
            (
                "exactly the limit is measured whole",
                format!("[{}]", long(50_000)),
                50_004,
            ),
            (
                "64 values do not settle it",
                format!("[{}{}]", long(50_001), ",\"\"".repeat(64)),
                50_001 + 4 + 64 * 4,
            ),
            (
                "63 values do",
                format!("[{}{}]", long(50_001), ",\"\"".repeat(62)),
                50_001,
            ),
        ];
        for (name, json, chars) in rows {
            assert_eq!(
                state_chars(&read(json.as_bytes()).expect("reads")),
                chars,
                "{name}"
            );
        }
    }
}
