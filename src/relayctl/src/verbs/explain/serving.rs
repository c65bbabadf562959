//! The chain of a LayaServer: what serves, what is wished, the model behind the wish, the fetch behind the model, and where
//! the rollout stands.

use jiff::Timestamp;
use serde_json::Value;

use super::{Because, Deadline, Explanation, model};
use crate::facts::{self, Laya, Model, Pause, short, text, time};
use crate::kinds;
use crate::verbs::rollout;
use api::reason::Reason;

/// Adds what is known of a server; `beside` is the LayaModel of its wish, if that is there.
pub(super) fn explain(
    explanation: &mut Explanation,
    object: &Value,
    beside: Option<&Value>,
    now: Timestamp,
) {
    let laya = Laya(object);
    explanation.because.extend(serving(laya));
    explanation.because.extend(traffic(laya));
    explanation.because.extend(restarts(laya));
    if let Some(url) = laya.external() {
        explanation.because.push(Because::new(
            "external",
            format!("the server at {url} is used; modelRef waits until `relayctl adopt --replace`"),
        ));
    } else {
        wish(explanation, laya, beside, now);
    }
    going(explanation, laya, now);
    explanation.next.extend(helps(laya, beside));
}

/// What serves, and what it could go back to.
fn serving(laya: Laya<'_>) -> Option<Because> {
    let champion = laya.champion()?;
    let device = champion
        .device()
        .map_or(String::new(), |device| format!(" on {device}"));
    let speed = champion
        .p50_millis()
        .map_or(String::new(), |p50| format!(", {p50} ms a question"));
    let back = laya.previous().map_or(String::new(), |previous| {
        format!(", previous {}", previous.title())
    });
    Some(Because {
        fact: "serves".to_owned(),
        message: format!("{}{device}{speed}{back}", champion.title()),
        since: champion.since(),
    })
}

fn traffic(laya: Laya<'_>) -> Option<Because> {
    let traffic = &laya.0["status"]["traffic"];
    let none = traffic.is_object() && traffic["targets"].as_array().is_none_or(Vec::is_empty);
    none.then(|| {
        let reason =
            text(&traffic["reason"]).map_or(String::new(), |reason| format!(" ({reason})"));
        Because::new("traffic", format!("nobody has it{reason}; rules answer"))
    })
}

fn restarts(laya: Laya<'_>) -> Option<Because> {
    let restarts = &laya.0["status"]["restarts"];
    let count = restarts["count"].as_u64().filter(|count| *count > 0)?;
    let reason = text(&restarts["lastReason"]).unwrap_or("for no known reason");
    let code = restarts["lastExitCode"]
        .as_i64()
        .map_or(String::new(), |code| format!(", exit code {code}"));
    Some(Because {
        fact: "restarts".to_owned(),
        message: format!("{count}, the last {reason}{code}"),
        since: time(&restarts["since"]),
    })
}

/// The wish and what is behind it, where it does not serve yet.
fn wish(explanation: &mut Explanation, laya: Laya<'_>, beside: Option<&Value>, now: Timestamp) {
    let wish = &laya.0["status"]["wish"];
    let wished = text(&wish["model"]).or(laya.wished()).unwrap_or("nothing");
    let is_served = laya
        .champion()
        .is_some_and(|champion| champion.model() == wished);
    if is_served && laya.open_rollout().is_none() {
        return;
    }
    let from = match text(&wish["from"]) {
        Some("Spec") | None => "by spec.modelRef".to_owned(),
        Some(other) => format!("by {other}"),
    };
    explanation.because.push(Because {
        fact: "wish".to_owned(),
        message: format!("{wished}, {from}"),
        since: time(&wish["since"]),
    });
    let brief = kinds::laya_model().brief(wished);
    match beside {
        None => explanation
            .because
            .push(Because::new(brief, "is not there")),
        Some(object) if !Model(object).is_ready() => {
            explanation.because.push(model::state(Model(object)));
            explanation.because.extend(model::fetch(Model(object), now));
            if explanation.deadline.is_none() {
                explanation.deadline = model::deadline(Model(object), now);
            }
        }
        Some(_) => {}
    }
    let digest = beside.and_then(|object| Model(object).digest());
    if let Some(rejected) = digest
        .as_deref()
        .and_then(|digest| laya.rejection_of(digest))
    {
        let revision = text(&rejected["revision"]).unwrap_or("unknown");
        explanation.because.push(Because {
            fact: format!(
                "revision {revision} was taken back ({})",
                text(&rejected["reason"]).unwrap_or("unknown")
            ),
            message: text(&rejected["message"]).unwrap_or_default().to_owned(),
            since: time(&rejected["at"]),
        });
    }
}

