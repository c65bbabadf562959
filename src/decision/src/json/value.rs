//! The JSON value.

use super::{Integer, Object, Text};

/// A JSON value that keeps what Laya's API distinguishes: key order, integers apart from floats, lone surrogates.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number written without `.`, `e` and `E`.
    Integer(Integer),
    /// Any other number; NaN and infinities included.
    Float(f64),
    /// A string.
    String(Text),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Object(Object),
}

impl Value {
    /// Whether this is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The string, if it is one.
    #[must_use]
    pub const fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The string, if it is one without lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().and_then(Text::as_str)
    }

    /// The object, if it is one.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The bool, if it is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// The number as a float, if it is one; a bool is none. May be NaN or infinite.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(integer.to_f64()),
            Self::Float(float) => Some(*float),
            _ => None,
        }
    }

    /// Whether the language of the original would treat it as false: `null`, `false`, zero, empty (wire.md 4.7).
    #[must_use]
    pub fn is_falsy(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(bool) => !bool,
            Self::Integer(integer) => integer.is_zero(),
            Self::Float(float) => *float == 0.0,
            Self::String(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Object(object) => object.is_empty(),
        }
    }

    /// Type name as the messages of wire.md 7 write it.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            Self::Bool(_) => "bool",
            Self::Integer(_) => "int",
            Self::Float(_) => "float",
            Self::String(_) => "str",
            Self::List(_) => "list",
            Self::Object(_) => "dict",
        }
    }

    /// Whether any string or key, at any depth, holds a lone surrogate (wire.md 4.4, step 14).
    #[must_use]
    pub fn has_lone_surrogate(&self) -> bool {
        match self {
            Self::String(text) => text.has_lone_surrogate(),
            Self::List(items) => items.iter().any(Self::has_lone_surrogate),
            Self::Object(object) => object
                .iter()
                .any(|(key, value)| key.has_lone_surrogate() || value.has_lone_surrogate()),
            _ => false,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Text> for Value {
    fn from(value: Text) -> Self {
        Self::String(value)
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl From<Vec<Self>> for Value {
    fn from(value: Vec<Self>) -> Self {
        Self::List(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
