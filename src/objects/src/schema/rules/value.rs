//! Objects as CEL sees them (`apiserver/pkg/cel/common/valuesunstructured.go`): by their schema, with escaped field names,
//! and of metadata no more than the name.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map as CelMap};
use serde_json::{Map, Value};

use super::super::format::Form;
use super::super::go_text;
use super::super::node::{Kind, List, Node};
use super::super::unknown::TYPE_META;
use super::engine::Engine;

/// Words that cannot be field names in CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether lists keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    AsGiven,
    /// Lists with keys by their keys, sets by their values.
    Sorted,
}

/// Converts a value. `engine` makes points in time.
pub(super) fn convert(engine: &Engine, node: &Node, value: &Value, order: Order) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => convert_number(node, number),
        Value::String(text) => convert_string(engine, node, text),
        Value::Array(items) => {
            let convert_item = |item: &Value| match node.items.as_deref() {
                Some(child) => convert(engine, child, item, order),
                None => untyped(item),
            };
            let items: Vec<Cel> = match order {
                Order::Sorted if node.list != List::Atomic => {
                    let mut keyed: Vec<(String, &Value)> = items
                        .iter()
                        .map(|item| (sort_key(node, item), item))
                        .collect();
                    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
                    keyed
                        .into_iter()
                        .map(|(_, item)| convert_item(item))
                        .collect()
                }
                _ => items.iter().map(convert_item).collect(),
            };
            Cel::List(Arc::new(items))
        }
        Value::Object(map) => convert_object(engine, node, map, order),
    }
}

/// The whole object: its own fields, and what every object has.
pub(super) fn convert_root(engine: &Engine, node: &Node, object: &Value, order: Order) -> Cel {
    let Value::Object(map) = object else {
        return convert(engine, node, object, order);
    };
    let mut entries = HashMap::with_capacity(map.len());
    for (key, value) in map {
        let converted = match (key.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                let names = ["name", "generateName"].into_iter();
                let names = names.filter_map(|name| {
                    Some((cel_key(name.to_owned()), untyped(metadata.get(name)?)))
                });
                cel_map(names.collect())
            }
            (key, value) if TYPE_META.contains(&key) => untyped(value),
            (key, value) => match (node.properties.get(key), value.is_null()) {
                (Some(child), false) => convert(engine, child, value, order),
                _ => continue,
            },
        };
        if let Some(name) = escaped(key) {
            entries.insert(cel_key(name), converted);
        }
    }
    cel_map(entries)
}

fn convert_object(engine: &Engine, node: &Node, map: &Map<String, Value>, order: Order) -> Cel {
    let mut entries = HashMap::with_capacity(map.len());
    if node.properties.is_empty() {
        for (key, value) in map {
            let converted = match node.additional.schema() {
                Some(child) => convert(engine, child, value, order),
                None => untyped(value),
            };
            entries.insert(cel_key(key.clone()), converted);
        }
        return cel_map(entries);
    }
    for (key, value) in map {
        // a null field is as one that is not there, an unknown one cannot be seen
        if let (Some(child), false) = (node.properties.get(key), value.is_null())
            && let Some(name) = escaped(key)
        {
            entries.insert(cel_key(name), convert(engine, child, value, order));
        }
    }
    cel_map(entries)
}

fn cel_key(name: String) -> Key {
    Key::String(Arc::new(name))
}

fn cel_map(entries: HashMap<Key, Cel>) -> Cel {
    Cel::Map(CelMap {
        map: Arc::new(entries),
    })
}

fn convert_number(node: &Node, number: &serde_json::Number) -> Cel {
    let float = || Cel::Float(number.as_f64().unwrap_or(f64::NAN));
    match (node.kind, number.as_i64()) {
        (Kind::Number, _) => float(),
        (_, Some(whole)) => Cel::Int(whole),
        // 3.0 in a field of integers: the API server stores it, but a rule that reads it fails, as it does with null
        (Kind::Integer | Kind::IntOrString, None) => Cel::Null,
        _ => float(),
    }
}

