//! One step of a path through an object: a field, a list item by its keys, a set's value or an index; with the total
//! order in which sets of paths are kept and printed.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::text;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a map or struct.
    Field(Arc<str>),
    /// The item of a list map with these keys, sorted by name.
    Key(Arc<[(String, Value)]>),
    /// The item of a set with this value.
    Value(Arc<Value>),
    /// The item of an atomic list at this index.
    Index(i64),
}

impl PathElement {
    /// A field.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// An item by its keys; the order in which they are given does not matter.
    #[must_use]
    pub fn key(mut keys: Vec<(String, Value)>) -> Self {
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(keys.into())
    }

    /// Fields come first, then keys, values and indices.
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // Names of the schema are shared.
            (Self::Field(a), Self::Field(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

/// As a path is written in conflicts and problems: `.name`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let parts: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={}", text::in_path(value)))
                    .collect();
                write!(f, "[{}]", parts.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", text::in_path(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    for (left, right) in a.iter().zip(b) {
        let order = left
            .0
            .cmp(&right.0)
            .then_with(|| compare_values(&left.1, &right.1));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// The API server's order over any two values: numbers by value whatever their type, then strings, booleans, lists, maps, null.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(left, right)| compare_values(left, right))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            let mut left: Vec<_> = a.iter().collect();
            let mut right: Vec<_> = b.iter().collect();
            left.sort_by_key(|(name, _)| *name);
            right.sort_by_key(|(name, _)| *name);
            left.iter()
                .zip(&right)
                .map(|(l, r)| l.0.cmp(r.0).then_with(|| compare_values(l.1, r.1)))
                .find(|order| *order != Ordering::Equal)
                .unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Equality of values as ownership sees it: `1` and `1.0` are the same.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(f64::MAX);
    float(a).total_cmp(&float(b))
}
