//! Events of `events.k8s.io` and of core `v1` are the same objects under other names.

use serde_json::{Map, Value};

/// Fields as `events.k8s.io/v1` names them, and as core `v1` does.
const NAMES: [(&str, &str); 7] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// As core `v1` shows it. What `kubectl` sorts and prints by is filled from the newer fields where the older are missing.
pub(crate) fn to_core(event: Value) -> Value {
    let Value::Object(mut fields) = event else {
        return event;
    };
    for (stored, core) in NAMES {
        if let Some(value) = fields.remove(stored) {
            fields.insert(core.to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), "v1".into());
    fields
        .entry("involvedObject")
        .or_insert_with(|| Value::Object(Map::new()));
    for field in ["firstTimestamp", "lastTimestamp"] {
        fields.entry(field).or_insert(Value::Null);
    }
    fields
        .entry("source")
        .or_insert_with(|| Value::Object(Map::new()));
    Value::Object(fields)
}

/// As it is stored.
pub(crate) fn from_core(event: Value) -> Value {
    let Value::Object(mut fields) = event else {
        return event;
    };
    for (stored, core) in NAMES {
        if let Some(value) = fields.remove(core)
            && !value.is_null()
            && value.as_object().is_none_or(|object| !object.is_empty())
        {
            fields.insert(stored.to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), "events.k8s.io/v1".into());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_the_same_after_both_ways() {
        let stored = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello",
            "regarding": {"kind": "RoutingPolicy", "name": "default"}, "reportingController": "relay.dev/controller",
            "eventTime": "2026-11-30T12:00:00.000000Z", "type": "Normal", "reason": "PolicyAccepted",
        });
        let core = to_core(stored.clone());
        assert_eq!(core["message"], "hello");
        assert_eq!(core["involvedObject"]["name"], "default");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(from_core(core), stored);
    }
}
