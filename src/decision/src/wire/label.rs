//! The label of a choice option: a JSON scalar that is option text, answer key and answer at once.

use crate::json::{Integer, Text, Value, key_text, python_str};

/// A choice label: a string, a number or a bool, never null (wire.md 5, rule 5).
#[derive(Debug, Clone, PartialEq)]
pub struct Label(Value);

impl Label {
    /// The label, if the value can be one.
    #[must_use]
    pub fn new(value: &Value) -> Option<Self> {
        match value {
            Value::Null | Value::List(_) | Value::Object(_) => None,
            scalar => Some(Self(scalar.clone())),
        }
    }

    /// The label as sent, as `choice` answers it.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }

    /// Text of the option in the prompt: `True`, `2`, `1.5`, a string as it is.
    #[must_use]
    pub fn text(&self) -> String {
        python_str(&self.0)
    }

    /// Key among the probabilities: `true`, `2`, `1.5`, a string as it is.
    #[must_use]
    pub fn key(&self) -> String {
        key_text(&self.0)
    }

    /// Whether JSON can carry the label: NaN and infinities are accepted in requests and cannot be answered.
    #[must_use]
    pub fn is_json(&self) -> bool {
        !matches!(self.0, Value::Float(float) if !float.is_finite())
    }

    /// Whether two labels are one: `1`, `1.0` and `true` are, and so are `0`, `-0.0` and `false`; integers and floats
    /// compare exactly, strings by code points; NaN equals NaN (wire.md 5).
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(one), Some(other)) => one.equals(&other),
            (None, None) => self.0 == other.0,
            _ => false,
        }
    }

    fn number(&self) -> Option<Number> {
        match &self.0 {
            Value::Bool(truth) => Some(Number::Integer(i64::from(*truth).into())),
            Value::Integer(integer) => Some(Number::Integer(integer.clone())),
            Value::Float(float) => Some(Number::Float(*float)),
            _ => None,
        }
    }
}

impl From<Text> for Label {
    fn from(text: Text) -> Self {
        Self(Value::String(text))
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

enum Number {
    Integer(Integer),
    Float(f64),
}

impl Number {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => {
                one == other || (one.is_nan() && other.is_nan())
            }
            (Self::Integer(integer), Self::Float(float))
            | (Self::Float(float), Self::Integer(integer)) => integer.equals_float(*float),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    fn label(json: &str) -> Label {
        Label::new(&read(json.as_bytes()).expect("reads")).expect("a label")
    }

    #[test]
    fn knows_when_two_labels_are_one() {
        for (one, other, same) in [
            ("1", "1.0", true),
            ("1", "true", true),
            ("1.0", "true", true),
            ("0", "-0.0", true),
            ("0.0", "-0.0", true),
            ("false", "-0.0", true),
            ("1", "\"1\"", false),
            ("true", "\"True\"", false),
            ("true", "false", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("9007199254740992", "9007199254740992.0", true),
            ("100000000000000000000", "1e20", true),
            ("NaN", "NaN", true),
            ("NaN", "1", false),
            ("Infinity", "1e999", true),
            ("Infinity", "-Infinity", false),
            ("\"é\"", "\"e\\u0301\"", false),
            ("\"a\"", "\"\\u0061\"", true),
        ] {
            assert_eq!(label(one).is_same(&label(other)), same, "{one} and {other}");
            assert_eq!(label(other).is_same(&label(one)), same, "{other} and {one}");
        }
    }

    #[test]
    fn only_scalars_are_labels() {
        for json in ["null", "[]", "{}"] {
            assert_eq!(
                Label::new(&read(json.as_bytes()).expect("reads")),
                None,
                "{json}"
            );
        }
    }
}
