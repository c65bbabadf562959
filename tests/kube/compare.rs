//! Differences of two trees, and the list of those that are accepted.

use std::path::Path;

use api::document::read_yaml;
use serde::Deserialize;
use serde_json::Value;

/// Two servers that did not do the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Case and step.
    pub(crate) step: String,
    /// Where: `answer/details/causes/0/field`.
    pub(crate) at: String,
    pub(crate) real: Value,
    pub(crate) local: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            step,
            at,
            real,
            local,
        } = self;
        write!(
            f,
            "{step}\n    at {at}\n    real:  {real}\n    local: {local}"
        )
    }
}

/// A difference that is accepted, with its reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    /// Begin of case and step; empty for all.
    #[serde(default)]
    steps: String,
    /// Begin of the place.
    at: String,
    /// What both sides have there, where a place alone says too little.
    real: Option<Value>,
    local: Option<Value>,
    reason: String,
}

impl Accepted {
    fn covers(&self, difference: &Difference) -> bool {
        let same = |wanted: &Option<Value>, is: &Value| wanted.as_ref().is_none_or(|it| it == is);
        difference.step.starts_with(&self.steps)
            && difference.at.starts_with(&self.at)
            && same(&self.real, &difference.real)
            && same(&self.local, &difference.local)
    }
}

/// Reads a list of accepted differences.
pub(crate) fn accepted(path: &Path) -> Vec<Accepted> {
    let tree = read_yaml(&std::fs::read_to_string(path).unwrap()).unwrap();
    let list: Vec<Accepted> = serde_path_to_error::deserialize(tree).unwrap();
    assert!(
        list.iter().all(|entry| entry.reason.len() > 20),
        "a reason is a sentence"
    );
    list
}

/// Fails with every difference that nobody accepted, and every accepted one that is none any more.
pub(crate) fn judge(differences: &[Difference], accepted: &[Accepted]) {
    let new: Vec<_> = differences
        .iter()
        .filter(|found| !accepted.iter().any(|entry| entry.covers(found)))
        .map(ToString::to_string)
        .collect();
    let stale: Vec<_> = accepted
        .iter()
        .filter(|entry| !differences.iter().any(|found| entry.covers(found)))
        .collect();
    assert!(
        new.is_empty(),
        "{} differences nobody accepted:\n{}",
        new.len(),
        new.join("\n")
    );
    assert!(
        stale.is_empty(),
        "accepted, and no difference any more: {stale:#?}"
    );
}

/// The smallest places where two trees differ.
pub(crate) fn compare(step: &str, real: &Value, local: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(step, "", real, local, &mut found);
    found
}

fn walk(step: &str, at: &str, real: &Value, local: &Value, found: &mut Vec<Difference>) {
    let below = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}/{key}"),
    };
    match (real, local) {
        (real, local) if real == local => {}
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut keys: Vec<_> = ours.keys().chain(theirs.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                // A null is not the same as nothing.
                let nothing = Value::from("<absent>");
                let real = ours.get(key).unwrap_or(&nothing);
                let local = theirs.get(key).unwrap_or(&nothing);
                walk(step, &below(key), real, local, found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (real, local)) in ours.iter().zip(theirs).enumerate() {
                walk(step, &below(&index.to_string()), real, local, found);
            }
        }
        _ => found.push(Difference {
            step: step.to_owned(),
            at: at.to_owned(),
            real: real.clone(),
            local: local.clone(),
        }),
    }
}
