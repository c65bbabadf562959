//! What is wrong with an event (`kubernetes/pkg/apis/core/validation/events.go`). Fields are called as events of core `v1`
//! call them, whatever version was sent, but for the controller.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{metadata, names};
use crate::catalog::View;
use crate::schema::{Cause, CauseReason};

/// Most bytes of texts.
const LIMITS: [(&str, usize); 3] = [("reportingInstance", 128), ("action", 128), ("reason", 128)];
const MAX_NOTE: usize = 1024;
/// Namespaces whose events may be about what is in no namespace.
const OF_THE_CLUSTER: [&str; 2] = ["default", "kube-system"];
/// What only events of core `v1` have.
const DEPRECATED: [(&str, &str); 4] = [
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
];

fn invalid(field: &str, value: &Value, detail: &str) -> Cause {
    Cause::with_value(CauseReason::Invalid, field.to_owned(), value, detail)
}

/// A cause that shows an empty text in the place of the value.
fn bad(field: &str, detail: &str) -> Cause {
    invalid(field, &"".into(), detail)
}

fn required(field: &str) -> Cause {
    Cause::without_value(CauseReason::Required, field.to_owned(), "")
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_default()
}

/// Nothing, zero, or a struct of such.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(fields) => fields.values().all(is_unset),
        Value::Bool(_) | Value::Array(_) => false,
    }
}

/// What is wrong with a new event.
pub(super) fn check(view: View, event: &Value) -> Vec<Cause> {
    let mut causes = check_any(view, event);
    if view == View::CoreEvent {
        return causes;
    }
    check_series(event, &mut causes);
    if is_unset(&event["eventTime"]) {
        causes.push(required("eventTime"));
    }
    let type_ = text(event, "type");
    if !matches!(type_, "Normal" | "Warning") {
        causes.push(bad("type", &format!("has invalid value: {type_}")));
    }
    let set = DEPRECATED
        .iter()
        .filter(|(sent, _)| !is_unset(&event[sent]));
    causes.extend(set.map(|(_, field)| bad(field, "needs to be unset")));
    causes
}

/// What every event must have.
fn check_any(view: View, event: &Value) -> Vec<Cause> {
    let (object, controller, note) = match view {
        View::Stored => ("regarding", "reportingController", "note"),
        View::CoreEvent => ("involvedObject", "reportingComponent", "message"),
    };
    let mut causes = Vec::new();
    let namespace = metadata::text(event, "namespace");
    let about = text(&event[object], "namespace");
    let has_time = !is_unset(&event["eventTime"]);
    let fits = match (about, has_time) {
        ("", true) => OF_THE_CLUSTER.contains(&namespace),
        ("", false) => matches!(namespace, "" | "default"),
        (about, false) => about == namespace,
        (_, true) => true,
    };
    if !fits {
        let field = "involvedObject.namespace";
        causes.push(invalid(
            field,
            &about.into(),
            "does not match event.namespace",
        ));
    }
    // What has no time is of before there were any of these.
    if !has_time {
        return causes;
    }
    let name = text(event, controller);
    if name.is_empty() {
        causes.push(required(controller));
    }
    let rule = names::label_key(name);
    causes.extend(
        rule.iter()
            .map(|detail| invalid(controller, &name.into(), detail)),
    );
    for (field, limit) in LIMITS {
        let value = text(event, field);
        if value.is_empty() {
            causes.push(required(field));
        }
        if value.len() > limit {
            causes.push(bad(field, &format!("can have at most {limit} characters")));
        }
    }
    if text(event, note).len() > MAX_NOTE {
        causes.push(bad(
            "message",
            &format!("can have at most {MAX_NOTE} characters"),
        ));
    }
    causes
}

fn check_series(event: &Value, causes: &mut Vec<Cause>) {
    let series = &event["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or(0) < 2 {
        causes.push(bad("series.count", "should be at least 2"));
    }
    if is_unset(&series["lastObservedTime"]) {
        causes.push(required("series.lastObservedTime"));
    }
}

