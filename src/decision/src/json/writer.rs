//! Values to bytes (wire.md 6.5): raw non-ASCII, only the escapes JSON demands, numbers in Laya's form.

use super::number_text::float_text;
use super::{Text, Value};

/// Separators and line breaks of one way to write JSON.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    item: &'static str,
    key: &'static str,
    /// Spaces per level on lines of their own; none writes everything on one line.
    indent: Option<usize>,
}

impl Layout {
    pub(super) const COMPACT: Self = Self {
        item: ",",
        key: ":",
        indent: None,
    };
    pub(super) const SPACED: Self = Self {
        item: ", ",
        key: ": ",
        indent: None,
    };
    const PRETTY: Self = Self {
        item: ",",
        key: ": ",
        indent: Some(2),
    };
}

/// Compact JSON, as replies are written. NaN and infinities come out as `NaN`, `Infinity`, `-Infinity`; a reply that
/// must be JSON is checked before. Lone surrogates become U+FFFD; requests that hold one are refused before.
#[must_use]
pub fn write(value: &Value) -> String {
    write_as(value, Layout::COMPACT)
}

/// JSON with an indent of two spaces and no final newline.
#[must_use]
pub fn write_pretty(value: &Value) -> String {
    write_as(value, Layout::PRETTY)
}

pub(super) fn write_as(value: &Value, layout: Layout) -> String {
    let mut out = String::new();
    append(&mut out, value, layout, 0);
    out
}

fn append(out: &mut String, value: &Value, layout: Layout, level: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(integer) => out.push_str(&integer.to_string()),
        Value::Float(float) => out.push_str(&json_float(*float)),
        Value::String(text) => append_text(out, text),
        Value::List(items) => {
            append_items(out, ['[', ']'], items.iter(), layout, level, |out, item| {
                append(out, item, layout, level + 1);
            })
        }
        Value::Object(object) => append_items(
            out,
            ['{', '}'],
            object.iter(),
            layout,
            level,
            |out, (key, value)| {
                append_text(out, key);
                out.push_str(layout.key);
                append(out, value, layout, level + 1);
            },
        ),
    }
}

fn append_items<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = T>,
    layout: Layout,
    level: usize,
    mut append_item: impl FnMut(&mut String, T),
) {
    out.push(open);
    let any = items.len() > 0;
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(layout.item);
        }
        break_line(out, layout, level + 1);
        append_item(out, item);
    }
    if any {
        break_line(out, layout, level);
    }
    out.push(close);
}

fn break_line(out: &mut String, layout: Layout, level: usize) {
    if let Some(indent) = layout.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * level));
    }
}

/// A float as JSON text; `NaN`, `Infinity` and `-Infinity` for what is no number.
pub(super) fn json_float(float: f64) -> String {
    if float.is_nan() {
        "NaN".to_owned()
    } else if float.is_infinite() {
        if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        float_text(float)
    }
}

fn append_text(out: &mut String, text: &Text) {
    match text.as_str() {
        Some(text) => write_string(out, text),
        None => write_string(out, &text.to_string_lossy()),
    }
}

/// Appends a JSON string: escapes only `"`, `\` and characters below U+0020.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            control => out.push_str(&format!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    #[test]
    fn escapes_only_what_json_demands() {
        let mut out = String::new();
        write_string(
            &mut out,
            "\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é\u{2028}😀",
        );
        assert_eq!(
            out,
            "\"\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é\u{2028}😀\""
        );
    }

    #[test]
    fn lays_out_three_ways() {
        let value = read(br#"{"a":[1,2.0,NaN,-Infinity],"b":{},"c":[],"d":null}"#).expect("reads");
        assert_eq!(
            write(&value),
            r#"{"a":[1,2.0,NaN,-Infinity],"b":{},"c":[],"d":null}"#
        );
        assert_eq!(
            write_as(&value, Layout::SPACED),
            r#"{"a": [1, 2.0, NaN, -Infinity], "b": {}, "c": [], "d": null}"#
        );
        assert_eq!(
            write_pretty(&value),
            "{\n  \"a\": [\n    1,\n    2.0,\n    NaN,\n    -Infinity\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": null\n}"
        );
    }
}
