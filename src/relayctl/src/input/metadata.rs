//! Types of the fields that every object has: an API server names them by the insides of a program in Go, without a line.

use serde_json::Value;

/// The first field of metadata that holds something else than it can, and what it must be.
pub(super) fn mistyped(metadata: &Value) -> Option<(String, &'static str)> {
    let fields = metadata.as_object()?;
    let present = fields.iter().filter(|(_, value)| !value.is_null());
    present
        .filter_map(|(field, value)| {
            let (below, why) = fault(field, value)?;
            Some((format!("metadata.{field}{below}"), why))
        })
        .next()
}

fn fault(field: &str, value: &Value) -> Option<(String, &'static str)> {
    let here = |why| Some((String::new(), why));
    match (field, value) {
        ("labels" | "annotations", Value::Object(map)) => {
            let (key, _) = map
                .iter()
                .find(|(_, value)| !value.is_string() && !value.is_null())?;
            Some((format!("[{key}]"), "must be a string; put it into quotes"))
        }
        ("labels" | "annotations", _) => here("must be a map of strings"),
        ("finalizers", Value::Array(items)) => {
            let at = items.iter().position(|item| !item.is_string())?;
            Some((format!("[{at}]"), "must be a string"))
        }
        ("ownerReferences" | "managedFields", Value::Array(items)) => {
            let at = items.iter().position(|item| !item.is_object())?;
            Some((format!("[{at}]"), "must be an object"))
        }
        ("finalizers" | "ownerReferences" | "managedFields", _) => here("must be a list"),
        ("generation" | "deletionGracePeriodSeconds", value) => match value.is_i64() {
            true => None,
            false => here("must be a whole number"),
        },
        (
            "generateName" | "selfLink" | "uid" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp",
            value,
        ) => match value.is_string() {
            true => None,
            false => here("must be a string; put it into quotes"),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_has_its_type() {
        for (metadata, expected) in [
            (json!(null), None),
            (
                json!({"name": "x", "labels": null, "annotations": {"a": "b"}, "finalizers": ["a/b"]}),
                None,
            ),
            (json!({"labels": []}), Some("metadata.labels")),
            (
                json!({"annotations": {"a": true}}),
                Some("metadata.annotations[a]"),
            ),
            (
                json!({"finalizers": ["a", 1]}),
                Some("metadata.finalizers[1]"),
            ),
            (json!({"finalizers": {}}), Some("metadata.finalizers")),
            (
                json!({"ownerReferences": [5]}),
                Some("metadata.ownerReferences[0]"),
            ),
            (json!({"generation": "1"}), Some("metadata.generation")),
            (
                json!({"resourceVersion": 7}),
                Some("metadata.resourceVersion"),
            ),
        ] {
            let found = mistyped(&metadata).map(|(field, _)| field);
            assert_eq!(found.as_deref(), expected, "{metadata}");
        }
    }
}
