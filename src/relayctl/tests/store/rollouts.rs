//! `relayctl rollout`.

use serde_json::{Value, json};

use crate::api::Laptop;
use crate::models::{ready_model, serving};
use crate::support::first;

const DIGEST_A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const DIGEST_B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A canary on its first step.
fn shifting() -> Laptop {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    ready_model(&laptop, "new", DIGEST_B);
    serving(&laptop, "old", DIGEST_A);
    laptop.edit_of("layaservers", "main", &json!({"spec": {"modelRef": {"name": "new"}, "rollout": {"strategy": "Canary",
        "canary": {"steps": [{"weight": 5, "holdSeconds": 600}, {"weight": 50, "holdSeconds": 900}]}}}}));
    laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": 2,
        "candidate": {"model": "new", "digest": DIGEST_B, "revision": "bbbbbbbbbb"},
        "rollout": {"id": "r2", "kind": "Model", "state": "Shifting", "step": 1, "stepStartedAt": "2026-11-30T10:00:00Z",
            "checks": {"requests": 312, "errorRatio": "0.000000", "p95Millis": 41}}}));
    laptop
}

#[test]
fn status_is_the_form_of_the_page_and_a_document() {
    let laptop = shifting();
    let ran = laptop.home.run(&["rollout", "status", "main"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(
        lines[0].starts_with(
            "main: old (aaaaaaaaaaaa) -> new (bbbbbbbbbbbb), canary, step 1 of 2: 5 %, "
        ),
        "{}",
        ran.out
    );
    assert_eq!(
        lines[1],
        "  requests 312  errors 0.0 % (limit 1 %)  p95 41 ms (limit 1.5x)"
    );
    assert!(
        lines[2].starts_with("  next: step 2 (50 %) at ")
            && lines[2].ends_with(" · abort: relayctl rollout abort main"),
        "{}",
        ran.out
    );
    let ran = laptop
        .home
        .run(&["rollout", "status", "ls/main", "-o", "json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&document["apiVersion"], &document["kind"]),
        (&json!("relay.dev/cli.v1"), &json!("RolloutStatus"))
    );
    assert_eq!(
        (&document["rollout"]["step"], &document["inProgress"]),
        (&json!(1), &json!(true))
    );
    let yaml = laptop
        .home
        .run(&["rollout", "status", "main", "-o", "yaml"])
        .out;
    assert!(yaml.contains("kind: RolloutStatus\n"), "{yaml}");
    for (arguments, code) in [
        (&["rollout", "status", "none"][..], 3),
        (&["rollout", "status", "../x"], 2),
        (&["rollout", "status", "rp/default"], 2),
        (&["rollout", "status", "main", "-o", "name"], 2),
        (&["rollout", "status", "main", "--wait"], 2),
        (&["rollout"], 2),
        (&["rollout", "pause"], 2),
    ] {
        assert_eq!(laptop.home.run(arguments).code, Some(code), "{arguments:?}");
    }
}

#[test]
fn each_word_writes_its_one_field_by_its_own_manager() {
    let laptop = shifting();
    for (word, field, value, said) in [
        ("pause", "paused", json!(true), "paused"),
        ("resume", "paused", json!(false), "resumed"),
        ("approve", "approve", json!(DIGEST_B), "approved"),
        ("retry", "retry", json!(1), "retried"),
    ] {
        if word == "retry" {
            let ran = laptop.home.run(&["rollout", word, "main"]);
            assert_eq!(ran.code, Some(4), "nothing was taken back: {}", ran.err);
            let mut status = laptop.object("layaservers", "main")["status"].clone();
            status["rejected"] = json!([{"revision": "0123456789", "reason": "GateFailed"}]);
            laptop.set_status_of("layaservers", "main", &status);
        }
        let before = laptop.object("layaservers", "main")["spec"].clone();
        let ran = laptop
            .home
            .run(&["rollout", word, "main", "--dry-run=server"]);
        assert_eq!(
            (ran.code, ran.out),
            (
                Some(0),
                format!("layaserver.relay.dev/main {said} (server dry run)\n")
            ),
            "{}",
            ran.err
        );
        assert_eq!(
            laptop.object("layaservers", "main")["spec"],
            before,
            "{word}"
        );
        let ran = laptop.home.run(&["rollout", word, "main"]);
        assert_eq!(
            (ran.code, ran.out),
            (Some(0), format!("layaserver.relay.dev/main {said}\n")),
            "{}",
            ran.err
        );
        let after = laptop.object("layaservers", "main")["spec"].clone();
        assert_eq!(after["rollout"][field], value, "{word}");
        let mut expected = before;
        expected["rollout"][field] = value;
        assert_eq!(after, expected, "{word} writes nothing else");
        assert_eq!(
            laptop.managers_of("layaservers", "main", field),
            ["relayctl-rollout"],
            "{word}"
        );
    }
    let ran = laptop.home.run(&["rollout", "pause", "main", "-o", "json"]);
    let object: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(object["spec"]["rollout"]["paused"], true);
    // What was set by one word stays when another one writes.
    assert_eq!(object["spec"]["rollout"]["approve"], DIGEST_B);
}

#[test]
fn an_abort_is_waited_for() {
    let laptop = shifting();
    let ran = laptop.run_while(&["rollout", "abort", "main"], |laptop| {
        laptop.until("layaservers", "main", |object| {
            object["spec"]["rollout"]["abort"] == "bbbbbbbbbb"
        });
        laptop.set_status_of(
            "layaservers",
            "main",
            &json!({"observedGeneration": 3, "rollout": {"state": "RollingBack"}}),
        );
        laptop.set_status_of(
            "layaservers",
            "main",
            &json!({"candidate": null, "rollout": {"state": "Done"}}),
        );
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main aborted; main: old serves\n"),
        "{}",
        ran.err
    );
    let ran = laptop.home.run(&["rollout", "abort", "main"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: main has no rollout that could be aborted"
    );
}

#[test]
fn a_pause_of_its_own_is_told_and_not_resumed() {
    let laptop = shifting();
    laptop.set_status_of(
        "layaservers",
        "main",
        &json!({"rollout": {"state": "Paused", "pausedFrom": "Gating", "message": "7 of 50 rows"}}),
    );
    let ran = laptop.home.run(&["rollout", "resume", "main"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        first(&ran).starts_with(
            "relayctl: nothing is resumed: main waits for a verdict by itself (7 of 50 rows)"
        ),
        "{}",
        ran.err
    );
    laptop.edit_of(
        "layaservers",
        "main",
        &json!({"spec": {"rollout": {"paused": true}}}),
    );
    let ran = laptop.home.run(&["rollout", "resume", "main"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err
            .contains("note: somebody writes spec.rollout.paused of main too")
            && ran.err.contains("note: main waits for a verdict by itself"),
        "{}",
        ran.err
    );
}

#[test]
fn undo_wishes_the_previous_version() {
    let laptop = shifting();
    let ran = laptop.home.run(&["rollout", "undo", "main"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: main has no previous version; its first rollout goes on"
    );
    laptop.set_status_of("layaservers", "main", &json!({"candidate": null,
        "wish": {"model": "new", "specModel": "new"},
        "champion": {"model": "new", "digest": DIGEST_B, "revision": "bbbbbbbbbb"},
        "previous": {"model": "old", "digest": DIGEST_A}, "rollout": {"state": "Done", "step": null, "checks": null}}));
    let ran = laptop.run_while(&["rollout", "undo", "main"], |laptop| {
        laptop.until("layaservers", "main", |object| {
            object["spec"]["modelRef"]["name"] == "old"
        });
        laptop.set_status_of(
            "layaservers",
            "main",
            &json!({"observedGeneration": 3, "champion": {"model": "old", "digest": DIGEST_A},
            "previous": {"model": "new"}, "rollout": {"kind": "Revert", "state": "Baking"}}),
        );
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main: old serves, new kept for rollback\n"),
        "{}",
        ran.err
    );
    assert!(
        laptop
            .managers_of("layaservers", "main", "modelRef")
            .contains(&"relayctl-use".to_owned())
    );
}

#[test]
fn what_a_promotion_made_is_undone_although_spec_names_the_old_one() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    ready_model(&laptop, "local-1", DIGEST_B);
    serving(&laptop, "v1", DIGEST_A);
    laptop.set_status_of("layaservers", "main", &json!({"wish": {"model": "local-1", "from": "TrainingRun/local-1", "specModel": "v1"},
        "champion": {"model": "local-1", "digest": DIGEST_B}, "previous": {"model": "v1", "digest": DIGEST_A}}));
    let ran = laptop.run_while(&["rollout", "undo", "main"], |laptop| {
        laptop.until("layaservers", "main", |object| object["spec"]["modelRef"]["name"] == "local-1");
        laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": 2, "wish": {"specModel": "local-1"}}));
        laptop.until("layaservers", "main", |object| object["spec"]["modelRef"]["name"] == "v1");
        laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": 3, "wish": {"model": "v1", "specModel": "v1"},
            "champion": {"model": "v1", "digest": DIGEST_A}, "previous": {"model": "local-1"}, "rollout": {"state": "Baking"}}));
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main: v1 serves, local-1 kept for rollback\n"),
        "{}",
        ran.err
    );
}

#[test]
fn history_shows_what_ended_and_what_was_taken_back() {
    let laptop = shifting();
    assert_eq!(
        laptop.home.run(&["rollout", "history", "main"]).err,
        "main: no rollout has ended yet\n"
    );
    laptop.set_status_of("layaservers", "main", &json!({
        "history": [{"id": "r1", "from": "aaaa", "to": "bbbb", "outcome": "RolledBack", "reason": "ProbeTimedOut",
            "startedAt": "2026-11-30T09:00:00Z", "finishedAt": "2026-11-30T09:02:30Z"}],
        "rejected": [{"revision": "bbbb", "digest": DIGEST_B, "reason": "ProbeTimedOut", "message": "3 probes \u{1b}[2J", "at": "2026-11-30T09:02:30Z"}]}));
    let ran = laptop.home.run(&["rollout", "history", "main"]);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(
        lines[1],
        "r1   aaaa   bbbb   RolledBack   ProbeTimedOut   2026-11-30 09:00   2m30s"
    );
    assert!(
        lines[4].starts_with("bbbb       bbbbbbbbbbbb   ProbeTimedOut")
            && !ran.out.contains('\u{1b}'),
        "{}",
        ran.out
    );
    let document: Value = serde_json::from_str(
        &laptop
            .home
            .run(&["rollout", "history", "main", "-o", "json"])
            .out,
    )
    .unwrap();
    assert_eq!(
        (&document["kind"], &document["history"][0]["id"]),
        (&json!("RolloutHistory"), &json!("r1"))
    );
}
