//! Items of sets and of lists with keys are there once (`apiextensions-apiserver/pkg/apiserver/schema/listtype`).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::cause::{Cause, CauseReason};
use super::super::go_text;
use super::super::node::{List, Node};
use super::super::path::Path;

/// Looks for duplicates everywhere in a value.
pub(in super::super) fn check(node: &Node, path: &Path<'_>, value: &Value, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(child) = node.properties.get(key) {
                    check(child, &path.field(key), value, causes);
                } else if let Some(child) = node.additional.schema() {
                    check(child, &path.entry(key), value, causes);
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                List::Atomic => {}
                List::Set => report(items, path, causes),
                List::Map(keys) => check_keys(items, keys, path, causes),
            }
            if let Some(child) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    check(child, &path.item(index), item, causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_keys(items: &[Value], keys: &[String], path: &Path<'_>, causes: &mut Vec<Cause>) {
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        causes.push(Cause::with_value(CauseReason::Invalid, path.item(index).bracketed(), item, detail));
        return;
    }
    let keyed: Vec<Value> = items
        .iter()
        .map(|item| {
            let fields = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(fields.collect::<Map<_, _>>())
        })
        .collect();
    report(&keyed, path, causes);
}

/// A value that comes back is reported once, however often it does.
fn report(items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        // 1 and 1.0 are two values in Go, so the type is part of the identity
        let times = seen.entry(format!("{} {}", go_text::type_name(item), go_text::json(item))).or_insert(0);
        *times += 1;
        if *times == 2 {
            causes.push(Cause::with_value(CauseReason::Duplicate, path.item(index).bracketed(), item, ""));
        }
    }
}
