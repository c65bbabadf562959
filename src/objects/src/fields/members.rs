//! From a value to the set of fields it names, and from the set of an old schema to that of the present one.

use serde_json::Value;

use super::element::PathElement;
use super::item::element_of;
use super::set::{FieldSet, Mark, Node};
use super::shape::{DEDUCED, Grain, Items, List, Map, Shape, TypeId, View};

/// Every leaf and list item that an object names.
pub(super) fn members(shape: &Shape, object: &Value) -> FieldSet {
    mark_of(shape, shape.root(), object).below
}

fn mark_of(shape: &Shape, type_: TypeId, value: &Value) -> Mark {
    let leaf = Mark {
        member: true,
        below: FieldSet::default(),
    };
    match (shape.view(type_, Some(value)), value) {
        (View::Scalar(_), _) => leaf,
        (
            View::List(List {
                items: Items::Atomic,
                ..
            }),
            _,
        ) => leaf,
        (
            View::Map(Map {
                grain: Grain::Atomic,
                ..
            }),
            _,
        ) => leaf,
        (View::List(list), Value::Array(items)) => items_of(shape, list, items),
        (View::Map(map), Value::Object(fields)) => {
            let mut mark = Mark::default();
            for (name, value) in fields {
                let named = map.named(name);
                let is_named = named.is_some();
                let (element, type_) = match (named, map.others) {
                    (Some((shared, type_)), _) => (PathElement::Field(shared.clone()), type_),
                    (None, Some(type_)) => (PathElement::field(name), type_),
                    (None, None) => continue,
                };
                let mut child = mark_of(shape, type_, value);
                let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                child.member |= empty || !is_named;
                mark.below.add(element, child);
            }
            mark
        }
        _ => Mark::default(),
    }
}

fn items_of(shape: &Shape, list: &List, items: &[Value]) -> Mark {
    let element = |item| element_of(list, item).ok().map(|element| (element, item));
    let mut found: Vec<(PathElement, &Value)> = items.iter().filter_map(element).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut mark = Mark::default();
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        // Of items with the same key only the place is owned.
        let mut child = match same {
            [(_, item)] => mark_of(shape, list.element, item),
            _ => Mark::default(),
        };
        child.member = true;
        mark.below.add(same[0].0.clone(), child);
    }
    mark
}

/// Makes the schema's fields on the way to a member members too: `a.b.c` also owns `a` where `a` is a field of a struct, and
/// not where it is the key of a map.
pub(super) fn name_parents(shape: &Shape, mut set: FieldSet) -> FieldSet {
    name_parents_below(shape, Some(shape.root()), &mut set);
    set
}

fn name_parents_below(shape: &Shape, type_: Option<TypeId>, set: &mut FieldSet) {
    let type_ = type_.map(|type_| shape.get(type_));
    let map = type_.and_then(|type_| type_.map.as_ref());
    let list = type_.and_then(|type_| type_.list.as_ref());
    for node in set.nodes_mut() {
        if node.below.is_empty() {
            continue;
        }
        let (named, below) = match &node.element {
            PathElement::Field(name) => match map.and_then(|map| map.named(name)) {
                Some((_, type_)) => (true, Some(type_)),
                None => (false, map.and_then(|map| map.others)),
            },
            PathElement::Key(_) => (false, list.map(|list| list.element)),
            PathElement::Value(_) | PathElement::Index(_) => (false, None),
        };
        node.member |= named;
        name_parents_below(shape, below, &mut node.below);
    }
}

/// The set after its places became atomic: who owned something below owns the place. `None` when nothing changed.
pub(super) fn reconcile(shape: &Shape, set: &FieldSet) -> Option<FieldSet> {
    collapse(shape, shape.root(), set)
}

fn collapse(shape: &Shape, type_: TypeId, set: &FieldSet) -> Option<FieldSet> {
    let type_ = shape.get(type_);
    let child_type = |element: &PathElement| match (&type_.map, &type_.list, element) {
        (Some(map), _, PathElement::Field(name)) => map.field(name),
        (Some(map), _, _) => map.others,
        (None, Some(list), _) => Some(list.element),
        (None, None, _) => None,
    };
    let collapsed =
        |node: &Node| child_type(&node.element).and_then(|type_| collapse_node(shape, type_, node));
    // Nearly always nothing changed, and then nothing is copied.
    let nodes = set.nodes();
    let first = nodes.iter().position(|node| collapsed(node).is_some())?;
    let (same, rest) = nodes.split_at(first);
    let rest = rest
        .iter()
        .map(|node| collapsed(node).unwrap_or_else(|| node.clone()));
    Some(FieldSet::from_nodes(same.iter().cloned().chain(rest)))
}

fn collapse_node(shape: &Shape, type_: TypeId, node: &Node) -> Option<Node> {
    let found = shape.get(type_);
    let whole = Node {
        member: true,
        below: FieldSet::default(),
        element: node.element.clone(),
    };
    match (&found.map, &found.scalar, &found.list) {
        (Some(_), ..) if type_ == DEDUCED => None,
        (Some(map), ..) if map.others == Some(DEDUCED) && map.fields.is_empty() => None,
        (
            Some(Map {
                grain: Grain::Atomic,
                ..
            }),
            ..,
        ) => (!node.below.is_empty()).then_some(whole),
        (
            None,
            None,
            Some(List {
                items: Items::Atomic,
                ..
            }),
        ) => (!node.below.is_empty()).then_some(whole),
        (Some(_), ..) | (None, None, Some(_)) => {
            collapse(shape, type_, &node.below).map(|below| Node {
                element: node.element.clone(),
                member: node.member,
                below,
            })
        }
        _ => None,
    }
}
