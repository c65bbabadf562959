//! Values as the API server writes them in messages and in the keys of field sets.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::schema::go_text::short_escape;

/// A value in a path: strings quoted, maps and lists spelled out.
pub(super) fn in_path(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(in_path).collect();
            format!("[{}]", parts.join(","))
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", in_path(value)))
            .collect(),
        Value::Bool(_) | Value::Number(_) => plain(value),
    }
}

/// A string in double quotes with the escapes of the API server's messages.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match short_escape(character) {
            Some(short) => out.push_str(short),
            None if (character as u32) < 0x20 || character as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", character as u32);
            }
            None => out.push(character),
        }
    }
    out.push('"');
    out
}

/// A value in running text: `abc`, `1`, `[a b]`, `map[a:1]`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", parts.join(" "))
        }
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}:{}", plain(value)))
                .collect();
            format!("map[{}]", parts.join(" "))
        }
    }
}

/// A value with its types, which is how one message of the API server happens to print it.
pub(super) fn typed(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(typed).collect();
            format!("[]interface {{}}{{{}}}", parts.join(", "))
        }
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), typed(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", parts.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => plain(value),
    }
}

/// The name of a value's type in messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Compact JSON with `<`, `>` and `&` escaped and whole floats without a fraction, as in keys of field sets.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::Number(number) => number_text(number),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", parts.join(","))
        }
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", json_string(name), json(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::String(text) => json_string(text),
        Value::Null | Value::Bool(_) => value.to_string(),
    }
}

/// Adds a JSON string with the escapes of [`json`].
pub(super) fn push_json_string(text: &str, out: &mut String) {
    let is_plain =
        |c: u8| (0x20..0x7f).contains(&c) && !matches!(c, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&json_string(text));
    }
}

/// A JSON string with the escapes of [`json`].
pub(super) fn json_string(text: &str) -> String {
    let plain = Value::from(text).to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    plain
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            format!("{float:.0}")
        }
        _ => number.to_string(),
    }
}
