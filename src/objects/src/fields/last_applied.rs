//! The way from client-side to server-side apply of kubectl: its annotation with the last configuration says which
//! conflicts are with itself, and is kept up to date so that the way back is open too.

use serde_json::{Map, Value};

use super::check::{Duplicates, check};
use super::compare::compare;
use super::conflict::Conflicts;
use super::members::members;
use super::set::{FieldSet, path_text};
use super::shape::Shape;
use super::text;

/// The manager for whom the annotation is looked at.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How long all names and values of annotations may be together.
const ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The conflicts that remain when those with kubectl's own client-side apply are left out.
pub(super) fn without_allowed(
    shape: &Shape,
    live: &Value,
    conflicts: Conflicts,
    api_version: &str,
) -> Conflicts {
    let Some(allowed) = allowed(shape, live, api_version) else {
        return conflicts;
    };
    let allowed: Vec<String> = allowed.paths().iter().map(|path| path_text(path)).collect();
    let left = conflicts
        .0
        .into_iter()
        .filter(|conflict| !allowed.contains(&conflict.field));
    Conflicts(left.collect())
}

/// What the last configuration names and the live object still has as it was there.
fn allowed(shape: &Shape, live: &Value, api_version: &str) -> Option<FieldSet> {
    let text = annotations(live)?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"] != api_version {
        return None;
    }
    check(shape, live, Duplicates::Refused).ok()?;
    check(shape, &last, Duplicates::Refused).ok()?;
    let changes = compare(shape, &last, live);
    let set = members(shape, &last)
        .difference(&changes.written())
        .difference(&changes.removed);
    Some(set)
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/annotations")?.as_object()
}

/// Writes the configuration into the annotation, where the object has one that is not empty.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let has_one = annotations(object)
        .and_then(|annotations| annotations.get(ANNOTATION)?.as_str())
        .is_some_and(|text| !text.is_empty());
    if !has_one {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    annotations.insert(
        ANNOTATION.into(),
        format!("{}\n", text::json(&config)).into(),
    );
    let bytes: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    }
}
