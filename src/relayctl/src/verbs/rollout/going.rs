//! What a rollout is doing, for whoever waits for it. Pure: an object in, a judgement out.

use serde_json::Value;

use crate::conditions::{self, Condition};
use crate::error::CliError;
use crate::facts::{Laya, Pause};
use crate::follow::{Line, Step};
use crate::kinds;
use api::exit::Exit;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// LayaModel that is to serve.
    pub(crate) model: String,
    /// Its checkpoint, once known.
    pub(crate) digest: Option<String>,
    /// Generation of the LayaServer that asks for it.
    pub(crate) generation: i64,
    pub(crate) until: Until,
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It has the traffic; it may still be watched.
    Serves,
    /// Nobody will take it back by itself any more.
    RolledOut,
}

/// Whether the target is reached.
pub(crate) fn judge(object: &Value, target: &Target) -> Step<Value> {
    let laya = Laya(object);
    let name = laya.name();
    if laya.wished() != Some(target.model.as_str()) {
        let other = laya.wished().unwrap_or("nothing");
        let line = format!(
            "{name}: somebody wished {other} meanwhile, so {} is not awaited",
            target.model
        );
        return Step::Failed(CliError::new(Exit::Conflict, line).hint(format!(
            "`relayctl rollout status {name}` tells how it goes"
        )));
    }
    let observed = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
    if observed < target.generation || !conditions::is_current(object) {
        return Step::Waits(Line::Stays(format!(
            "{name}: the controller has not looked at it yet"
        )));
    }
    if let Some(taken_back) = laya.taken_back() {
        return Step::Failed(rejected(laya, &taken_back));
    }
    if let Some(stalled) = laya.condition("Stalled").filter(Condition::is_true) {
        let line = format!(
            "{name} cannot go on ({}): {}",
            stalled.reason, stalled.message
        );
        return Step::Failed(CliError::refused(line).hint(explain(name)));
    }
    if laya.pause() == Some(Pause::Failure) {
        return Step::Failed(frozen(laya));
    }
    if serves(laya, target) && (target.until == Until::Serves || is_over(laya)) {
        return Step::Done(object.clone());
    }
    Step::Waits(line(laya))
}

/// Whether the target has become the champion.
fn serves(laya: Laya<'_>, target: &Target) -> bool {
    // Two names may stand for one checkpoint; what serves is called as the first of them.
    let is_it = laya.champion().is_some_and(|champion| {
        match (target.digest.as_deref(), champion.digest()) {
            (Some(wanted), Some(has)) => wanted == has,
            _ => champion.model() == target.model,
        }
    });
    // The same model may be on its way anew, with another image or device.
    let none_comes = laya.rollout().is_none_or(|rollout| rollout.is_promoted());
    is_it && none_comes
}

/// Whether nothing goes on any more.
fn is_over(laya: Laya<'_>) -> bool {
    let rolled_out = laya.condition("RolledOut");
    rolled_out.is_some_and(|condition| condition.is_true()) && laya.open_rollout().is_none()
}

/// The error of a rollout that went back.
pub(crate) fn rejected(laya: Laya<'_>, taken_back: &Condition) -> CliError {
    let name = laya.name();
    let what = match taken_back.reason.as_str() {
        "RollbackFailed" => "the way back failed, and rules answer",
        _ => "the new version was taken back",
    };
    let kept = match laya.champion() {
        Some(champion) if taken_back.reason != "RollbackFailed" => {
            format!("; {} serves", champion.model())
        }
        _ => String::new(),
    };
    let line = format!("{name}: {what}: {}{kept}", taken_back.message);
    let hint = match taken_back.reason.as_str() {
        "RollbackFailed" => format!("`relayctl logs {name}` shows why; {}", explain(name)),
        _ => format!(
            "`relayctl rollout retry {name}` tries it once more; `relayctl use NAME --server {name}` names another"
        ),
    };
    CliError::new(Exit::RolloutRejected, line).hint(hint)
}

