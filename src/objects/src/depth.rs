//! How deep an object may be nested. What walks an object recurses, so depth is stack; and clients read an object inside of
//! a list or an event with parsers that stop at 128 levels: one that they cannot read would hide all others from them.

use serde_json::Value;

/// Most levels of an object as a client sends it.
pub(crate) const MAX_DEPTH: usize = 100;

/// Whether a value has at most so many levels.
pub(crate) fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(fields) => {
            levels > 0 && fields.values().all(|field| is_within(field, levels - 1))
        }
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_within(item, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_objects_and_lists() {
        let value = json!({"a": [{"b": 1}], "c": "x"});
        assert!(is_within(&value, 3));
        assert!(!is_within(&value, 2));
        assert!(is_within(&json!(1), 0));
    }
}
