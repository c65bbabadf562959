//! Sets one value in the text of a JSON file that belongs to somebody: everything else stays as it was written, to the
//! byte, with its order, its layout and the keys that we do not know.

use std::ops::Range;

/// What a text is indented by where it shows none.
const UNIT: &str = "  ";

/// Sets the value at `path` (at least one key) below the object that `text` is. Objects on the way are made, and what
/// stands in their place is replaced. Where a key is there twice, the last counts, as readers have it.
///
/// `text` must be a JSON object and `value` a JSON value; `None` where that is not so.
pub(crate) fn set(text: &str, path: &[&str], value: &str) -> Option<String> {
    let root = Members::read(text, skip_space(text, 0))?;
    let unit = match root
        .list
        .first()
        .map(|member| layout_of(&text[member.before.clone()]))
    {
        Some(Layout::Lines { indent }) if !indent.is_empty() => indent,
        _ => UNIT.to_owned(),
    };
    let lines = Layout::Lines {
        indent: String::new(),
    };
    let (at, with) = splice(text, &root, &lines, &unit, path, value)?;
    Some(format!("{}{with}{}", &text[..at.start], &text[at.end..]))
}

/// How the members of an object are set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// Each on a line of its own that begins with this.
    Lines { indent: String },
    /// All on one line.
    OneLine,
}

/// One member of an object, as ranges of the text.
struct Member {
    key: String,
    /// White space in front of the key.
    before: Range<usize>,
    value: Range<usize>,
}

struct Members {
    list: Vec<Member>,
    /// What lies between the braces.
    inside: Range<usize>,
}

/// Which range of the text is to be replaced, and by what. `outer` is how the object itself is laid out among others.
fn splice(
    text: &str,
    object: &Members,
    outer: &Layout,
    unit: &str,
    path: &[&str],
    value: &str,
) -> Option<(Range<usize>, String)> {
    let (key, rest) = path.split_first()?;
    let layout = match object.list.last() {
        Some(last) => layout_of(&text[last.before.clone()]),
        None => deeper(outer, unit),
    };
    if let Some(member) = object.list.iter().rev().find(|member| member.key == *key) {
        let is_object = text[member.value.clone()].starts_with('{');
        if is_object && !rest.is_empty() {
            let inner = Members::read(text, member.value.start)?;
            return splice(text, &inner, &layout, unit, rest, value);
        }
        return Some((member.value.clone(), nested(rest, &layout, unit, value)));
    }
    let key = serde_json::to_string(key).ok()?;
    let member = format!("{key}: {}", nested(rest, &layout, unit, value));
    Some(match (object.list.last(), &layout) {
        (Some(last), _) => {
            let space = &text[last.before.clone()];
            let space = if object.list.len() == 1 && space.is_empty() {
                " "
            } else {
                space
            };
            (last.value.end..last.value.end, format!(",{space}{member}"))
        }
        (None, Layout::Lines { indent }) => {
            let end = match outer {
                Layout::Lines { indent } => indent.as_str(),
                Layout::OneLine => "",
            };
            (object.inside.clone(), format!("\n{indent}{member}\n{end}"))
        }
        (None, Layout::OneLine) => (object.inside.clone(), member),
    })
}

/// The value below objects that are not there yet.
fn nested(path: &[&str], layout: &Layout, unit: &str, value: &str) -> String {
    let Some((key, rest)) = path.split_first() else {
        return value.to_owned();
    };
    let inner = deeper(layout, unit);
    let key = serde_json::Value::from(*key);
    let member = format!("{key}: {}", nested(rest, &inner, unit, value));
    match (layout, &inner) {
        (Layout::Lines { indent: outer }, Layout::Lines { indent }) => {
            format!("{{\n{indent}{member}\n{outer}}}")
        }
        _ => format!("{{{member}}}"),
    }
}

fn deeper(layout: &Layout, unit: &str) -> Layout {
    match layout {
        Layout::Lines { indent } => Layout::Lines {
            indent: format!("{indent}{unit}"),
        },
        Layout::OneLine => Layout::OneLine,
    }
}

fn layout_of(space: &str) -> Layout {
    match space.rfind('\n') {
        Some(at) => Layout::Lines {
            indent: space[at + 1..].to_owned(),
        },
        None => Layout::OneLine,
    }
}