/// The error of a rollout that a failure froze.
fn frozen(laya: Laya<'_>) -> CliError {
    let name = laya.name();
    let why = laya
        .rollout()
        .and_then(|rollout| rollout.message())
        .unwrap_or("it says no reason");
    let line = format!("{name}: the rollout stands still after a failure: {why}");
    CliError::new(Exit::RolloutRejected, line).hint(format!(
        "`relayctl rollout abort {name}` takes it back, `relayctl rollout retry {name}` goes on"
    ))
}

fn explain(name: &str) -> String {
    format!(
        "`relayctl explain {}` tells what helps",
        kinds::laya_server().brief(name)
    )
}

/// One line of where it stands.
pub(crate) fn line(laya: Laya<'_>) -> Line {
    let name = laya.name();
    let Some(rollout) = laya.open_rollout() else {
        let said = laya
            .condition("RolledOut")
            .filter(|condition| !condition.is_true())
            .or_else(|| laya.condition("Ready").filter(|ready| !ready.is_true()));
        return Line::Stays(match said {
            Some(condition) => format!("{name}: {} ({})", condition.message, condition.reason),
            None => format!("{name}: nothing goes on yet"),
        });
    };
    let state = sentence(rollout.state());
    let message = rollout
        .message()
        .map_or(String::new(), |message| format!(": {message}"));
    let help = match (rollout.state(), laya.pause()) {
        ("AwaitingApproval", _) => format!(" (`relayctl rollout approve {name}`)"),
        (_, Some(Pause::ByHand)) => format!(" (paused; `relayctl rollout resume {name}`)"),
        _ => String::new(),
    };
    let weight = match laya.weight().filter(|_| rollout.state() == "Shifting") {
        Some(weight) => format!(", {weight} %"),
        None => String::new(),
    };
    Line::Stays(format!("{name}: {state}{weight}{message}{help}"))
}

/// A state as people say it.
pub(crate) fn sentence(state: &str) -> String {
    match state {
        "AwaitingApproval" => "waits for approval".to_owned(),
        "RollingBack" => "rolling back".to_owned(),
        "Paused" => "stands still".to_owned(),
        other => other.to_lowercase(),
    }
}

/// What is said at the end.
pub(crate) fn outcome(object: &Value) -> String {
    let laya = Laya(object);
    let model = laya
        .champion()
        .map_or("no model", |champion| champion.model());
    let kept = match laya.previous() {
        Some(previous) => format!(", {} kept for rollback", previous.model()),
        None => String::new(),
    };
    format!("{}: {model} serves{kept}", laya.name())
}

