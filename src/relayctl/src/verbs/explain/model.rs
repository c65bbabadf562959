//! The chain of a LayaModel: its files, the fetch, the last failure, and who has it.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::serving::{remedy, role};
use super::{Because, Deadline, Explanation};
use crate::conditions;
use crate::facts::{self, Model, is_deleting, time};
use crate::kinds;
use crate::verbs::rollout::minute;

/// Default of `spec.fetch.deadlineSeconds`.
const DEADLINE_SECONDS: i64 = 3600;

/// Adds what is known of a model; `servers` are all LayaServers of its namespace.
pub(super) fn explain(
    explanation: &mut Explanation,
    object: &Value,
    servers: &[Value],
    now: Timestamp,
) {
    let model = Model(object);
    if !model.is_ready() {
        explanation.because.extend(fetch(model, now));
        explanation.deadline = deadline(model, now);
    }
    let uses: Vec<_> = servers
        .iter()
        .filter_map(|server| role(server, model.name()))
        .collect();
    if !uses.is_empty() {
        explanation
            .because
            .push(Because::new("in use", uses.join(", ")));
    }
    explanation.next.extend(helps(model, &uses));
    if is_deleting(object) && !uses.is_empty() {
        explanation.waits_for = uses.join(", ");
    }
}

/// How it is, as a link of a server's chain.
pub(super) fn state(model: Model<'_>) -> Because {
    let brief = kinds::laya_model().brief(model.name());
    let condition = conditions::find(model.0, "Stalled")
        .filter(|stalled| stalled.is_true())
        .or_else(|| conditions::find(model.0, "Ready"));
    let phase = model.phase();
    match condition {
        Some(condition) => Because {
            fact: format!("{brief} is {phase} ({})", condition.reason),
            message: condition.message,
            since: condition.since,
        },
        None if model.is_suspended() => Because::new(
            format!("{brief} is {phase}"),
            "spec.suspend is set, so nothing is fetched",
        ),
        None => Because::new(
            format!("{brief} is {phase}"),
            "no controller has looked at it yet",
        ),
    }
}

/// The fetch that runs, or what went wrong last.
pub(super) fn fetch(model: Model<'_>, now: Timestamp) -> Vec<Because> {
    let Some(fetch) = model.fetch() else {
        return Vec::new();
    };
    let mut links = vec![Because {
        // Before the first has begun there is none to count.
        fact: match fetch.attempt {
            0 => "fetch".to_owned(),
            attempt => format!("fetch, attempt {attempt}"),
        },
        message: format!(
            "{} of {} are here",
            facts::bytes(fetch.done),
            facts::bytes(fetch.total)
        ),
        since: time(&model.0["status"]["fetch"]["startedAt"]),
    }];
    if let Some((reason, message)) = fetch.error {
        let next = fetch.next_attempt.filter(|next| *next > now);
        let again = next.map_or(String::new(), |next| format!("; again at {}", minute(next)));
        links.push(Because {
            fact: format!("last failure ({reason})"),
            message: format!("{message}{again}"),
            since: time(&model.0["status"]["fetch"]["lastError"]["at"]),
        });
    }
    links
}

/// What comes next by the clock.
pub(super) fn deadline(model: Model<'_>, now: Timestamp) -> Option<Deadline> {
    let next = model.fetch()?.next_attempt.filter(|next| *next > now);
    if let Some(at) = next {
        return Some(Deadline {
            what: "the next attempt".to_owned(),
            at,
        });
    }
    if !matches!(model.phase(), "Fetching" | "Repairing") {
        return None;
    }
    let seconds = model.0["spec"]["fetch"]["deadlineSeconds"]
        .as_i64()
        .unwrap_or(DEADLINE_SECONDS);
    let began = time(&model.0["status"]["fetch"]["startedAt"])?;
    let at = began.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(Deadline {
        what: "the fetch is given up".to_owned(),
        at,
    })
}

/// What to do, in order.
fn helps(model: Model<'_>, uses: &[String]) -> Vec<String> {
    let name = model.name();
    if is_deleting(model.0) {
        return match uses.is_empty() {
            true => Vec::new(),
            false => vec![
                "give those servers another version: `relayctl use NAME --server SERVER`"
                    .to_owned(),
            ],
        };
    }
    if model.is_suspended() && !model.is_ready() {
        return vec![format!("`relayctl model fetch {name}`")];
    }
    let mut next = Vec::new();
    if let Some(trouble) = model
        .trouble()
        .filter(|trouble| trouble.kind == "Stalled" || model.phase() == "Failed")
    {
        next.extend(remedy(&trouble.reason).map(str::to_owned));
        next.push(format!("`relayctl model fetch {name}` tries it again"));
    }
    let verified = conditions::find(model.0, "Verified");
    if verified.is_some_and(|verified| verified.reason == "ContractUnverified") {
        next.push(format!("`relayctl model import {name} --decisions FILE` says which questions it was trained for"));
    }
    next
}
