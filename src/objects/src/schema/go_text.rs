//! Values as Go prints them: `%q`, `%v` and `encoding/json`, which the texts of the API server are made of.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use unicode_general_category::{GeneralCategory, get_general_category};

/// A value in an error's body (`field.Error.ErrorBody`): strings quoted, numbers and booleans plain, the rest as JSON.
pub(super) fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => number_v(number),
        other => json(other),
    }
}

/// `strconv.Quote`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match short_escape(c) {
            Some(short) => out.push_str(short),
            None if is_print(c) => out.push(c),
            None => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// The escape of a character that has a sign of its own.
pub(crate) const fn short_escape(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => return None,
    })
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let _ = match code {
        0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
        0..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
fn is_print(c: char) -> bool {
    use GeneralCategory as G;
    c == ' '
        || !matches!(
            get_general_category(c),
            G::Control
                | G::Format
                | G::Surrogate
                | G::PrivateUse
                | G::Unassigned
                | G::SpaceSeparator
                | G::LineSeparator
                | G::ParagraphSeparator
        )
}

/// `%v` of an `int64` or `float64`.
pub(super) fn number_v(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(float)) => float_v(float),
        (None, None) => number.to_string(),
    }
}

/// `%v` of a `float64`: shortest digits, with an exponent below 1e-4 and from 1e6.
pub(super) fn float_v(value: f64) -> String {
    exponent_form(value, -4, 6, Exponent::TwoDigits)
}

/// How an exponent is padded.
#[derive(Clone, Copy)]
enum Exponent {
    /// `1e-06`, as `strconv` does.
    TwoDigits,
    /// `1e-6`, as `encoding/json` shortens it.
    Shortest,
}

fn exponent_form(value: f64, lowest: i32, highest: i32, width: Exponent) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 && value.is_sign_negative() {
            "-0".to_owned()
        } else {
            format!("{value}")
        };
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (lowest..highest).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    match width {
        Exponent::TwoDigits => format!("{digits}e{sign}{:02}", exponent.unsigned_abs()),
        // encoding/json shortens e-09 to e-9 and leaves the rest
        Exponent::Shortest if exponent < 0 => format!("{digits}e-{}", exponent.unsigned_abs()),
        Exponent::Shortest => format!("{digits}e+{:02}", exponent.unsigned_abs()),
    }
}

/// `json.Marshal`: keys sorted, no spaces, `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => out.push_str(&whole.to_string()),
            (None, float) => out.push_str(&exponent_form(
                float.unwrap_or(0.0),
                -6,
                21,
                Exponent::Shortest,
            )),
        },
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, key);
                out.push(':');
                write_json(out, &map[key]);
            }
            out.push('}');
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..'\u{20}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `%v` of any decoded JSON: `map[a:1 b:[2 3]]`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number_v(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(plain).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(map) => {
            let mut entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// `%T` of decoded JSON.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, quoted) in [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{8}\u{b}\u{c}\n\r\t", r#""\a\b\v\f\n\r\t""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("é 日本 🦀", r#""é 日本 🦀""#),
            ("\u{85}\u{a0}\u{200b}", r#""\u0085\u00a0\u200b""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        for (number, printed) in [
            (json!(0), "0"),
            (json!(-7), "-7"),
            (json!(1.0), "1"),
            (json!(1.5), "1.5"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(123_456.5), "123456.5"),
            (json!(1e6), "1e+06"),
            (json!(1.5e21), "1.5e+21"),
            (json!(u64::MAX), "1.8446744073709552e+19"),
        ] {
            assert_eq!(bad_value(&number), printed, "{number}");
        }
    }

    #[test]
    fn compound_values_are_json_with_sorted_keys_and_escaped_angles() {
        assert_eq!(
            bad_value(
                &json!({"b": [1, null, true], "a": "<&>\u{2028}\u{1}", "c": 2.0, "d": 1e-7, "e": 1e20})
            ),
            "{\"a\":\"\\u003c\\u0026\\u003e\\u2028\\u0001\",\"b\":[1,null,true],\"c\":2,\"d\":1e-7,\"e\":100000000000000000000}"
        );
        assert_eq!(bad_value(&Value::Null), "null");
        assert_eq!(bad_value(&json!(true)), "true");
    }

    #[test]
    fn any_value_has_the_plain_form_of_go() {
        assert_eq!(
            plain(&json!({"b": [1, "x"], "a": null})),
            "map[a:<nil> b:[1 x]]"
        );
        assert_eq!(type_name(&json!({})), "map[string]interface {}");
        assert_eq!(type_name(&json!(1.5)), "float64");
    }
}
