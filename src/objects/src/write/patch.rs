//! JSON patches, merge patches, and for the kinds of Kubernetes the little of strategic merge patches that their fields need.

use serde_json::{Map, Value};

use super::replace::change;
use super::{Call, named, read, unpatchable};
use crate::failure::Failure;
use crate::patch::{PatchError, json_patch, merge_patch};

/// What a client wants changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own; not for custom resources.
    Strategic(Value),
}

impl Patch {
    /// What it makes of an object.
    pub(crate) fn on(&self, object: &Value) -> Result<Value, Failure> {
        let patched = match self {
            Self::Json(patch) => json_patch(object, patch),
            Self::Merge(patch) => merge_patch(object, patch),
            Self::Strategic(patch) => return strategic(object, patch),
        };
        patched.map_err(|error| refused(&error))
    }
}

fn refused(error: &PatchError) -> Failure {
    match error {
        PatchError::Malformed(said) => Failure::bad_request(said.as_str()),
        PatchError::TooManyOperations { .. } => Failure::too_large(&error.to_string()),
        PatchError::DoesNotApply(_) => Failure::patch_rejected(),
    }
}

/// The object to store in the place of `current`.
pub(crate) fn patch(
    call: &Call<'_>,
    current: Option<&Value>,
    patch: &Patch,
) -> Result<Value, Failure> {
    let current = current.ok_or_else(|| call.not_found())?;
    let patched = patch.on(current)?;
    let mut new = patched.clone();
    read(call, &mut new).map_err(|why| unpatchable(&patched, why))?;
    named(call, &new)?;
    change(call, current, new)
}

/// Lists that are merged by their items, with the field that tells items apart; none for plain values.
const MERGED: [(&str, Option<&str>); 2] = [("finalizers", None), ("ownerReferences", Some("uid"))];

fn strategic(object: &Value, patch: &Value) -> Result<Value, Failure> {
    let Value::Object(patch) = patch else {
        return Err(Failure::bad_request("Invalid JSON Patch"));
    };
    let mut patch = patch.clone();
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
        for (list, key) in MERGED {
            merge_list(&mut object["metadata"], metadata, list, key);
        }
    }
    let mut patch = Value::Object(patch);
    without_directives(&mut patch);
    merge_patch(&object, &patch).map_err(|error| refused(&error))
}

/// Merges one list of the metadata and takes it out of the patch.
fn merge_list(metadata: &mut Value, patch: &mut Map<String, Value>, list: &str, key: Option<&str>) {
    let identity = |item: &Value| match key {
        Some(key) => item[key].clone(),
        None => item.clone(),
    };
    let mut items = metadata[list].as_array().cloned().unwrap_or_default();
    if let Some(Value::Array(gone)) = patch.remove(&format!("$deleteFromPrimitiveList/{list}")) {
        items.retain(|item| !gone.contains(item));
    }
    if let Some(Value::Array(sent)) = patch.get(list) {
        for item in sent {
            let same = items.iter().position(|old| identity(old) == identity(item));
            match (item["$patch"].as_str(), same) {
                (Some("delete"), Some(at)) => {
                    items.remove(at);
                }
                (_, Some(at)) => items[at] = item.clone(),
                (_, None) => items.push(item.clone()),
            }
        }
        patch.remove(list);
    }
    if metadata.is_object() && (!items.is_empty() || metadata.get(list).is_some()) {
        metadata[list] = items.into();
    }
}

fn without_directives(patch: &mut Value) {
    if let Value::Object(fields) = patch {
        fields.retain(|key, _| !key.starts_with('$'));
        fields.values_mut().for_each(without_directives);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategic_patch_merges_finalizers_and_owners() {
        let object = json!({"metadata": {"finalizers": ["a/x", "a/y"], "labels": {"a": "b"},
            "ownerReferences": [{"uid": "1", "name": "one"}]}});
        let patch = Patch::Strategic(json!({"metadata": {
            "$setElementOrder/finalizers": ["a/z"], "finalizers": ["a/z"], "$deleteFromPrimitiveList/finalizers": ["a/x"],
            "labels": {"c": "d"}, "ownerReferences": [{"uid": "1", "$patch": "delete"}, {"uid": "2", "name": "two"}],
        }}));
        assert_eq!(
            patch.on(&object).unwrap(),
            json!({"metadata": {"finalizers": ["a/y", "a/z"], "labels": {"a": "b", "c": "d"},
                "ownerReferences": [{"uid": "2", "name": "two"}]}})
        );
    }
}
