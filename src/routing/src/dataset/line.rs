//! One line of JSON as text: where the members of its object stand, so that one of them can be put in, replaced or taken
//! out while every other byte stays as somebody else wrote it. It works on lines that were read as JSON before.

use std::ops::Range;

/// Where one member of an object stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    /// The key with its quotes.
    key: Range<usize>,
    /// The value without white space around it.
    value: Range<usize>,
}

/// The members of the object that `line` is, in order. Empty when it is none.
fn members(line: &str) -> Vec<Span> {
    let bytes = line.as_bytes();
    let mut spans = Vec::new();
    let mut at = skip_space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return spans;
    }
    at += 1;
    loop {
        at = skip_space(bytes, at);
        if bytes.get(at) != Some(&b'"') {
            return spans;
        }
        let key = at..string_end(bytes, at);
        at = skip_space(bytes, skip_space(bytes, key.end) + 1);
        let value = at..value_end(bytes, at);
        at = skip_space(bytes, value.end) + 1;
        spans.push(Span { key, value });
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the string that begins at `at`, behind its closing quote.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// The end of the value that begins at `at`, without white space after it.
fn value_end(bytes: &[u8], at: usize) -> usize {
    let (mut at, mut depth, mut end) = (at, 0_usize, at);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                end = at;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return end,
            b'}' | b']' => depth -= 1,
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            _ => {}
        }
        at += 1;
        end = at;
    }
    end.min(bytes.len())
}

/// Whether the key at `span` is `key`. Keys of ours need no escapes, so one written with escapes is not found; putting
/// it in then makes it appear twice, and the last one counts.
fn is_key(line: &str, span: &Span, key: &str) -> bool {
    line.get(span.key.start + 1..span.key.end - 1) == Some(key)
}

/// `line` with `key` as `value` (JSON text): in place where the key stands, else behind the last member whose key is in
/// `before`, else first. Separators are those the line uses.
pub(super) fn with_member(line: &str, key: &str, value: &str, before: &[&str]) -> String {
    let spans = members(line);
    if let Some(span) = spans.iter().rev().find(|span| is_key(line, span, key)) {
        return splice(line, span.value.clone(), value);
    }
    let colon = spans
        .first()
        .and_then(|span| line.get(span.key.end..span.value.start))
        .unwrap_or(":");
    let comma = spans
        .first()
        .zip(spans.get(1))
        .and_then(|(one, next)| line.get(one.value.end..next.key.start))
        .unwrap_or(",");
    let member = format!("\"{key}\"{colon}{value}");
    let after = spans
        .iter()
        .rev()
        .find(|span| before.iter().any(|known| is_key(line, span, known)));
    match (after, spans.first()) {
        (Some(span), _) => {
            let at = span.value.end;
            splice(line, at..at, &format!("{comma}{member}"))
        }
        (None, Some(first)) => {
            let at = first.key.start;
            splice(line, at..at, &format!("{member}{comma}"))
        }
        (None, None) => format!("{{{member}}}"),
    }
}

/// `line` without `key`, wherever it stands.
pub(super) fn without_member(line: &str, key: &str) -> String {
    let mut line = line.to_owned();
    loop {
        let spans = members(&line);
        let Some(at) = spans.iter().position(|span| is_key(&line, span, key)) else {
            return line;
        };
        // The separator goes with it: the one before, or the one after where it stands first.
        let range = match (
            at.checked_sub(1).and_then(|before| spans.get(before)),
            spans.get(at + 1),
        ) {
            (Some(before), _) => before.value.end..spans[at].value.end,
            (None, Some(next)) => spans[at].key.start..next.key.start,
            (None, None) => spans[at].key.start..spans[at].value.end,
        };
        line = splice(&line, range, "");
    }
}

fn splice(line: &str, range: Range<usize>, text: &str) -> String {
    let (head, tail) = (
        line.get(..range.start).unwrap_or_default(),
        line.get(range.end..).unwrap_or_default(),
    );
    format!("{head}{text}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACED: &str =
        r#"{"id": "s1", "state": {"request": "a, \"b\" } c"}, "n": 1e5 , "x": [1, {"y": "]"}]}"#;

    #[test]
    fn finds_members_whatever_their_values_hold() {
        let found: Vec<_> = members(SPACED)
            .into_iter()
            .map(|span| (&SPACED[span.key], &SPACED[span.value]))
            .collect();
        assert_eq!(
            found,
            [
                ("\"id\"", "\"s1\""),
                ("\"state\"", r#"{"request": "a, \"b\" } c"}"#),
                ("\"n\"", "1e5"),
                ("\"x\"", r#"[1, {"y": "]"}]"#),
            ]
        );
        assert_eq!(members("{}"), []);
        assert_eq!(members(" [1]"), []);
    }

    #[test]
    fn puts_in_replaces_and_takes_out_without_touching_the_rest() {
        assert_eq!(
            with_member(SPACED, "n", "2", &[]),
            SPACED.replace("1e5", "2"),
            "in place"
        );
        assert_eq!(
            with_member(SPACED, "shape", "\"q\"", &["id", "state"]),
            SPACED.replace(r#" c"},"#, r#" c"}, "shape": "q","#),
            "behind the last known member, in the line's own manner"
        );
        assert_eq!(
            with_member("{\"z\":1}", "id", "2", &[]),
            "{\"id\":2,\"z\":1}"
        );
        assert_eq!(with_member("{}", "id", "2", &["z"]), "{\"id\":2}");
        assert_eq!(
            with_member("{\"id\":1}", "z", "2", &["id"]),
            "{\"id\":1,\"z\":2}"
        );
        assert_eq!(
            without_member(SPACED, "n"),
            r#"{"id": "s1", "state": {"request": "a, \"b\" } c"} , "x": [1, {"y": "]"}]}"#
        );
        assert_eq!(without_member("{\"a\":1,\"b\":2}", "a"), "{\"b\":2}");
        assert_eq!(without_member("{\"a\":1,\"a\":2}", "a"), "{}");
        assert_eq!(without_member("{\"a\":1}", "b"), "{\"a\":1}");
    }
}
