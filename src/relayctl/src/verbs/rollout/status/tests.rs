//! The form of the page.

use super::*;

fn now() -> Timestamp {
    "2026-11-30T14:16:20Z".parse().unwrap()
}

fn canary() -> Value {
    json!({"metadata": {"name": "main", "namespace": "default"},
        "spec": {"modelRef": {"name": "week-48"}, "rollout": {"strategy": "Canary", "gateRef": {"name": "default"},
            "canary": {"steps": [{"weight": 5, "holdSeconds": 600}, {"weight": 50, "holdSeconds": 900}],
                "limits": {"maxErrorRatio": "0.01", "maxP95Ratio": "1.50", "minRequests": 50}}}},
        "status": {"observedGeneration": 1,
            "champion": {"model": "v1", "shortDigest": "d5a13ee24047", "since": "2026-11-27T14:16:20Z"},
            "candidate": {"model": "week-48", "shortDigest": "41c07fe2a9d1"},
            "rollout": {"kind": "Model", "state": "Shifting", "step": 1, "stepStartedAt": "2026-11-30T14:10:10Z",
                "startedAt": "2026-11-30T14:00:00Z", "gate": {"evaluation": "e1", "verdict": "Passed"},
                "checks": {"requests": 312, "errorRatio": "0", "p95Millis": 41, "championP95Millis": 39}}}})
}

fn gate() -> Value {
    json!({"status": {"evaluations": [{"id": "e0", "summary": {"passed": 1}},
        {"id": "e1", "summary": {"passed": 27, "failed": 0, "inconclusive": 0, "informed": 3}}]}})
}

#[test]
fn a_canary_is_shown_as_on_the_page() {
    let object = canary();
    assert_eq!(
        render(Laya(&object), Some(&gate()), now()),
        "\
main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), canary, step 1 of 2: 5 %, 6m10s of 10m
  requests 312  errors 0.0 % (limit 1 %)  p95 41 ms vs 39 ms (limit 1.5x)  gate default: Passed 27/27
  next: step 2 (50 %) at 14:20:10 · abort: relayctl rollout abort main
"
    );
}

#[test]
fn what_the_back_end_cannot_follow_is_not_what_runs() {
    let mut object = canary();
    object["status"]["rollout"] = json!({"kind": "Model", "state": "Loading"});
    let way = |object: &Value| {
        let text = render(Laya(object), None, now());
        let document = document(Laya(object), None, now());
        let runs = document["strategy"].as_str().unwrap().to_owned();
        (
            text.contains(", canary, "),
            runs,
            document["steps"].as_array().unwrap().len(),
        )
    };
    assert_eq!(way(&object), (true, "Canary".to_owned(), 2));
    let told = |message: &str| {
        json!([{"type": "FieldsSupported", "status": "False", "reason": "FieldsIgnored", "message": message,
            "lastTransitionTime": "2026-11-30T10:00:00Z"}])
    };
    object["status"]["conditions"] =
        told("back end embedded cannot follow spec.image. Remove them");
    assert_eq!(way(&object), (true, "Canary".to_owned(), 2));
    object["status"]["conditions"] =
        told("back end embedded cannot follow spec.image, spec.rollout.strategy. Remove them");
    assert_eq!(way(&object), (false, "BlueGreen".to_owned(), 0));
}

#[test]
fn each_state_says_what_comes_next() {
    let with = |rollout: Value, spec: Value| {
        let mut object = canary();
        object["status"]["rollout"] = rollout;
        object["spec"]["rollout"] = spec;
        render(Laya(&object), None, now())
    };
    let plain = || json!({});
    for (name, rollout, spec, expected) in [
        (
            "loading",
            json!({"kind": "Model", "state": "Loading", "startedAt": "2026-11-30T14:10:00Z", "message": "0 of 1 ready"}),
            plain(),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, loading: 0 of 1 ready\n  next: given up at 14:25:00 · abort: relayctl rollout abort main\n",
        ),
        (
            "approval",
            json!({"state": "AwaitingApproval"}),
            plain(),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, waits for approval\n  next: relayctl rollout approve main · abort: relayctl rollout abort main\n",
        ),
        (
            "paused by hand",
            json!({"state": "Probing"}),
            json!({"paused": true}),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, probing, paused\n  next: relayctl rollout resume main · abort: relayctl rollout abort main\n",
        ),
        (
            "inconclusive",
            json!({"state": "Paused", "pausedFrom": "Gating", "message": "7 of 50 rows"}),
            json!({"gateRef": {"name": "g"}}),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, stands still while gating: 7 of 50 rows\n  gate g: not judged yet\n  next: goes on when the gate says more · abort: relayctl rollout abort main\n",
        ),
        (
            "shadow",
            json!({"state": "Shadowing", "stepStartedAt": "2026-11-30T14:00:00Z", "checks": {"comparisons": 12, "disagreement": "0.25"}}),
            json!({"strategy": "Shadow", "shadow": {"minComparisons": 200, "maxSeconds": 86400, "maxDisagreement": "0.1"}}),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), shadow, shadowing\n  comparisons 12 of 200  disagreement 25.0 % (limit 10 %)\n  next: goes on without more comparisons at 2026-12-01 14:00:00 · abort: relayctl rollout abort main\n",
        ),
        (
            "rolling back",
            json!({"state": "RollingBack", "message": "3 probes failed"}),
            plain(),
            "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, rolling back: 3 probes failed\n",
        ),
    ] {
        assert_eq!(with(rollout, spec), expected, "{name}");
    }
}

