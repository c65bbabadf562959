//! The fields of `metadata`, which no CRD declares (`meta/v1` `ObjectMeta`). Only what is needed to name unknown ones.

use serde_json::Value;

/// What a field of metadata holds.
enum Shape {
    Struct(&'static [(&'static str, Shape)]),
    ListOf(&'static [(&'static str, Shape)]),
    /// A scalar, a map of strings, a list of strings or free JSON: nothing in it can be unknown.
    Leaf,
}

const OWNER_REFERENCE: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Leaf),
    ("kind", Shape::Leaf),
    ("name", Shape::Leaf),
    ("uid", Shape::Leaf),
    ("controller", Shape::Leaf),
    ("blockOwnerDeletion", Shape::Leaf),
];

const MANAGED_FIELDS: &[(&str, Shape)] = &[
    ("manager", Shape::Leaf),
    ("operation", Shape::Leaf),
    ("apiVersion", Shape::Leaf),
    ("time", Shape::Leaf),
    ("fieldsType", Shape::Leaf),
    ("fieldsV1", Shape::Leaf),
    ("subresource", Shape::Leaf),
];

const OBJECT_META: Shape = Shape::Struct(&[
    ("name", Shape::Leaf),
    ("generateName", Shape::Leaf),
    ("namespace", Shape::Leaf),
    ("selfLink", Shape::Leaf),
    ("uid", Shape::Leaf),
    ("resourceVersion", Shape::Leaf),
    ("generation", Shape::Leaf),
    ("creationTimestamp", Shape::Leaf),
    ("deletionTimestamp", Shape::Leaf),
    ("deletionGracePeriodSeconds", Shape::Leaf),
    ("labels", Shape::Leaf),
    ("annotations", Shape::Leaf),
    ("ownerReferences", Shape::ListOf(OWNER_REFERENCE)),
    ("finalizers", Shape::Leaf),
    ("managedFields", Shape::ListOf(MANAGED_FIELDS)),
]);

/// The decoder of the API server stops counting at this many.
const UNKNOWN_MAX: usize = 100;

/// Paths below `metadata` that `ObjectMeta` has no field for, in the order of their keys.
pub(super) fn unknown(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(metadata, &OBJECT_META, "metadata", &mut found);
    found.truncate(UNKNOWN_MAX);
    found
}

fn walk(value: &Value, shape: &Shape, path: &str, found: &mut Vec<String>) {
    match (shape, value) {
        (Shape::Struct(fields), _) => walk_fields(value, fields, path, found),
        (Shape::ListOf(fields), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                walk_fields(item, fields, &format!("{path}[{index}]"), found);
            }
        }
        (Shape::ListOf(_) | Shape::Leaf, _) => {}
    }
}

fn walk_fields(value: &Value, fields: &[(&str, Shape)], path: &str, found: &mut Vec<String>) {
    let Value::Object(map) = value else { return };
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort();
    for key in keys {
        let path = format!("{path}.{key}");
        match fields.iter().find(|(name, _)| name == key) {
            Some((_, shape)) => walk(&map[key], shape, &path, found),
            None => found.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_of_metadata_are_named_with_their_path() {
        let metadata = json!({
            "name": "x", "labels": {"any/thing": "v"}, "zone": 1, "clusterName": "c",
            "ownerReferences": [{"name": "o", "kinds": "x"}],
            "managedFields": [{"fieldsV1": {"f:spec": {}}}, {"who": "me"}],
        });
        assert_eq!(
            unknown(&metadata),
            [
                "metadata.clusterName",
                "metadata.managedFields[1].who",
                "metadata.ownerReferences[0].kinds",
                "metadata.zone"
            ]
        );
    }

    #[test]
    fn metadata_of_another_form_has_no_unknown_fields() {
        for metadata in [json!(null), json!([]), json!("x"), json!({"ownerReferences": {"a": 1}})] {
            assert!(unknown(&metadata).is_empty(), "{metadata}");
        }
    }
}
