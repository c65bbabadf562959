//! Which field each word writes.

use super::*;

fn decided(change: Change, spec: &Value, status: &Value) -> String {
    let object = json!({"metadata": {"name": "main"}, "spec": {"modelRef": {"name": "w"}, "rollout": spec}, "status": status});
    match decide(Laya(&object), change) {
        Ok(Decided::Write(edit)) => format!(
            "{}={} {}",
            edit.field,
            edit.value,
            edit.note.unwrap_or_default()
        )
        .trim()
        .to_owned(),
        Ok(Decided::Already(line)) => format!("already: {line}"),
        Err(error) => format!("{}: {}", error.exit.code(), error.line()),
    }
}

#[test]
fn each_change_is_one_field() {
    let candidate = json!({"model": "w", "digest": "sha256:ab", "revision": "0123456789"});
    let open = |state: &str| json!({"candidate": candidate, "champion": {"model": "v1", "revision": "aa"}, "rollout": {"state": state}});
    let paused =
        |from: &str| json!({"rollout": {"state": "Paused", "pausedFrom": from, "message": "why"}});
    let failed = |from: &str| {
        let mut status = paused(from);
        status["candidate"] = candidate.clone();
        status["rejected"] = json!([{"revision": "0123456789"}]);
        status
    };
    for (name, change, spec, status, expected) in [
        (
            "resume what a person held while it loaded",
            Change::Resume,
            json!({"paused": true}),
            paused("Loading"),
            "paused=false",
        ),
        (
            "pause",
            Change::Pause,
            json!({}),
            open("Shifting"),
            "paused=true steps and their clocks stand still; what fails is taken back all the same",
        ),
        (
            "pause twice",
            Change::Pause,
            json!({"paused": true}),
            json!({}),
            "already: main is paused already",
        ),
        (
            "resume",
            Change::Resume,
            json!({"paused": true}),
            open("Shifting"),
            "paused=false",
        ),
        (
            "resume what runs",
            Change::Resume,
            json!({}),
            open("Shifting"),
            "already: main is not paused",
        ),
        (
            "resume a verdict",
            Change::Resume,
            json!({}),
            paused("Gating"),
            "1: nothing is resumed: main waits for a verdict by itself (why); it goes on when the gate says more, or past it: `relayctl use w --server main --force --reason TEXT`",
        ),
        (
            "resume a report",
            Change::Resume,
            json!({}),
            paused("Shifting"),
            "1: nothing is resumed: main waits for the router's report by itself (why); it goes on when that is back",
        ),
        (
            "resume a failure",
            Change::Resume,
            json!({"autoRollback": false}),
            failed("Shifting"),
            "1: nothing is resumed: main stands still after a failure (why); it ends with `relayctl rollout abort main`, another wish, or goes on with `relayctl rollout retry main`",
        ),
        (
            "resume both",
            Change::Resume,
            json!({"paused": true}),
            paused("Shifting"),
            "paused=false main waits for the router's report by itself (why); it goes on when that is back",
        ),
        (
            "approve",
            Change::Approve,
            json!({}),
            open("AwaitingApproval"),
            "approve=\"sha256:ab\"",
        ),
        (
            "approve early",
            Change::Approve,
            json!({}),
            open("Loading"),
            "approve=\"sha256:ab\" w (ab) is approved before it is asked for; it is loading now",
        ),
        (
            "approve twice",
            Change::Approve,
            json!({"approve": "sha256:ab"}),
            open("Shifting"),
            "already: w (ab) is approved already",
        ),
        (
            "approve nothing",
            Change::Approve,
            json!({}),
            json!({}),
            "3: main has no candidate that could be approved",
        ),
        (
            "abort",
            Change::Abort,
            json!({}),
            open("Shifting"),
            "abort=\"0123456789\"",
        ),
        (
            "abort while it is watched",
            Change::Abort,
            json!({}),
            open("Baking"),
            "abort=\"aa\"",
        ),
        (
            "abort too late",
            Change::Abort,
            json!({}),
            open("Draining"),
            "5: main is draining already, which is not aborted",
        ),
        (
            "abort nothing",
            Change::Abort,
            json!({}),
            open("Done"),
            "3: main has no rollout that could be aborted",
        ),
        (
            "retry",
            Change::Retry,
            json!({"retry": 3}),
            json!({"rejected": [{}]}),
            "retry=4",
        ),
        (
            "retry nothing",
            Change::Retry,
            json!({}),
            json!({}),
            "4: nothing of main was taken back that could be tried again",
        ),
        (
            "retry what was taken back before another wish",
            Change::Retry,
            json!({}),
            json!({"rejected": [{"revision": "aa"}], "rollout": {"state": "Done"}}),
            "retry=1",
        ),
        (
            "retry what stands still after a failure",
            Change::Retry,
            json!({"autoRollback": false}),
            failed("Shifting"),
            "retry=1",
        ),
    ] {
        assert_eq!(decided(change, &spec, &status), expected, "{name}");
    }
}

#[test]
fn an_abort_is_over_when_the_candidate_is_gone() {
    let object =
        |status: Value| json!({"metadata": {"name": "main", "generation": 3}, "status": status});
    let waits = object(json!({"observedGeneration": 2}));
    assert!(matches!(taken_back(&waits, 3), Step::Waits(_)));
    let back = object(
        json!({"observedGeneration": 3, "rollout": {"state": "RollingBack"}, "candidate": {"model": "w"}}),
    );
    assert!(matches!(taken_back(&back, 3), Step::Waits(_)));
    let over = object(
        json!({"observedGeneration": 3, "rollout": {"state": "Done"}, "champion": {"model": "v1"}}),
    );
    assert!(matches!(taken_back(&over, 3), Step::Done(_)));
    let failed = object(json!({"observedGeneration": 3, "conditions": [
        {"type": "Stalled", "status": "True", "reason": "RollbackFailed", "message": "m"}]}));
    assert!(
        matches!(taken_back(&failed, 3), Step::Failed(error) if error.exit == Exit::RolloutRejected)
    );
}