fn convert_string(engine: &Engine, node: &Node, text: &str) -> Cel {
    let converted = match node.format.as_ref().map(|format| format.form) {
        Some(Form::DateTime) => engine.timestamp(text),
        Some(Form::Date) => engine.timestamp(&format!("{text}T00:00:00Z")),
        Some(Form::Duration) => engine.duration(text),
        _ => None,
    };
    converted.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

/// What no schema describes: it can only be compared.
fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Cel::Float(number.as_f64().unwrap_or(f64::NAN)), Cel::Int),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(map) => cel_map(
            map.iter()
                .map(|(key, value)| (cel_key(key.clone()), untyped(value)))
                .collect(),
        ),
    }
}

/// The first part of a value that is not what its schema says: it is there only because an update left it as it was.
/// A rule that meets it fails with this text.
pub(super) fn mismatch(node: &Node, value: &Value) -> Option<String> {
    let got = || go_text::type_name(value);
    match (node.kind, value) {
        (Kind::Any, _) | (Kind::Boolean, Value::Bool(_)) | (Kind::String, Value::String(_)) => None,
        (Kind::Number, Value::Number(_)) => None,
        (_, Value::Null) if node.nullable => None,
        (_, Value::Null) => {
            Some("invalid data, got null for schema with nullable=false".to_owned())
        }
        (Kind::Integer | Kind::IntOrString, Value::Number(number)) if number.is_i64() => None,
        (Kind::IntOrString, Value::String(_)) => None,
        (Kind::Object, Value::Object(map)) => map.iter().find_map(|(key, value)| {
            node.child(key)
                .filter(|_| !value.is_null())
                .and_then(|child| mismatch(child, value))
        }),
        (Kind::Array, Value::Array(items)) => node
            .items
            .as_deref()
            .and_then(|child| items.iter().find_map(|item| mismatch(child, item))),
        (Kind::Boolean, _) => Some(format!("invalid data, expected bool, got {}", got())),
        (Kind::String, _) => Some(format!("invalid data, expected string, got {}", got())),
        (Kind::Integer, _) => Some(format!("invalid data, expected int, got {}", got())),
        (Kind::Number, _) => Some(format!("invalid data, expected float, got {}", got())),
        (Kind::IntOrString, _) => Some(
            "invalid data, expected XIntOrString value to be either a string or integer".to_owned(),
        ),
        (Kind::Object, _) => {
            Some("invalid data, expected a map for the provided schema with type=object".to_owned())
        }
        (Kind::Array, _) => Some(
            "invalid data, expected an array for the provided schema with type=array".to_owned(),
        ),
    }
}

/// By what an item is sorted: the values of its keys, or itself.
fn sort_key(node: &Node, item: &Value) -> String {
    match &node.list {
        List::Map(keys) => {
            let parts: Vec<String> = keys
                .iter()
                .map(|key| item.get(key).map(go_text::json).unwrap_or_default())
                .collect();
            parts.join("\0")
        }
        List::Set | List::Atomic => go_text::json(item),
    }
}

/// A scalar of CEL as JSON, for texts.
pub(super) fn plain(value: &Cel) -> Value {
    match value {
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => Value::from(*number),
        Cel::String(text) => Value::from(text.as_str()),
        Cel::Bool(truth) => Value::from(*truth),
        _ => Value::Null,
    }
}

/// A field name as CEL can spell it (`apiserver/pkg/cel/escaping.go`); nothing where it cannot.
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (piece, length) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c == '_' || c.is_ascii_alphanumeric() => (&rest[..1], 1),
            _ => return None,
        };
        text.push_str(piece);
        rest = &rest[length..];
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_escaped_as_the_api_server_escapes_them() {
        for (name, wanted) in [
            ("plain", Some("plain")),
            ("one_underscore", Some("one_underscore")),
            ("two__underscores", Some("two__underscores__underscores")),
            ("namespace", Some("__namespace__")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("default", Some("default")),
            ("1st", None),
            ("", None),
            ("ä", None),
        ] {
            assert_eq!(escaped(name).as_deref(), wanted, "{name}");
        }
    }

    #[test]
    fn what_no_schema_describes_keeps_its_form() {
        let value = json!({"a": [1, 1.5, "x", true, null]});
        let Cel::Map(map) = untyped(&value) else {
            panic!("not a map")
        };
        let items = vec![
            Cel::Int(1),
            Cel::Float(1.5),
            Cel::String(Arc::new("x".to_owned())),
            Cel::Bool(true),
            Cel::Null,
        ];
        assert_eq!(
            map.map.get(&cel_key("a".to_owned())),
            Some(&Cel::List(Arc::new(items)))
        );
    }
}
