//! What the kinds of Kubernetes have besides a schema: what the server fills in, and rules of their own.

use serde_json::{Value, json};

use super::{event, metadata};
use crate::catalog::{Nature, Resource};
use crate::schema::{Cause, CauseReason};

/// The label by which a namespace is selected.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Fills in what a new object of a kind always has.
pub(super) fn complete(nature: Nature, object: &mut Value) {
    if nature == Nature::Namespace {
        object["spec"] = json!({"finalizers": ["kubernetes"]});
        object["status"] = json!({"phase": "Active"});
    }
    keep(nature, object);
}

/// Puts back what a change cannot take away.
pub(super) fn keep(nature: Nature, object: &mut Value) {
    if nature == Nature::Namespace {
        let name = metadata::text(object, "name").to_owned();
        object["metadata"]["labels"][NAME_LABEL] = name.into();
    }
}

fn required(field: &str, detail: &str) -> Cause {
    Cause::without_value(CauseReason::Required, field.to_owned(), detail)
}

/// What is wrong with a new object.
pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    match (resource.nature, resource.view) {
        (Nature::Revision, _) => {
            let mut causes = revision(object);
            match &object["data"] {
                Value::Object(_) => {}
                Value::Null => causes.push(required("data", "data is mandatory")),
                _ => causes.push(required("data", "data must be a valid JSON object")),
            }
            causes
        }
        (Nature::Event, view) => event::check(view, object),
        _ => Vec::new(),
    }
}

/// What is wrong with a change.
pub(super) fn check_change(resource: &Resource, new: &Value, old: &Value) -> Vec<Cause> {
    match resource.nature {
        Nature::Event => return event::check_change(resource.view, new, old),
        Nature::Revision => {}
        Nature::Custom | Nature::Namespace => return Vec::new(),
    }
    let mut causes = revision(new);
    if new["data"] != old["data"] {
        causes.push(Cause::with_value(
            CauseReason::Invalid,
            "data".to_owned(),
            &new["data"],
            "field is immutable",
        ));
    }
    causes
}

fn revision(object: &Value) -> Vec<Cause> {
    let number = &object["revision"];
    let negative = number.as_i64().is_some_and(|number| number < 0);
    let cause = || {
        Cause::with_value(
            CauseReason::Invalid,
            "revision".to_owned(),
            number,
            "must be greater than or equal to 0",
        )
    };
    negative.then(cause).into_iter().collect()
}
