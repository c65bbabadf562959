//! The strings of a state: which are read, and how they become one text (wire.md 9.3).

use std::borrow::Cow;

use decision::json::Value;

use super::TEXT_CHARS;

/// Levels below the state whose strings are read.
const DEPTH: usize = 6;

/// Strings of the state, depth first, object values in order; keys do not count.
pub(super) fn leaves(state: &Value) -> Vec<Cow<'_, str>> {
    fn walk<'a>(value: &'a Value, depth: usize, out: &mut Vec<Cow<'a, str>>) {
        if depth > DEPTH {
            return;
        }
        match value {
            Value::String(text) => out.push(
                text.as_str()
                    .map_or_else(|| Cow::Owned(text.to_string_lossy()), Cow::Borrowed),
            ),
            Value::List(items) => items.iter().for_each(|item| walk(item, depth + 1, out)),
            Value::Object(object) => object.values().for_each(|item| walk(item, depth + 1, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(state, 0, &mut out);
    out
}

/// The leaves in one text of at most 4000 code points, joined by spaces; a leaf costs one more than its length.
pub(super) fn joined(leaves: &[Cow<'_, str>]) -> String {
    let mut left = TEXT_CHARS;
    let mut parts: Vec<&str> = Vec::new();
    for leaf in leaves {
        if left == 0 {
            break;
        }
        let part = prefix(leaf, left);
        parts.push(part);
        if part.len() < leaf.len() {
            break;
        }
        left = left.saturating_sub(part.chars().count() + 1);
    }
    let text = parts.join(" ");
    prefix(&text, TEXT_CHARS).to_owned()
}

/// The first `limit` code points.
pub(super) fn prefix(text: &str, limit: usize) -> &str {
    text.char_indices()
        .nth(limit)
        .map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_the_strings_down_to_depth_six() {
        let state = decision::json::read(
            r#"{"a":["x",{"k":"y"}],"n":1,"d":[[[[["deep"]]]]],"e":[[[[[["deeper"]]]]]]}"#
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(leaves(&state), ["x", "y", "deep"]);
    }

    #[test]
    fn the_text_ends_at_four_thousand() {
        let leaves = [
            Cow::Owned("é".repeat(3990)),
            Cow::Borrowed("0123456789"),
            Cow::Borrowed("never"),
        ];
        let text = joined(&leaves);
        assert_eq!(text.chars().count(), 4000);
        assert!(text.ends_with(" 012345678"));
    }
}
