//! Defaults (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`). First explicit nulls of fields that may not be null
//! and have no default are dropped; then missing fields, and such nulls where there is a default, get it, from the outside
//! in, so that a default object gets the defaults of its own fields.

use serde_json::{Map, Value};

use super::node::Node;

/// Drops nulls and fills in defaults.
pub(super) fn apply(root: &Node, object: &mut Value) {
    drop_nulls(Some(root), object);
    fill(root, object);
}

fn may_not_be_null(node: Option<&Node>) -> bool {
    node.is_some_and(|node| !node.nullable)
}

fn drop_nulls(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let child = node.and_then(|node| node.child(key));
                let dropped = value.is_null() && may_not_be_null(child) && child.is_none_or(|c| c.default.is_none());
                if !dropped {
                    drop_nulls(child, value);
                }
                !dropped
            });
        }
        Value::Array(items) => {
            let item_node = node.and_then(|node| node.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item_node, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            fill_missing(node, map);
            for (key, value) in map.iter_mut() {
                match (node.properties.get(key), node.additional.schema()) {
                    (Some(child), _) => fill(child, value),
                    (None, Some(child)) => {
                        fill_null(child, value);
                        fill(child, value);
                    }
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items.as_deref() else { return };
            for item in items {
                fill_null(child, item);
                fill(child, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_missing(node: &Node, map: &mut Map<String, Value>) {
    for (key, child) in &node.properties {
        let Some(default) = &child.default else { continue };
        if map.get(key).is_none_or(|value| value.is_null() && !child.nullable) {
            map.insert(key.clone(), default.clone());
        }
    }
}

fn fill_null(node: &Node, value: &mut Value) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or(Value::Null);
    }
}