#[test]
fn after_promotion_the_old_one_is_the_previous() {
    let mut object = canary();
    object["spec"]["rollout"] = json!({});
    object["status"] = json!({"champion": {"model": "week-48", "shortDigest": "41c07fe2a9d1", "since": "2026-11-30T14:14:20Z"},
        "previous": {"model": "v1", "shortDigest": "d5a13ee24047"}, "rollout": {"kind": "Model", "state": "Baking"}});
    assert_eq!(
        render(Laya(&object), None, now()),
        "main: v1 (d5a13ee24047) -> week-48 (41c07fe2a9d1), blue-green, baking: 2m of 10m\n  next: the old one drains at 14:24:20 · abort: relayctl rollout abort main\n"
    );
}

#[test]
fn rest_names_the_way_back_and_what_was_taken_back() {
    let mut object = canary();
    object["status"]["rollout"]["state"] = json!("Done");
    object["status"]["previous"] = json!({"model": "v0", "digest": "sha256:aaaaaaaaaaaabb"});
    object["status"]["conditions"] = json!([{"type": "Stalled", "status": "True", "reason": "Rejected", "message": "spec names week-48"}]);
    assert_eq!(
        render(Laya(&object), None, now()),
        "main: v1 (d5a13ee24047) serves for 3d, no rollout\n  previous v0 (aaaaaaaaaaaa) · back to it: relayctl rollout undo main\n  Rejected: spec names week-48 · once more: relayctl rollout retry main\n"
    );
    let none = json!({"metadata": {"name": "main"}, "spec": {"modelRef": {"name": "v1"}}});
    assert_eq!(
        render(Laya(&none), None, now()),
        "main: no model serves, no rollout\n"
    );
}

#[test]
fn programs_get_the_same() {
    let object = canary();
    let document = document(Laya(&object), Some(&gate()), now());
    assert_eq!(document["apiVersion"], "relay.dev/cli.v1");
    assert_eq!(document["kind"], "RolloutStatus");
    assert_eq!(
        document["next"],
        json!({"what": "step 2 (50 %)", "at": "2026-11-30T14:20:10Z"})
    );
    assert_eq!(document["rollout"]["state"], "Shifting");
    assert_eq!(document["pause"], Value::Null);
}

#[test]
fn what_a_status_says_cannot_speak_to_the_terminal() {
    let mut object = canary();
    object["status"]["rollout"] = json!({"state": "Loading\u{1b}[2J", "message": "a\nb\u{202e}"});
    let text = render(Laya(&object), None, now());
    assert!(
        !text.contains(['\u{1b}', '\u{202e}']) && text.lines().count() == 3,
        "{text}"
    );
}

#[test]
fn a_server_of_somebody_else_serves_only_where_it_was_found_to() {
    let said = |conditions: Value| {
        let object = json!({"metadata": {"name": "main", "generation": 1}, "spec": {"external": {"url": "http://127.0.0.1:1"}},
            "status": {"observedGeneration": 1, "conditions": conditions}});
        head(Laya(&object), Timestamp::UNIX_EPOCH)
    };
    let adopted = |status: &str| json!([{"type": "Adopted", "status": status, "reason": "Unreachable", "message": "refused"}]);
    for (conditions, expected) in [
        (adopted("True"), "serves"),
        (adopted("False"), "does not serve (Unreachable): refused"),
        (json!([]), "is to serve; nobody knows yet whether it does"),
    ] {
        assert_eq!(
            said(conditions),
            format!("main: the server at http://127.0.0.1:1 {expected}")
        );
    }
}
