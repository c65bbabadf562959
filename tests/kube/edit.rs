//! Changes of JSON trees, written as places and values.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A change of an object: places such as `spec.tiers[0].models`, a part in quotes where it has dots.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The whole object instead of the base.
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    without: Vec<String>,
}

impl Edit {
    pub(crate) const fn new(
        object: Option<Value>,
        set: BTreeMap<String, Value>,
        without: Vec<String>,
    ) -> Self {
        Self {
            object,
            set,
            without,
        }
    }

    /// Changes a tree.
    pub(crate) fn change(&self, tree: &mut Value) {
        if let Some(object) = &self.object {
            *tree = object.clone();
        }
        for (place, value) in &self.set {
            set(tree, &parts(place), value.clone());
        }
        for place in &self.without {
            remove(tree, &parts(place));
        }
    }
}

/// `spec.rules[0].id`, `metadata.annotations."relay.dev/verify"`.
fn parts(place: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in place.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => parts.push(String::new()),
            ']' if !quoted => {}
            c => parts.last_mut().unwrap().push(c),
        }
    }
    parts
}

fn set(tree: &mut Value, parts: &[String], value: Value) {
    let Some((part, rest)) = parts.split_first() else {
        *tree = value;
        return;
    };
    let below = match tree {
        Value::Array(items) => {
            let index: usize = part.parse().unwrap();
            if index == items.len() {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
        other => {
            *other = Value::Object(Map::new());
            &mut other[part.as_str()]
        }
    };
    set(below, rest, value);
}

fn remove(tree: &mut Value, parts: &[String]) {
    let (part, rest) = parts.split_first().unwrap();
    if rest.is_empty() {
        match tree {
            Value::Array(items) => drop(items.remove(part.parse().unwrap())),
            Value::Object(fields) => {
                let was = fields.remove(part);
                assert!(was.is_some(), "nothing to remove at {part}");
            }
            other => panic!("nothing to remove at {part} of {other}"),
        }
        return;
    }
    match tree {
        Value::Array(items) => remove(&mut items[part.parse::<usize>().unwrap()], rest),
        other => remove(
            other.get_mut(part).unwrap_or_else(|| panic!("no {part}")),
            rest,
        ),
    }
}

/// Objects are merged, anything else is replaced.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(key) {
                    Some(there) => merge(there, value),
                    None => {
                        into.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from.clone(),
    }
}
