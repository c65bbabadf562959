//! The metadata every object has: reading it, and what `k8s.io/apimachinery/pkg/api/validation/objectmeta.go` refuses.

use serde_json::{Map, Value, json};

use super::names::{self, Extent};
use crate::schema::{Cause, CauseReason};

/// Most bytes of all annotations.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// A text of the metadata; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// What an object says it is: its `kind` or `apiVersion`; empty where it does not.
pub(crate) fn of_type<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// The metadata, which is made if it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = object
        .as_object_mut()
        .expect("made an object above")
        .entry("metadata")
        .or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Sets a field, or removes it where there is no value.
pub(crate) fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = of(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// Takes a field over from another state of the object.
pub(crate) fn carry(from: &Value, to: &mut Value, field: &str) {
    put(to, field, from["metadata"].get(field).cloned());
}

/// Finalizers in order.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array();
    let list = list.map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// Whether somebody asked for its end.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The generation; 0 where there is none.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Drops what the API server does not keep: nulls and empty values.
pub(crate) fn tidy(object: &mut Value) {
    of(object).retain(|field, value| match value {
        Value::Null => false,
        // An empty list of owners clears them.
        _ if field == "managedFields" => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
}

/// What Go says when a field of the metadata has another type than it should.
pub(crate) fn mistyped(object: &Value) -> Option<String> {
    let metadata = match &object["metadata"] {
        Value::Null => return None,
        Value::Object(metadata) => metadata,
        other => return Some(cannot_unmarshal(other, "v1.ObjectMeta")),
    };
    metadata
        .iter()
        .filter(|(_, value)| !value.is_null())
        .find_map(|(field, value)| mistyped_field(field, value))
}

fn mistyped_field(field: &str, value: &Value) -> Option<String> {
    let said = |value: &Value, path: &str, wanted: &str| Some(of_meta(value, path, wanted));
    match field {
        "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion"
        | "creationTimestamp" | "deletionTimestamp" => match value {
            Value::String(_) => None,
            other => said(other, field, "string"),
        },
        "generation" | "deletionGracePeriodSeconds" => match value.as_i64() {
            Some(_) => None,
            None => said(value, field, "int64"),
        },
        "labels" | "annotations" => match value {
            Value::Object(map) => map
                .values()
                .find(|value| !value.is_string() && !value.is_null())
                .and_then(|value| said(value, field, "string")),
            other => said(other, field, "map[string]string"),
        },
        "finalizers" => match value {
            Value::Array(items) => items
                .iter()
                .find(|item| !item.is_string())
                .and_then(|item| said(item, field, "string")),
            other => said(other, field, "[]string"),
        },
        "ownerReferences" => match value {
            Value::Array(items) => items.iter().find_map(mistyped_owner),
            other => said(other, field, "[]v1.OwnerReference"),
        },
        "managedFields" => match value {
            Value::Array(items) => items
                .iter()
                .find(|item| !item.is_object())
                .and_then(|item| said(item, field, "v1.ManagedFieldsEntry")),
            other => said(other, field, "[]v1.ManagedFieldsEntry"),
        },
        _ => None,
    }
}

fn mistyped_owner(owner: &Value) -> Option<String> {
    let Some(fields) = owner.as_object() else {
        return Some(of_meta(owner, "ownerReferences", "v1.OwnerReference"));
    };
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .find_map(|(field, value)| {
            let (good, wanted) = match field.as_str() {
                "controller" | "blockOwnerDeletion" => (value.is_boolean(), "bool"),
                "apiVersion" | "kind" | "name" | "uid" => (value.is_string(), "string"),
                _ => (true, ""),
            };
            let path = format!("ownerReferences.{field}");
            (!good).then(|| of_meta(value, &path, wanted))
        })
}

fn of_meta(value: &Value, path: &str, wanted: &str) -> String {
    cannot_unmarshal_field(value, "ObjectMeta", path, wanted)
}

/// What Go says of a value that is none of a type.
fn cannot_unmarshal(value: &Value, wanted: &str) -> String {
    let found = found(value);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The same of a field of a struct.
pub(crate) fn cannot_unmarshal_field(value: &Value, of: &str, path: &str, wanted: &str) -> String {
    let mut found = found(value).to_owned();
    // A number that is none of the wanted is told.
    if let (Value::Number(number), true) = (value, wanted.starts_with("int")) {
        found = format!("{found} {number}");
    }
    format!("json: cannot unmarshal {found} into Go struct field {of}.{path} of type {wanted}")
}

const fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn invalid(field: &str, value: &Value, detail: &str) -> Cause {
    Cause::with_value(
        CauseReason::Invalid,
        format!("metadata.{field}"),
        value,
        detail,
    )
}

/// `ValidateObjectMetaAccessor`: what any state of an object must satisfy.
pub(crate) fn check(
    object: &Value,
    namespaced: bool,
    name_rule: fn(&str, Extent) -> Vec<String>,
) -> Vec<Cause> {
    let mut wrong = Vec::new();
    let named = |field: &str, extent| {
        let value = text(object, field);
        name_rule(value, extent)
            .into_iter()
            .map(move |detail| invalid(field, &value.into(), &detail))
            .collect::<Vec<_>>()
    };
    if !text(object, "generateName").is_empty() {
        wrong.extend(named("generateName", Extent::Prefix));
    }
    if text(object, "name").is_empty() {
        wrong.push(Cause::without_value(
            CauseReason::Required,
            "metadata.name".to_owned(),
            "name or generateName is required",
        ));
    } else {
        wrong.extend(named("name", Extent::Whole));
    }
    let namespace = text(object, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => wrong.push(Cause::without_value(
            CauseReason::Required,
            "metadata.namespace".to_owned(),
            "",
        )),
        (true, false) => {
            let rule = names::label(namespace, Extent::Whole);
            wrong.extend(
                rule.iter()
                    .map(|detail| invalid("namespace", &namespace.into(), detail)),
            );
        }
        (false, false) => wrong.push(Cause::without_value(
            CauseReason::Forbidden,
            "metadata.namespace".to_owned(),
            "not allowed on this type",
        )),
        (false, true) => {}
    }
    let generation = generation(object);
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        wrong.push(invalid("generation", &generation.into(), detail));
    }
    labels(object, &mut wrong);
    annotations(object, &mut wrong);
    owners(object, &mut wrong);
    for name in finalizers(object) {
        let rule = names::label_key(name);
        wrong.extend(
            rule.iter()
                .map(|detail| invalid("finalizers", &name.into(), detail)),
        );
    }
    both_ways(object, &mut wrong);
    wrong
}

fn both_ways(object: &Value, wrong: &mut Vec<Cause>) {
    let all = finalizers(object);
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        wrong.push(invalid("finalizers", &json!(all), detail));
    }
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = object["metadata"][field].as_object();
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn labels(object: &Value, wrong: &mut Vec<Cause>) {
    for (key, value) in entries(object, "labels") {
        let key_rule = names::label_key(key);
        wrong.extend(
            key_rule
                .iter()
                .map(|detail| invalid("labels", &key.as_str().into(), detail)),
        );
        let value_rule = names::label_value(value);
        wrong.extend(
            value_rule
                .iter()
                .map(|detail| invalid("labels", &value.into(), detail)),
        );
    }
}

fn annotations(object: &Value, wrong: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in entries(object, "annotations") {
        size += key.len() + value.len();
        let rule = names::label_key(&key.to_lowercase());
        wrong.extend(
            rule.iter()
                .map(|detail| invalid("annotations", &key.as_str().into(), detail)),
        );
    }
    if size > MAX_ANNOTATIONS {
        wrong.push(Cause::without_value(
            CauseReason::TooLong,
            "metadata.annotations".to_owned(),
            &format!("may not be more than {MAX_ANNOTATIONS} bytes"),
        ));
    }
}

fn owners(object: &Value, wrong: &mut Vec<Cause>) {
    let all = &object["metadata"]["ownerReferences"];
    let list = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut controller = String::new();
    for owner in list {
        let of = |field: &str| owner[field].as_str().unwrap_or_default();
        let version = match of("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
            [version] | [_, version] => *version,
            _ => "",
        };
        for (field, part, detail) in [
            ("apiVersion", version, "version must not be empty"),
            ("kind", of("kind"), "must not be empty"),
            ("name", of("name"), "must not be empty"),
            ("uid", of("uid"), "must not be empty"),
        ] {
            if part.is_empty() {
                let path = format!("ownerReferences.{field}");
                wrong.push(invalid(&path, &of(field).into(), detail));
            }
        }
        if (of("apiVersion"), of("kind")) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            wrong.push(invalid("ownerReferences", owner, detail));
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", of("kind"), of("name"));
            if controller.is_empty() {
                controller = this;
            } else {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {controller} and {this}"
                );
                wrong.push(invalid("ownerReferences", all, &detail));
            }
        }
    }
}

/// `ValidateObjectMetaAccessorUpdate`: what a change must satisfy.
pub(crate) fn check_change(new: &Value, old: &Value) -> Vec<Cause> {
    let mut wrong = Vec::new();
    if is_deleting(old) {
        let before = finalizers(old);
        let mut added = finalizers(new);
        added.retain(|name| !before.contains(name));
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            wrong.push(Cause::without_value(
                CauseReason::Forbidden,
                "metadata.finalizers".to_owned(),
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    list.join(", ")
                ),
            ));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        wrong.push(invalid("resourceVersion", &"".into(), detail));
    }
    if generation(new) < generation(old) {
        let detail = "must not be decremented";
        wrong.push(invalid("generation", &generation(new).into(), detail));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (is, was) = (&new["metadata"][field], &old["metadata"][field]);
        if is != was {
            wrong.push(invalid(field, is, "field is immutable"));
        }
    }
    labels(new, &mut wrong);
    annotations(new, &mut wrong);
    owners(new, &mut wrong);
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_metadata_are_those_of_go() {
        for (metadata, said) in [
            (
                json!({"labels": {"a": "b"}, "creationTimestamp": null}),
                None,
            ),
            (
                json!({"labels": {"a": 1}}),
                Some(
                    "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
                ),
            ),
            (
                json!({"finalizers": "x"}),
                Some(
                    "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
                ),
            ),
            (
                json!({"generation": 1.5}),
                Some(
                    "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
                ),
            ),
            (
                json!([1]),
                Some("json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
            ),
        ] {
            let object = json!({"metadata": metadata});
            assert_eq!(mistyped(&object).as_deref(), said, "{object}");
        }
    }

    #[test]
    fn hostile_metadata_is_refused_with_its_path() {
        let long = "x".repeat(MAX_ANNOTATIONS);
        for (metadata, field) in [
            (json!({"name": "../etc"}), "metadata.name"),
            (
                json!({"name": "a", "labels": {"a/b/c": "d"}}),
                "metadata.labels",
            ),
            (
                json!({"name": "a", "labels": {"a": "\u{1b}[31m"}}),
                "metadata.labels",
            ),
            (
                json!({"name": "a", "annotations": {"a": long}}),
                "metadata.annotations",
            ),
            (
                json!({"name": "a", "finalizers": ["a b"]}),
                "metadata.finalizers",
            ),
            (
                json!({"name": "a", "ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}),
                "metadata.ownerReferences.apiVersion",
            ),
        ] {
            let mut object = json!({"metadata": metadata});
            put(&mut object, "namespace", Some("default".into()));
            let wrong = check(&object, true, names::subdomain);
            assert_eq!(
                wrong
                    .iter()
                    .map(|cause| cause.field.as_str())
                    .collect::<Vec<_>>(),
                [field],
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn what_never_changes_is_refused_by_name() {
        let old = json!({"metadata": {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5",
            "deletionTimestamp": "2026-11-30T12:00:00Z", "finalizers": ["x/a"], "generation": 2}});
        let mut new = old.clone();
        assert_eq!(check_change(&new, &old), []);
        new["metadata"]["uid"] = "2".into();
        new["metadata"]["generation"] = 1.into();
        new["metadata"]["finalizers"] = json!(["x/a", "x/b"]);
        let fields: Vec<_> = check_change(&new, &old)
            .into_iter()
            .map(|cause| cause.field)
            .collect();
        assert_eq!(
            fields,
            ["metadata.finalizers", "metadata.generation", "metadata.uid"]
        );
    }
}