impl Members {
    /// Reads the object that begins at `open`.
    fn read(text: &str, open: usize) -> Option<Self> {
        let mut at = text[open..].starts_with('{').then_some(open + 1)?;
        let mut list = Vec::new();
        loop {
            let key_start = skip_space(text, at);
            if text[key_start..].starts_with('}') {
                let inside = open + 1..key_start;
                return Some(Self { list, inside });
            }
            let key_end = value_end(text, key_start)?;
            let key = serde_json::from_str(&text[key_start..key_end]).ok()?;
            let colon = skip_space(text, key_end);
            let start = skip_space(text, text[colon..].starts_with(':').then_some(colon + 1)?);
            let end = value_end(text, start)?;
            list.push(Member {
                key,
                before: at..key_start,
                value: start..end,
            });
            at = skip_space(text, end);
            if text[at..].starts_with(',') {
                at += 1;
            } else if text[at..].starts_with('}') {
                let inside = open + 1..at;
                return Some(Self { list, inside });
            } else {
                return None;
            }
        }
    }
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Where the value that begins at `at` ends.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut end = at;
    while let Some(byte) = bytes.get(end) {
        match (in_string, byte) {
            (true, b'\\') => end += 1,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth > 0 => depth -= 1,
            // The end of a number or a word.
            (false, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') if depth == 0 => {
                return (end > at).then_some(end);
            }
            (false, _) => {}
        }
        end += 1;
        let closed = !in_string && depth == 0 && matches!(byte, b'"' | b'}' | b']');
        if closed {
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    const URL: &str = r#""https://a/v1""#;

    #[test]
    fn only_what_is_set_changes() {
        for (name, before, after) in [
            (
                "nothing there",
                "{}",
                "{\n  \"laya\": {\n    \"baseUrl\": \"https://a/v1\"\n  }\n}",
            ),
            (
                "another key, in lines",
                "{\n    \"theme\": \"dark\"\n}\n",
                "{\n    \"theme\": \"dark\",\n    \"laya\": {\n        \"baseUrl\": \"https://a/v1\"\n    }\n}\n",
            ),
            (
                "another key, on one line",
                r#"{"theme":"dark"}"#,
                r#"{"theme":"dark", "laya": {"baseUrl": "https://a/v1"}}"#,
            ),
            (
                "an empty object",
                "{\n\t\"laya\": {},\n\t\"z\": 1\n}",
                "{\n\t\"laya\": {\n\t\t\"baseUrl\": \"https://a/v1\"\n\t},\n\t\"z\": 1\n}",
            ),
            (
                "other settings of ours, in their order",
                "{\n  \"laya\": {\n    \"policy\": \"economy\",\n    \"quota\": {\"b\": 1e-1, \"a\": 1.0}\n  },\n  \"a\": [1, {\"laya\": 2}]\n}\n",
                "{\n  \"laya\": {\n    \"policy\": \"economy\",\n    \"quota\": {\"b\": 1e-1, \"a\": 1.0},\n    \"baseUrl\": \"https://a/v1\"\n  },\n  \"a\": [1, {\"laya\": 2}]\n}\n",
            ),
            (
                "another address",
                r#" {"laya" : { "baseUrl" : "http:\/\/b\"}" , "x":null } } "#,
                r#" {"laya" : { "baseUrl" : "https://a/v1" , "x":null } } "#,
            ),
            (
                "an escaped key",
                r#"{"la\u0079a":{"baseUrl":"x"}}"#,
                r#"{"la\u0079a":{"baseUrl":"https://a/v1"}}"#,
            ),
            (
                "a key twice: the last counts",
                r#"{"laya":{"baseUrl":"x"},"laya":{"baseUrl":"y"}}"#,
                r#"{"laya":{"baseUrl":"x"},"laya":{"baseUrl":"https://a/v1"}}"#,
            ),
            (
                "no object there",
                r#"{"laya":null,"z":[]}"#,
                r#"{"laya":{"baseUrl": "https://a/v1"},"z":[]}"#,
            ),
        ] {
            let set = set(before, &["laya", "baseUrl"], URL).unwrap();
            assert_eq!(set, after, "{name}");
            let mut expected: Value = serde_json::from_str(before).unwrap();
            if !expected["laya"].is_object() {
                expected["laya"] = json!({});
            }
            expected["laya"]["baseUrl"] = json!("https://a/v1");
            assert_eq!(
                serde_json::from_str::<Value>(&set).unwrap(),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_value_may_be_an_object_and_setting_it_twice_changes_nothing() {
        let once = set(
            r#"{"x": {"type":"oauth"}}"#,
            &["laya"],
            r#"{"type":"api_key"}"#,
        )
        .unwrap();
        assert_eq!(
            once,
            r#"{"x": {"type":"oauth"}, "laya": {"type":"api_key"}}"#
        );
        assert_eq!(
            set(&once, &["laya"], r#"{"type":"api_key"}"#).unwrap(),
            once
        );
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for text in ["[]", "1", "", "{", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":1"#] {
            assert_eq!(set(text, &["laya"], "1"), None, "{text}");
        }
    }

    /// Values of every kind, with keys and texts that hold what ends or escapes others.
    fn value() -> impl Strategy<Value = Value> {
        let text = r#"[a-c"\\{}\[\],: \n\u{e9}\u{1f600}]{0,6}|laya|baseUrl"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        /// A reader finds the value that was set and everything else as it was, however the text is laid out.
        #[test]
        fn a_reader_finds_one_change(tree in value(), pretty in any::<bool>(), new in value(), deep in any::<bool>()) {
            let before = if tree.is_object() { tree } else { json!({ "x": tree }) };
            let text = if pretty { format!("{before:#}") } else { before.to_string() };
            let path: &[&str] = if deep { &["laya", "baseUrl"] } else { &["laya"] };
            let after = set(&text, path, &new.to_string()).unwrap();
            let mut expected = before;
            if deep && !expected["laya"].is_object() {
                expected["laya"] = json!({});
            }
            match deep {
                true => expected["laya"]["baseUrl"] = new,
                false => expected["laya"] = new,
            }
            prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), expected);
        }
    }
}
