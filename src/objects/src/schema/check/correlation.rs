//! Which part of the old object a part of the new one was (`apiserver/pkg/cel/common/equality.go`). An update is not
//! refused for what it leaves as it was: faults of a part that equals its counterpart are dropped.

use serde_json::Value;

use super::super::node::{List, Node};

/// A part of the new object with its counterpart in the old.
#[derive(Clone, Copy)]
pub(in super::super) struct Pair<'a> {
    pub(in super::super) new: &'a Value,
    old: &'a Value,
    node: &'a Node,
}

impl<'a> Pair<'a> {
    pub(in super::super) const fn new(new: &'a Value, old: &'a Value, node: &'a Node) -> Self {
        Self { new, old, node }
    }

    /// The same field on both sides.
    pub(in super::super) fn key(&self, key: &str) -> Option<Self> {
        Some(Self { new: self.new.get(key)?, old: self.old.get(key)?, node: self.node.child(key)? })
    }

    /// An item and the one with its keys on the other side; items of other lists have no counterpart.
    pub(in super::super) fn index(&self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = counterpart(self.node, new, self.old.as_array()?)?;
        Some(Self { new, old, node: self.node.items.as_deref()? })
    }

    /// Equal as far as the schema can tell: lists with keys in any order, other lists in theirs.
    pub(in super::super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                new.len() == old.len()
                    && (0..new.len()).all(|index| match self.index(index) {
                        Some(child) => child.is_unchanged(),
                        None => !matches!(self.node.list, List::Map(_)) && new == old,
                    })
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|key| self.key(key).is_some_and(|child| child.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// The first item of an old list with the keys of `item`. Nothing where a key is missing or not a scalar.
pub(in super::super) fn counterpart<'a>(list: &Node, item: &Value, old: &'a [Value]) -> Option<&'a Value> {
    let List::Map(keys) = &list.list else { return None };
    let wanted = scalar_keys(item, keys)?;
    old.iter().find(|old| scalar_keys(old, keys).is_some_and(|found| found == wanted))
}

fn scalar_keys<'a>(item: &'a Value, keys: &[String]) -> Option<Vec<&'a Value>> {
    keys.iter()
        .map(|key| item.get(key).filter(|value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_))))
        .collect()
}
