//! Fields that a schema does not know (`apiextensions-apiserver/pkg/apiserver/schema/pruning`).

use serde_json::Value;

use super::node::{Additional, Node};
use super::object_meta;

/// Always known at the root.
pub(super) const TYPE_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Unknown fields as the API server orders them: those of metadata, then the rest by their paths as text. Without a node
/// none is known.
pub(super) fn unknown_fields(root: Option<&Node>, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Value::Object(map) = object {
        for (key, value) in map {
            if TYPE_META.contains(&key.as_str()) {
                continue;
            }
            let trail = Trail {
                parent: None,
                step: Step::Key(key),
            };
            match root {
                Some(root) => field(root, key, value, &trail, &mut found),
                None => found.push(key.clone()),
            }
        }
    }
    found.sort();
    let mut all = in_metadata(object);
    all.append(&mut found);
    all
}

/// Unknown fields of metadata.
pub(crate) fn in_metadata(object: &Value) -> Vec<String> {
    let metadata = object.get("metadata");
    metadata.map(object_meta::unknown).unwrap_or_default()
}

/// Unknown fields of a part of an object, the paths from there.
pub(super) fn below(node: &Node, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(
        Some(node),
        value,
        &Trail {
            parent: None,
            step: Step::Key(""),
        },
        &mut found,
    );
    found
}

/// The way from the root, told by keys and indexes alone.
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Trail<'_> {
    fn text(&self) -> String {
        let mut text = self.parent.map(Trail::text).unwrap_or_default();
        match self.step {
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }
}

/// One field of an object whose node is known.
fn field(parent: &Node, key: &str, value: &Value, trail: &Trail<'_>, found: &mut Vec<String>) {
    if let Some(node) = parent.properties.get(key) {
        return walk(Some(node), value, trail, found);
    }
    match &parent.additional {
        Additional::Schema(node) => walk(Some(node), value, trail, found),
        Additional::Any | Additional::Forbidden => walk(None, value, trail, found),
        Additional::Unknown if parent.preserves_unknown => {}
        Additional::Unknown => found.push(trail.text()),
    }
}

/// Without a node (`additionalProperties: true`) every key of an object is unknown.
fn walk(node: Option<&Node>, value: &Value, trail: &Trail<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let trail = Trail {
                    parent: Some(trail),
                    step: Step::Key(key),
                };
                match node {
                    Some(node) => field(node, key, value, &trail, found),
                    None => found.push(trail.text()),
                }
            }
        }
        Value::Array(items) => {
            // what is kept as it is may hold lists without a schema of their items
            if node.is_some_and(|node| node.preserves_unknown && node.items.is_none()) {
                return;
            }
            let node = node.and_then(|node| node.items.as_deref());
            for (index, item) in items.iter().enumerate() {
                walk(
                    node,
                    item,
                    &Trail {
                        parent: Some(trail),
                        step: Step::Index(index),
                    },
                    found,
                );
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
