//! The applied configuration laid over the live object: nothing is removed, the configuration's values win, and items of
//! list maps and sets take the configuration's order where it names them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value};

use super::element::PathElement;
use super::item::element_of;
use super::shape::{Grain, Items, List, Map, Shape, TypeId, View};

/// Merges two objects that have passed [`check`](super::check::check).
pub(super) fn merge(shape: &Shape, live: &Value, config: &Value) -> Value {
    merge_values(shape, shape.root(), Some(live), Some(config)).unwrap_or(Value::Null)
}

fn merge_values(
    shape: &Shape,
    type_: TypeId,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    let whole = || config.or(live).cloned();
    match shape.view(type_, config.or(live)) {
        View::Scalar(_) | View::Nothing => whole(),
        View::Map(map) => {
            let (old, new) = (
                live.and_then(Value::as_object),
                config.and_then(Value::as_object),
            );
            let empty = |fields: Option<&JsonMap<_, _>>| fields.is_none_or(JsonMap::is_empty);
            if map.grain == Grain::Atomic || (empty(old) && empty(new)) {
                return whole();
            }
            merge_fields(shape, map, old, new)
        }
        View::List(list) => {
            let (old, new) = (
                live.and_then(Value::as_array),
                config.and_then(Value::as_array),
            );
            let empty = |items: Option<&Vec<_>>| items.is_none_or(Vec::is_empty);
            if matches!(list.items, Items::Atomic) || (empty(old) && empty(new)) {
                return whole();
            }
            let old = old.map(Vec::as_slice).unwrap_or_default();
            let new = new.map(Vec::as_slice).unwrap_or_default();
            let merged = Lists::new(shape, list, old, new).merge();
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
    }
}

fn merge_fields(
    shape: &Shape,
    map: &Map,
    old: Option<&JsonMap<String, Value>>,
    new: Option<&JsonMap<String, Value>>,
) -> Option<Value> {
    let mut out = JsonMap::new();
    for (name, value) in old.into_iter().flatten() {
        let theirs = new.and_then(|new| new.get(name));
        let merged = match (theirs, map.field(name)) {
            // Nothing to merge with: as it is, without a walk.
            (None, _) => Some(value.clone()),
            (Some(theirs), Some(type_)) => merge_values(shape, type_, Some(value), Some(theirs)),
            (Some(theirs), None) => Some(theirs.clone()),
        };
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            let merged = match map.field(name) {
                Some(type_) => merge_values(shape, type_, None, Some(value)),
                None => Some(value.clone()),
            };
            out.extend(merged.map(|merged| (name.clone(), merged)));
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// Two lists with the element of each item.
struct Lists<'a> {
    shape: &'a Shape,
    list: &'a List,
    old: Vec<(PathElement, &'a Value)>,
    new: Vec<(PathElement, &'a Value)>,
    /// Items of the live list by element; `Null` for an element that is there more than once, which is never merged.
    old_by_element: BTreeMap<PathElement, &'a Value>,
    new_elements: BTreeSet<PathElement>,
}

impl<'a> Lists<'a> {
    fn new(shape: &'a Shape, list: &'a List, old: &'a [Value], new: &'a [Value]) -> Self {
        let pairs = |items: &'a [Value]| -> Vec<(PathElement, &'a Value)> {
            let pair = |item| element_of(list, item).ok().map(|element| (element, item));
            items.iter().filter_map(pair).collect()
        };
        let (old, new) = (pairs(old), pairs(new));
        let mut old_by_element = BTreeMap::new();
        for (element, item) in &old {
            old_by_element
                .entry(element.clone())
                .and_modify(|item| *item = &Value::Null)
                .or_insert(*item);
        }
        let new_elements = new.iter().map(|(element, _)| element.clone()).collect();
        Self {
            shape,
            list,
            old,
            new,
            old_by_element,
            new_elements,
        }
    }

    fn item(&self, old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
        merge_values(self.shape, self.list.element, old, new)
    }

    /// Walks both lists at once. Items that both have come in the new order; items of the old list alone keep their place
    /// before the next shared item.
    fn merge(&self) -> Vec<Value> {
        let mut out = Vec::with_capacity(self.old.len().max(self.new.len()));
        let shared =
            |(element, _): &&(PathElement, &Value)| self.old_by_element.contains_key(element);
        let mut shared_order = self.new.iter().filter(shared).map(|(element, _)| element);
        let mut next_shared = shared_order.next();
        let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
        let (mut at_old, mut at_new) = (0, 0);
        while at_old < self.old.len() || at_new < self.new.len() {
            let (old, new) = (self.old.get(at_old), self.new.get(at_new));
            if let (Some((old, _)), Some((new, theirs))) = (old, new) {
                if old == new {
                    merged.insert(new);
                    let mine = self.old_by_element.get(old).copied();
                    out.extend(self.item(mine, Some(theirs)));
                    at_old += 1;
                    at_new += 1;
                    next_shared = shared_order.next();
                    continue;
                }
                if self.new_elements.contains(old) && next_shared.is_some_and(|next| next != old) {
                    // Shared, but its turn comes later.
                    at_old += 1;
                    continue;
                }
            }
            if let Some((old, mine)) = old {
                if !self.new_elements.contains(old) {
                    out.extend(self.item(Some(mine), None));
                    at_old += 1;
                    continue;
                }
                if merged.contains(old) {
                    at_old += 1;
                }
            }
            if let Some((new, theirs)) = new {
                merged.insert(new);
                let mine = self.old_by_element.get(new).copied();
                out.extend(self.item(mine, Some(theirs)));
                at_new += 1;
                if next_shared == Some(new) {
                    next_shared = shared_order.next();
                }
            }
        }
        out
    }
}
