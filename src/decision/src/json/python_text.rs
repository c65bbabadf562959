//! Values as text (wire.md 4.2): `str` for labels in prompts, `repr` for messages, JSON text for everything else a
//! model reads, and the white space that counts as blank.

use super::unprintable::is_unprintable;
use super::writer::{Layout, json_float, write_as};
use super::{Text, Value, float_text};

/// JSON text as prompts, state lengths and legends use it: separators `", "` and `": "`, non-ASCII raw.
#[must_use]
pub fn json_text(value: &Value) -> String {
    write_as(value, Layout::SPACED)
}

/// `str` of a value: a string as it is, otherwise as [`python_repr`]. Lone surrogates become U+FFFD.
#[must_use]
pub fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        other => python_repr(other),
    }
}

/// The key under which JSON writes a scalar label: `true`, `2`, `1.5`, `null`, a string as it is (wire.md 6.2).
#[must_use]
pub fn key_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        Value::Float(float) => json_float(*float),
        other => json_text(other),
    }
}

/// `repr` of a value, as messages and reasons echo it: `'text'`, `True`, `None`, `nan`, `['a', 1]`, `{'a': 1}`.
#[must_use]
pub fn python_repr(value: &Value) -> String {
    let mut out = String::new();
    append_repr(&mut out, value);
    out
}

/// `repr` of a string: in `'`, or in `"` if it has `'` and no `"`; what is not printable is escaped.
#[must_use]
pub fn repr_text(text: &Text) -> String {
    let mut out = String::new();
    append_text(&mut out, text);
    out
}

/// Without white space at both ends; blank means that nothing is left. U+001C–U+001F count as white space beside
/// Unicode's.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| {
        character.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&character)
    })
}

fn append_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Integer(integer) => out.push_str(&integer.to_string()),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::String(text) => append_text(out, text),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                append_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, value)) in object.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                append_text(out, key);
                out.push_str(": ");
                append_repr(out, value);
            }
            out.push('}');
        }
    }
}

fn append_text(out: &mut String, text: &Text) {
    let has = |quote: u8| text.as_bytes().contains(&quote);
    let quote = if has(b'\'') && !has(b'"') { '"' } else { '\'' };
    out.push(quote);
    for code in text.code_points() {
        match char::from_u32(code) {
            Some(character) if character == quote || character == '\\' => {
                out.extend(['\\', character])
            }
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some(character) if !is_unprintable(code) => out.push(character),
            _ if code <= 0xFF => out.push_str(&format!("\\x{code:02x}")),
            _ if code <= 0xFFFF => out.push_str(&format!("\\u{code:04x}")),
            _ => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    fn value(json: &str) -> Value {
        read(json.as_bytes()).expect("reads")
    }

    #[test]
    fn represents_values() {
        for (json, repr) in [
            ("null", "None"),
            ("true", "True"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1e400", "inf"),
            ("NaN", "nan"),
            ("-Infinity", "-inf"),
            ("1e16", "1e+16"),
            (
                r#"["a", 1, {"b": [false, null]}]"#,
                "['a', 1, {'b': [False, None]}]",
            ),
            ("[]", "[]"),
            ("{}", "{}"),
            (r#""it's""#, r#""it's""#),
            (r#""say \"it's\"""#, r#"'say "it\'s"'"#),
            (r#""say \"hi\"""#, r#"'say "hi"'"#),
            (
                r#""\\\t\n\r\u0000\u007f\u00a0\u00e9""#,
                r"'\\\t\n\r\x00\x7f\xa0é'",
            ),
            (
                r#""\u200b\ud83d\ude00\udbff\udfff\ud800""#,
                r"'\u200b😀\U0010ffff\ud800'",
            ),
            (r#"{"it's": "\u2028"}"#, r#"{"it's": '\u2028'}"#),
        ] {
            assert_eq!(python_repr(&value(json)), repr, "{json}");
        }
    }

    #[test]
    fn writes_labels_keys_and_texts() {
        for (json, label, key, text) in [
            ("true", "True", "true", "true"),
            ("2", "2", "2", "2"),
            ("1.50", "1.5", "1.5", "1.5"),
            ("1e5", "100000.0", "100000.0", "100000.0"),
            ("NaN", "nan", "NaN", "NaN"),
            ("Infinity", "inf", "Infinity", "Infinity"),
            (r#""x y""#, "x y", "x y", r#""x y""#),
            (
                r#"["é",{"a":1}]"#,
                "['é', {'a': 1}]",
                r#"["é", {"a": 1}]"#,
                r#"["é", {"a": 1}]"#,
            ),
        ] {
            let value = value(json);
            let seen = (python_str(&value), key_text(&value), json_text(&value));
            assert_eq!(
                seen,
                (label.to_owned(), key.to_owned(), text.to_owned()),
                "{json}"
            );
        }
    }

    #[test]
    fn trims_what_counts_as_white_space() {
        assert_eq!(
            trim("\u{1c}\u{1f}\u{85}\u{a0}\u{3000}\u{2028}\t a b \n"),
            "a b"
        );
        assert_eq!(trim("\u{200b}"), "\u{200b}");
        assert_eq!(trim("\u{1b}"), "\u{1b}");
    }
}
