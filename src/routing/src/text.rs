//! Lengths and cuts of text in UTF-16 code units, the unit of clients and of older files (routing.md, conventions).

/// Length in UTF-16 code units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The longest prefix of at most `limit` units that splits no surrogate pair.
#[must_use]
pub fn prefix(text: &str, limit: usize) -> &str {
    let mut left = limit;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// The longest suffix of at most `limit` units that splits no surrogate pair.
#[must_use]
pub fn suffix(text: &str, limit: usize) -> &str {
    let mut left = limit;
    for (at, c) in text.char_indices().rev() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[at + c.len_utf8()..],
        }
    }
    text
}

/// `text` if it fits, else its first `limit` units and one `…` after them.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    let kept = prefix(text, limit);
    if kept.len() == text.len() {
        text.to_owned()
    } else {
        format!("{kept}…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_cuts_in_utf16_units() {
        assert_eq!(units("aé😀"), 4);
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc…");
        assert_eq!(cut("a😀b", 2), "a…", "a pair is never split");
        assert_eq!(suffix("a😀b", 2), "b");
        assert_eq!(suffix("ab", 5), "ab");
    }
}