/// How long a rollout may take by its own deadlines, in seconds.
pub(crate) fn own_patience(laya: Laya<'_>, until: Until) -> u64 {
    let steps: i64 = laya.steps().iter().map(|(_, hold)| hold).sum();
    let shadow = laya.rollout_spec()["shadow"]["maxSeconds"].as_i64();
    let after = match until {
        Until::Serves => 0,
        Until::RolledOut => {
            laya.rollout_seconds("rollbackWindowSeconds", 600)
                + laya.rollout_seconds("drainSeconds", 30)
        }
    };
    let all = laya.rollout_seconds("progressDeadlineSeconds", 900)
        + laya.rollout_seconds("minReadySeconds", 10)
        + steps
        + shadow.unwrap_or(0)
        + after
        + 60;
    u64::try_from(all).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target() -> Target {
        Target {
            model: "new".into(),
            digest: Some("sha256:b".into()),
            generation: 2,
            until: Until::Serves,
        }
    }

    fn object(status: &Value) -> Value {
        json!({"metadata": {"name": "main", "generation": 2}, "spec": {"modelRef": {"name": "new"}}, "status": status})
    }

    fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    }

    #[test]
    fn each_state_is_judged() {
        let champion = json!({"model": "new", "digest": "sha256:b"});
        let stalled = condition("Stalled", "True", "Rejected", "probes were wrong");
        let cases = [
            (
                "not seen yet",
                json!({"observedGeneration": 1, "champion": champion}),
                "waits main: the controller has not looked at it yet",
            ),
            (
                "loading",
                json!({"observedGeneration": 2, "champion": {"model": "old"}, "rollout": {"state": "Loading", "message": "0 of 1 ready"}}),
                "waits main: loading: 0 of 1 ready",
            ),
            (
                "no rollout",
                json!({"observedGeneration": 2, "conditions": [condition("RolledOut", "False", "Preparing", "the model is being fetched")]}),
                "waits main: the model is being fetched (Preparing)",
            ),
            (
                "approval",
                json!({"observedGeneration": 2, "rollout": {"state": "AwaitingApproval"}}),
                "waits main: waits for approval (`relayctl rollout approve main`)",
            ),
            (
                "baking",
                json!({"observedGeneration": 2, "champion": champion, "rollout": {"state": "Baking"}}),
                "done",
            ),
            (
                "done",
                json!({"observedGeneration": 2, "champion": champion, "rollout": {"state": "Done"}}),
                "done",
            ),
            (
                "the checkpoint under another name",
                json!({"observedGeneration": 2, "champion": {"model": "alias", "digest": "sha256:b"}}),
                "done",
            ),
            (
                "other weights of that name",
                json!({"observedGeneration": 2, "champion": {"model": "new", "digest": "sha256:a"}}),
                "waits main: nothing goes on yet",
            ),
            (
                "the same again",
                json!({"observedGeneration": 2, "champion": champion, "rollout": {"state": "Probing"}}),
                "waits main: probing",
            ),
            (
                "rejected",
                json!({"observedGeneration": 2, "champion": {"model": "old"}, "conditions": [stalled]}),
                "10 main: the new version was taken back: probes were wrong; old serves",
            ),
            (
                "invalid",
                json!({"observedGeneration": 2, "conditions": [condition("Stalled", "True", "InvalidSpec", "no")]}),
                "4 main cannot go on (InvalidSpec): no",
            ),
        ];
        for (name, status, expected) in cases {
            let got = match judge(&object(&status), &target()) {
                Step::Done(_) => "done".to_owned(),
                Step::Failed(error) => format!("{} {}", error.exit.code(), error.line()),
                Step::Waits(Line::Stays(line) | Line::Moves(line)) => format!("waits {line}"),
            };
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn another_wish_ends_the_wait() {
        let mut object = object(&json!({}));
        object["spec"]["modelRef"]["name"] = json!("third");
        let Step::Failed(error) = judge(&object, &target()) else {
            panic!("goes on")
        };
        assert_eq!(error.exit, Exit::Conflict);
    }

    #[test]
    fn waiting_to_the_end_waits_for_the_bake() {
        let target = Target {
            until: Until::RolledOut,
            ..target()
        };
        let champion = json!({"model": "new", "digest": "sha256:b"});
        let baking = object(
            &json!({"observedGeneration": 2, "champion": champion, "rollout": {"state": "Baking"}}),
        );
        assert!(matches!(judge(&baking, &target), Step::Waits(_)));
        let over = object(
            &json!({"observedGeneration": 2, "champion": champion, "rollout": {"state": "Done"},
            "conditions": [condition("RolledOut", "True", "Observed", "")]}),
        );
        assert!(matches!(judge(&over, &target), Step::Done(_)));
    }

    #[test]
    fn a_frozen_failure_ends_the_wait() {
        let mut object = object(
            &json!({"observedGeneration": 2, "rollout": {"state": "Paused", "pausedFrom": "Baking", "message": "3 probes failed"},
                "champion": {"model": "new", "revision": "r2"}, "rejected": [{"revision": "r2"}]}),
        );
        object["spec"]["rollout"] = json!({"autoRollback": false});
        let Step::Failed(error) = judge(&object, &target()) else {
            panic!("goes on")
        };
        assert_eq!(error.exit, Exit::RolloutRejected);
        assert_eq!(
            error.line(),
            "main: the rollout stands still after a failure: 3 probes failed"
        );
    }

    #[test]
    fn patience_is_that_of_the_spec() {
        let object = json!({"spec": {"rollout": {"progressDeadlineSeconds": 100, "minReadySeconds": 0,
            "canary": {"steps": [{"weight": 5, "holdSeconds": 60}, {"weight": 50, "holdSeconds": 30}]}}}});
        assert_eq!(own_patience(Laya(&object), Until::Serves), 250);
        assert_eq!(own_patience(Laya(&object), Until::RolledOut), 880);
    }
}