/// Where the rollout stands, and what is next.
fn going(explanation: &mut Explanation, laya: Laya<'_>, now: Timestamp) {
    let Some(open) = laya.open_rollout() else {
        return;
    };
    let head = rollout::head(laya, now);
    let said = head
        .split_once(": ")
        .map_or(head.as_str(), |(_, rest)| rest);
    explanation.because.push(Because {
        fact: "rollout".to_owned(),
        message: said.to_owned(),
        since: open.step_started().or(open.started()),
    });
    if let Some((what, Some(at))) = rollout::coming(laya) {
        explanation.deadline = Some(Deadline { what, at });
    }
    let waits = match laya.pause() {
        Some(Pause::ByHand) => Some("somebody who resumes it"),
        Some(Pause::Verdict) => Some("a verdict of the gate"),
        Some(Pause::Report) => Some("the router's report"),
        Some(Pause::Suspended) => Some("somebody who takes spec.suspend away"),
        Some(Pause::Failure) => Some("somebody who aborts or retries it"),
        None if open.state() == "AwaitingApproval" => Some("somebody who approves it"),
        None => None,
    };
    if let Some(waits) = waits {
        waits.clone_into(&mut explanation.waits_for);
    }
}

/// What to do, in order.
fn helps(laya: Laya<'_>, beside: Option<&Value>) -> Vec<String> {
    let name = laya.name();
    let wished = laya.wish().or(laya.wished()).unwrap_or("NAME");
    let mut next = Vec::new();
    match laya.pause() {
        Some(Pause::ByHand) => next.push(format!("`relayctl rollout resume {name}`")),
        Some(Pause::Suspended) => next.push(
            "take spec.suspend away, or raise spec.replicas: `relayctl apply -f FILE`".to_owned(),
        ),
        Some(Pause::Failure) => next.push(format!(
            "`relayctl rollout abort {name}` takes it back, `relayctl rollout retry {name}` goes on"
        )),
        Some(Pause::Verdict) => next.push(format!(
            "add held-out rows, or `relayctl use {wished} --server {name} --force --reason TEXT`"
        )),
        Some(Pause::Report) | None => {}
    }
    if laya
        .open_rollout()
        .is_some_and(|rollout| rollout.state() == "AwaitingApproval")
    {
        next.push(format!(
            "`relayctl rollout approve {name}`, or `relayctl rollout abort {name}`"
        ));
    }
    if laya.taken_back().is_some() {
        next.push(format!("`relayctl rollout retry {name}` tries {wished} once more; `relayctl use NAME --server {name}` names another"));
        return next;
    }
    if laya.external().is_none() {
        next.extend(model_helps(laya, beside, wished));
    }
    if next.is_empty() {
        next.extend(condition_helps(laya));
    }
    next
}

fn model_helps(laya: Laya<'_>, beside: Option<&Value>, wished: &str) -> Option<String> {
    let is_served = laya
        .champion()
        .is_some_and(|champion| champion.model() == wished);
    match beside.map(Model) {
        None if !is_served => Some(format!(
            "`relayctl use NAME --server {}` names one that is there: `relayctl model ls`",
            laya.name()
        )),
        Some(model) if !model.is_ready() && !is_served => Some(match model.is_suspended() {
            true => format!("`relayctl model fetch {wished}`"),
            false => format!("`relayctl explain lm/{wished}` tells what {wished} waits for"),
        }),
        _ => None,
    }
}

/// What helps by the word of the condition that is false.
fn condition_helps(laya: Laya<'_>) -> Option<String> {
    let ready = laya
        .condition("Ready")
        .filter(|ready| ready.status == "False")?;
    let name = laya.name();
    Some(match ready.reason.as_str() {
        "CrashLoop" | "OutOfMemory" | "RollbackFailed" => {
            format!("`relayctl logs {name}`; {}", remedy(&ready.reason)?)
        }
        reason => typed(remedy(reason)?, name),
    })
}

/// A remedy of the closed list, which names no server, as it can be typed for this one.
fn typed(remedy: &str, server: &str) -> String {
    let mut text = remedy.to_owned();
    for word in ["approve", "resume", "retry"] {
        let command = format!("relayctl rollout {word}");
        text = text.replace(&command, &format!("{command} {server}"));
    }
    text
}

/// What the closed list says to do; nothing where that is nothing.
pub(super) fn remedy(reason: &str) -> Option<&'static str> {
    let remedy = Reason::by_word(reason)?.remedy();
    (remedy != "nothing").then_some(remedy)
}

/// The model that a server wishes.
pub(super) fn wished(object: &Value) -> Option<&str> {
    let laya = Laya(object);
    laya.wish().or(laya.wished())
}

/// Of which version a LayaServer speaks when it names a checkpoint.
pub(super) fn role(object: &Value, model: &str) -> Option<String> {
    let laya = Laya(object);
    let role = laya.role_of(model)?;
    let revision = match role {
        "champion" => laya.champion(),
        "candidate" => laya.candidate(),
        _ => laya.previous(),
    };
    let digest = revision
        .and_then(facts::Version::digest)
        .map_or(String::new(), |digest| format!(" ({})", short(digest)));
    let deleting = if facts::is_deleting(object) {
        ", which is being deleted"
    } else {
        ""
    };
    Some(format!(
        "{role}{digest} of {}{deleting}",
        kinds::laya_server().brief(laya.name())
    ))
}
