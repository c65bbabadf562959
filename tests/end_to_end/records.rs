//! Decision records compared: what two decisions of the same request must share, whoever made them.

use serde_json::{Map, Value};

/// What no two decisions can share: their ids, their time, how long they took.
const ALWAYS: &[&str] = &[
    "/id",
    "/task_id",
    "/parent_id",
    "/created",
    "/provenance/timings_ms",
    // Whether a router was asked is the difference under test; callers check it by itself.
    "/provenance/fallback",
];

/// The record without what cannot be the same.
pub(crate) fn facts(record: &Value) -> Value {
    without(record, ALWAYS)
}

/// The record without these fields, which must be there.
pub(crate) fn without(record: &Value, paths: &[&str]) -> Value {
    let mut record = record.clone();
    for path in paths {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent: &mut Map<_, _> = record.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        assert!(parent.remove(name).is_some(), "no {path} in {parent:?}");
    }
    record
}

/// Why the decision model did not judge.
pub(crate) fn fallback(record: &Value) -> &str {
    record["provenance"]["fallback"].as_str().unwrap_or("none")
}

/// For each decision of a run the number of the one it follows, and of the first of its task.
pub(crate) fn links(records: &[Value]) -> Vec<(Option<usize>, usize)> {
    let first_with = |field: &str, id: &Value| records.iter().position(|r| r[field] == *id);
    records
        .iter()
        .map(|record| {
            let parent = &record["parent_id"];
            let parent = (!parent.is_null()).then(|| first_with("id", parent).unwrap());
            (parent, first_with("task_id", &record["task_id"]).unwrap())
        })
        .collect()
}
