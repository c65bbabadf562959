//! What the status of a server says.

use api::kinds::laya_server::{Target, Version};
use api::kinds::{ConditionStatus, LayaServerStatus};
use serde_json::{Value, json};

/// Status and reason of a condition.
pub(crate) fn condition(
    status: &LayaServerStatus,
    kind: &str,
) -> Option<(ConditionStatus, String)> {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind)?;
    Some((found.status, found.reason.clone()))
}

/// Message of a condition.
pub(crate) fn message(status: &LayaServerStatus, kind: &str) -> String {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    found.map_or_else(String::new, |condition| condition.message.clone())
}

/// Whether a condition holds.
pub(crate) fn holds(status: &LayaServerStatus, kind: &str) -> bool {
    condition(status, kind).is_some_and(|(status, _)| status == ConditionStatus::True)
}

/// Whether the rollout waits for, or does, this.
pub(crate) fn is_reason(reason: &str) -> impl Fn(&LayaServerStatus) -> bool + '_ {
    move |status| condition(status, "RolledOut").is_some_and(|(_, said)| said == reason)
}

/// Revisions and weights of the targets.
pub(crate) fn targets(status: &LayaServerStatus) -> Vec<(String, i32)> {
    let traffic = status.traffic.clone().unwrap_or_default();
    let target = |target: Target| {
        (
            target.revision.unwrap_or_default(),
            target.weight.unwrap_or(0),
        )
    };
    traffic.targets.into_iter().map(target).collect()
}

/// The revision of the champion.
pub(crate) fn champion(status: &LayaServerStatus) -> String {
    let champion = status.champion.clone().unwrap_or_default();
    champion.revision.unwrap_or_default()
}

/// Whether a model has all traffic.
pub(crate) fn serves(status: &LayaServerStatus, model: &str) -> bool {
    let named = status.champion.as_ref().and_then(|it| it.model.as_deref());
    named == Some(model) && targets(status) == [(champion(status), 100)] && holds(status, "Ready")
}

/// Whether no rollout is under way.
pub(crate) fn is_at_rest(status: &LayaServerStatus) -> bool {
    let state = status.rollout.as_ref().and_then(|rollout| rollout.state);
    state.is_none_or(|state| state.as_str() == "Done") && status.candidate.is_none()
}

/// What a failed wait shows of a server.
pub(crate) fn told(status: &LayaServerStatus) -> Value {
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|it| {
            format!(
                "{}={} {}: {}",
                it.type_,
                it.status.as_str(),
                it.reason,
                it.message
            )
        })
        .collect();
    json!({
        "conditions": conditions, "rollout": status.rollout, "traffic": status.traffic,
        "champion": status.champion, "candidate": status.candidate, "previous": status.previous,
        "rejected": status.rejected, "history": status.history, "wish": status.wish,
    })
}

/// What is left at the end of a story, but for times, addresses and uids.
pub(crate) fn end(status: &LayaServerStatus, children: &[String], stored: usize) -> Value {
    let version = |version: &Option<Version>| {
        let version = version.clone().unwrap_or_default();
        json!([version.model, version.digest])
    };
    let mut conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|it| format!("{}={} {}", it.type_, it.status.as_str(), it.reason))
        .collect();
    conditions.sort();
    let mut children = children.to_vec();
    children.sort();
    let weights: Vec<_> = targets(status).iter().map(|(_, weight)| *weight).collect();
    json!({
        "champion": version(&status.champion), "previous": version(&status.previous),
        "candidate": status.candidate.is_some(), "rejected": status.rejected.len(),
        "weights": weights, "conditions": conditions, "children": children, "stored": stored,
    })
}