/// What is wrong with a change: of an event only its series goes on.
pub(super) fn check_change(view: View, new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = check_any(view, new);
    if view == View::CoreEvent {
        return causes;
    }
    for (sent, field) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        // Told twice there.
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let (is, was) = (&new[sent], &old[sent]);
        if !same(is, was) {
            causes.push(Cause {
                reason: CauseReason::Invalid,
                message: format!("Invalid value: {}: field is immutable", shown(sent, is)),
                field: field.to_owned(),
            });
        }
    }
    check_series(new, &mut causes);
    causes
}

/// Whether both are one, in whatever words a time is written.
fn same(is: &Value, was: &Value) -> bool {
    let time = |value: &Value| {
        value
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
    };
    is == was
        || (is_unset(is) && is_unset(was))
        || time(is).is_some_and(|time_is| time(was) == Some(time_is))
}

/// A value as Go shows it: all fields of a struct, in their order there.
fn shown(field: &str, value: &Value) -> String {
    let order: &[(&str, &str)] = match field {
        "regarding" | "related" => &[
            ("Kind", "kind"),
            ("Namespace", "namespace"),
            ("Name", "name"),
            ("UID", "uid"),
            ("APIVersion", "apiVersion"),
            ("ResourceVersion", "resourceVersion"),
            ("FieldPath", "fieldPath"),
        ],
        "deprecatedSource" => &[("Component", "component"), ("Host", "host")],
        "deprecatedCount" => return value.as_i64().unwrap_or(0).to_string(),
        _ => return json!(value.as_str().unwrap_or_default()).to_string(),
    };
    if value.is_null() && field == "related" {
        return "null".to_owned();
    }
    let parts: Vec<String> = order
        .iter()
        .map(|(go, key)| format!("{go:?}:{}", json!(text(value, key))))
        .collect();
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Value {
        json!({"metadata": {"namespace": "n"}, "eventTime": "2026-01-01T00:00:00.000000Z", "note": "n", "type": "Normal",
            "reportingController": "relay-controller", "reportingInstance": "r", "action": "A", "reason": "R",
            "regarding": {"kind": "K", "name": "x", "namespace": "n"}})
    }

    #[test]
    fn what_an_event_lacks_is_told_in_the_words_of_kubernetes() {
        assert_eq!(check(View::Stored, &event()), []);
        for (field, value, wanted) in [
            ("eventTime", Value::Null, "eventTime: Required value"),
            (
                "type",
                json!("Alarm"),
                "type: Invalid value: \"\": has invalid value: Alarm",
            ),
            ("action", json!(""), "action: Required value"),
            (
                "note",
                json!("x".repeat(1025)),
                "message: Invalid value: \"\": can have at most 1024 characters",
            ),
            (
                "deprecatedCount",
                json!(1),
                "count: Invalid value: \"\": needs to be unset",
            ),
            (
                "regarding",
                json!({"kind": "K"}),
                "involvedObject.namespace: Invalid value: \"\": does not match event.namespace",
            ),
            (
                "series",
                json!({"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}),
                "series.count: Invalid value: \"\": should be at least 2",
            ),
        ] {
            let mut event = event();
            event[field] = value;
            let causes = check(View::Stored, &event).into_iter();
            let said: Vec<_> = causes
                .map(|cause| format!("{}: {}", cause.field, cause.message))
                .collect();
            assert_eq!(said, [wanted]);
        }
    }

    #[test]
    fn only_the_series_of_an_event_changes() {
        let old = event();
        let mut new = old.clone();
        new["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"});
        // The same time in other words.
        new["eventTime"] = "2026-01-01T01:00:00.000000+01:00".into();
        assert_eq!(check_change(View::Stored, &new, &old), []);
        new["regarding"]["name"] = "y".into();
        new["note"] = "m".into();
        let causes = check_change(View::Stored, &new, &old);
        assert_eq!(
            causes[0].message,
            "Invalid value: {\"Kind\":\"K\",\"Namespace\":\"n\",\"Name\":\"y\",\"UID\":\"\",\"APIVersion\":\"\",\
             \"ResourceVersion\":\"\",\"FieldPath\":\"\"}: field is immutable"
        );
        let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["involvedObject", "message"]);
    }
}
