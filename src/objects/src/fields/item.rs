//! The path element of a list item.

use std::sync::Arc;

use serde_json::Value;

use super::element::PathElement;
use super::shape::{Items, List};
use super::text;

/// The element of an item, or why it has none, in the API server's words.
pub(super) fn element_of(list: &List, item: &Value) -> Result<PathElement, String> {
    match &list.items {
        Items::Atomic => Err("invalid indexing of non-associative list".into()),
        Items::Set => value_element(item),
        Items::Keyed(keys) => key_element(keys, item),
    }
}

fn value_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".into())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".into())
        }
        value => Ok(PathElement::Value(Arc::new(value.clone()))),
    }
}

fn key_element(keys: &[(String, Option<Value>)], item: &Value) -> Result<PathElement, String> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    if let [(name, default)] = keys
        && let Some(value) = fields.get(name).or(default.as_ref())
    {
        // By far the most common.
        return Ok(PathElement::Key(Arc::new([(name.clone(), value.clone())])));
    }
    let found: Vec<(String, Value)> = keys
        .iter()
        .filter_map(|(name, default)| {
            let value = fields.get(name).or(default.as_ref())?;
            Some((name.clone(), value.clone()))
        })
        .collect();
    if found.is_empty() {
        let names: Vec<String> = keys.iter().map(|(name, _)| text::quoted(name)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(PathElement::key(found))
}
