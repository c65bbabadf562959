//! How deep a JSON text is nested, found without building anything, so that a hostile body is refused before a parser
//! recurses into it. It trusts nothing about the text: what is not JSON is the parser's to refuse.

/// Byte offset of the bracket that opens level `limit + 1`, if there is one.
pub(super) fn too_deep_at(text: &str, limit: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' if depth == limit => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_brackets_outside_strings() {
        for (name, text, expected) in [
            ("flat", r#"{"a":1}"#, None),
            ("at the limit", r#"{"a":[1]}"#, None),
            ("one deeper", r#"{"a":[{}]}"#, Some(6)),
            ("closed and opened again", "[[],[],[]]", None),
            ("in a string", r#"["[[[["]"#, None),
            ("after an escaped quote", r#"["\"[[[["]"#, None),
            ("after an escaped backslash", r#"["\\",[[]]]"#, Some(7)),
            ("unbalanced", "]]]][[[", Some(6)),
        ] {
            assert_eq!(too_deep_at(text, 2), expected, "{name}");
        }
    }
}
