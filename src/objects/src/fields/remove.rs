//! Fields taken out of an object: what a manager no longer applies and nobody else owns.

use serde_json::{Map as JsonMap, Value};

use super::element::PathElement;
use super::item::element_of;
use super::members::{members, name_parents};
use super::set::FieldSet;
use super::shape::{Grain, Items, List, Map, Shape, TypeId, View};

/// The object without these fields and items.
pub(super) fn remove(shape: &Shape, object: &Value, fields: &FieldSet) -> Value {
    remove_from(shape, Some(shape.root()), object, fields)
}

/// Null when nothing of a value is left, and for an atomic value that a path leads into: both as in the API server.
fn remove_from(shape: &Shape, type_: Option<TypeId>, value: &Value, fields: &FieldSet) -> Value {
    let Some(type_) = type_ else {
        return value.clone();
    };
    match (shape.view(type_, Some(value)), value) {
        (View::Scalar(_), value) => value.clone(),
        (
            View::List(List {
                items: Items::Atomic,
                ..
            }),
            _,
        ) => Value::Null,
        (
            View::Map(Map {
                grain: Grain::Atomic,
                ..
            }),
            _,
        ) => Value::Null,
        (View::List(list), Value::Array(items)) => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| remove_item(shape, list, item, fields))
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        (View::Map(map), Value::Object(object)) => {
            let mut kept = JsonMap::new();
            for (name, value) in object {
                let node = fields.get(&PathElement::field(name));
                let rest = match node {
                    None => value.clone(),
                    Some(node) if node.member => continue,
                    Some(node) => remove_from(shape, map.field(name), value, &node.below),
                };
                kept.insert(name.clone(), rest);
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        _ => Value::Null,
    }
}

fn remove_item(shape: &Shape, list: &List, item: &Value, fields: &FieldSet) -> Option<Value> {
    let node = element_of(list, item)
        .ok()
        .and_then(|element| fields.get(&element));
    match node {
        None => Some(item.clone()),
        Some(node) if node.member => None,
        Some(node) => Some(remove_from(shape, Some(list.element), item, &node.below)),
    }
}

/// `merged` without what `last` (the manager's former set) names and `owned` (every set now, the manager's new one
/// included) does not.
pub(super) fn prune(shape: &Shape, merged: Value, last: &FieldSet, owned: &FieldSet) -> Value {
    if last.difference(owned).is_empty() {
        return merged;
    }
    let named = |set: FieldSet| name_parents(shape, set);
    let last = named(last.clone());
    let everything = named(members(shape, &merged));
    let pruned = remove(shape, &merged, &last);
    let mut stays = named(members(shape, &pruned));
    stays.absorb(&named(owned.clone()));
    let pruned = remove(shape, &merged, &everything.difference(&stays));
    // What fell away with a parent, but was never the manager's, comes back.
    let mut gone = everything;
    gone.subtract(&named(members(shape, &pruned)));
    remove(shape, &merged, &gone.intersection(&last))
}
