//! Conditions of an object (control-plane 1.3), read from its tree: an object of a newer release may have others.

use jiff::Timestamp;
use serde_json::Value;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) observed_generation: Option<i64>,
}

impl Condition {
    pub(crate) fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// Those of an object, in its order.
pub(crate) fn of(object: &Value) -> Vec<Condition> {
    let text =
        |condition: &Value, name: &str| condition[name].as_str().unwrap_or_default().to_owned();
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .map(|condition| Condition {
            kind: text(condition, "type"),
            status: text(condition, "status"),
            reason: text(condition, "reason"),
            message: text(condition, "message"),
            since: text(condition, "lastTransitionTime").parse().ok(),
            observed_generation: condition["observedGeneration"].as_i64(),
        })
        .collect()
}

/// The condition of a type; types are compared as `kubectl wait` does, without regard to case.
pub(crate) fn find(object: &Value, kind: &str) -> Option<Condition> {
    of(object)
        .into_iter()
        .find(|condition| condition.kind.eq_ignore_ascii_case(kind))
}

/// Whether the status speaks of the spec as it is now.
pub(crate) fn is_current(object: &Value) -> bool {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    let observed = object["status"]["observedGeneration"].as_i64();
    observed.is_some_and(|observed| observed >= generation)
}

/// Where an object stands after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It does its work.
    Ready,
    /// Only a change by somebody helps.
    Stalled(Condition),
    /// Not yet; says what was last heard.
    Waiting(String),
}

/// Reads where an object stands, as kstatus does.
pub(crate) fn settled(object: &Value) -> Settled {
    if !is_current(object) {
        return Settled::Waiting("no controller has looked at this generation yet".to_owned());
    }
    if let Some(stalled) = find(object, "Stalled").filter(Condition::is_true) {
        return Settled::Stalled(stalled);
    }
    match find(object, "Ready") {
        Some(ready) if ready.is_true() => Settled::Ready,
        Some(ready) => Settled::Waiting(format!(
            "Ready is {} ({}): {}",
            ready.status, ready.reason, ready.message
        )),
        None => Settled::Waiting("it has no condition Ready yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(observed: i64, conditions: &Value) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed, "conditions": conditions}})
    }

    #[test]
    fn a_status_of_an_older_spec_says_nothing() {
        let ready =
            json!([{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}]);
        assert!(matches!(settled(&object(1, &ready)), Settled::Waiting(_)));
        assert_eq!(settled(&object(2, &ready)), Settled::Ready);
        assert!(matches!(
            settled(&json!({"metadata": {"generation": 1}})),
            Settled::Waiting(_)
        ));
    }

    #[test]
    fn stalled_wins_over_waiting() {
        let conditions = json!([
            {"type": "Ready", "status": "False", "reason": "BadPattern", "message": "m"},
            {"type": "Stalled", "status": "True", "reason": "BadPattern", "message": "m", "lastTransitionTime": "2026-11-30T10:00:00Z"}]);
        let Settled::Stalled(condition) = settled(&object(2, &conditions)) else {
            panic!("not stalled")
        };
        assert_eq!(condition.reason, "BadPattern");
        assert!(condition.since.is_some());
        let waiting =
            json!([{"type": "Ready", "status": "Unknown", "reason": "Waiting", "message": "m"}]);
        assert!(matches!(settled(&object(2, &waiting)), Settled::Waiting(_)));
    }
}
