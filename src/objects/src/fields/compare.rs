//! What one object changes against another: fields removed, modified and added.

use serde_json::{Map as JsonMap, Value};

use super::element::{PathElement, same};
use super::item::element_of;
use super::set::{FieldSet, Mark};
use super::shape::{Grain, Items, List, Map, Shape, TypeId, View};

/// The outcome of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Changes {
    /// Without what a write leaves alone anyway.
    pub(super) fn without(self, reset: &FieldSet) -> Self {
        if reset.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.without_subtrees(reset),
            modified: self.modified.without_subtrees(reset),
            added: self.added.without_subtrees(reset),
        }
    }

    /// What the new object says otherwise than the old one.
    pub(super) fn written(&self) -> FieldSet {
        let mut written = self.modified.clone();
        written.absorb(&self.added);
        written
    }
}

/// Compares two objects of this shape; both must have passed [`check`](super::check::check).
pub(super) fn compare(shape: &Shape, old: &Value, new: &Value) -> Changes {
    let marks = compare_values(shape, shape.root(), Some(old), Some(new));
    Changes {
        removed: marks.removed.below,
        modified: marks.modified.below,
        added: marks.added.below,
    }
}

#[derive(Default)]
struct Marks {
    removed: Mark,
    modified: Mark,
    added: Mark,
}

/// Whether a place is one value.
#[derive(PartialEq, Eq)]
enum Place {
    Leaf,
    Branch,
}

fn compare_values(shape: &Shape, type_: TypeId, old: Option<&Value>, new: Option<&Value>) -> Marks {
    let mut marks = Marks::default();
    let place = match (old, new) {
        (Some(before), Some(after)) if !shape.same_view(type_, before, after) => {
            let _ = compare_as(shape, shape.view(type_, old), old, new, &mut marks);
            compare_as(shape, shape.view(type_, new), old, new, &mut marks)
        }
        (_, None) => compare_as(shape, shape.view(type_, old), old, new, &mut marks),
        (_, Some(_)) => compare_as(shape, shape.view(type_, new), old, new, &mut marks),
    };
    if place == Place::Branch {
        marks.added.member |= old.is_none();
        marks.removed.member |= old.is_some() && new.is_none();
    }
    marks
}

fn compare_as(
    shape: &Shape,
    view: View<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    marks: &mut Marks,
) -> Place {
    match view {
        View::Map(map) => {
            let (before, after) = (
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
            );
            let empty = |fields: Option<&JsonMap<_, _>>| fields.is_none_or(JsonMap::is_empty);
            if map.grain == Grain::Atomic || (empty(before) && empty(after)) {
                leaf(old, new, marks);
                return Place::Leaf;
            }
            fields(shape, map, before, after, marks);
            Place::Branch
        }
        View::List(list) => {
            let (before, after) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
            let empty = |items: Option<&Vec<_>>| items.is_none_or(Vec::is_empty);
            if matches!(list.items, Items::Atomic) || (empty(before) && empty(after)) {
                leaf(old, new, marks);
                return Place::Leaf;
            }
            items(
                shape,
                list,
                before.map(Vec::as_slice).unwrap_or_default(),
                after.map(Vec::as_slice).unwrap_or_default(),
                marks,
            );
            Place::Branch
        }
        View::Scalar(_) | View::Nothing => {
            leaf(old, new, marks);
            Place::Leaf
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>, marks: &mut Marks) {
    match (old, new) {
        (None, _) => marks.added.member = true,
        (_, None) => marks.removed.member = true,
        (Some(old), Some(new)) => marks.modified.member |= !same(old, new),
    }
}

impl Marks {
    fn add(&mut self, element: &PathElement, child: Self) {
        let Self {
            removed,
            modified,
            added,
        } = child;
        for (mine, theirs) in [
            (&mut self.removed, removed),
            (&mut self.modified, modified),
            (&mut self.added, added),
        ] {
            if !theirs.is_empty() {
                mine.below.add(element.clone(), theirs);
            }
        }
    }

    fn union(&mut self, other: &Self) {
        self.removed.union(&other.removed);
        self.modified.union(&other.modified);
        self.added.union(&other.added);
    }
}

fn fields(
    shape: &Shape,
    map: &Map,
    old: Option<&JsonMap<String, Value>>,
    new: Option<&JsonMap<String, Value>>,
    marks: &mut Marks,
) {
    let mut field = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        if old.is_some() && old == new {
            return;
        }
        if let Some(type_) = map.field(name) {
            let child = compare_values(shape, type_, old, new);
            marks.add(&map.element(name), child);
        }
    };
    for (name, value) in old.into_iter().flatten() {
        field(name, Some(value), new.and_then(|new| new.get(name)));
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            field(name, None, Some(value));
        }
    }
}

fn items(shape: &Shape, list: &List, old: &[Value], new: &[Value], marks: &mut Marks) {
    let (old, new) = (by_element(list, old), by_element(list, new));
    let (mut old, mut new) = (old.as_slice(), new.as_slice());
    // Both are sorted, so that items of one key stand at both beginnings.
    while let Some(element) = match (old.first(), new.first()) {
        (Some((a, _)), Some((b, _))) => Some(a.min(b)),
        (one, other) => one.or(other).map(|(element, _)| element),
    } {
        let (before, after);
        (before, old) = split_same(old, element);
        (after, new) = split_same(new, element);
        if let ([(_, before)], [(_, after)]) = (before, after)
            && before == after
        {
            continue;
        }
        marks.add(element, same_key(shape, list.element, before, after));
    }
}

type Item<'a> = (PathElement, &'a Value);

fn by_element<'a>(list: &List, items: &'a [Value]) -> Vec<Item<'a>> {
    let element = |item| element_of(list, item).ok().map(|element| (element, item));
    let mut found: Vec<Item<'a>> = items.iter().filter_map(element).collect();
    // Stable: items of one key keep their order.
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The items of a key at the beginning, and the others.
fn split_same<'a, 'b>(
    items: &'b [Item<'a>],
    element: &PathElement,
) -> (&'b [Item<'a>], &'b [Item<'a>]) {
    let end = items.iter().take_while(|(other, _)| other == element);
    items.split_at(end.count())
}

/// Items with one key. More than one of them are compared and owned as one value.
fn same_key(shape: &Shape, type_: TypeId, old: &[Item<'_>], new: &[Item<'_>]) -> Marks {
    let mut marks = match (old, new) {
        ([] | [_], [] | [_]) => {
            let (old, new) = (old.first(), new.first());
            return compare_values(shape, type_, old.map(|item| item.1), new.map(|item| item.1));
        }
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a.1, b.1));
            let mut marks = Marks::default();
            marks.modified.member = !equal;
            return marks;
        }
        (_, [(_, one)]) => compare_values(shape, type_, None, Some(one)),
        ([(_, one)], _) => compare_values(shape, type_, Some(one), None),
        _ => Marks::default(),
    };
    let mut place = Marks::default();
    if old.len() > 1 {
        place.removed.member = true;
    } else {
        place.added.member = true;
    }
    marks.union(&place);
    marks
}
