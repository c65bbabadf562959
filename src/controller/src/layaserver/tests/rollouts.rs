//! The rows of control-plane 10, each by its name.

use serde_json::{Value, json};

use super::super::{GateVerdict, GateView};
use super::sim::{Behaviour, Kill, MIB, World, digest};
use api::reason::Reason;

fn roll(extra: &Value) -> World {
    let mut world = World::serving(extra);
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world
}

fn bad(reason: Reason) -> Behaviour {
    Behaviour {
        lies: Some((reason, true)),
        ..Behaviour::default()
    }
}

fn judged(verdict: GateVerdict) -> GateView {
    GateView::Judged {
        name: "quality".to_owned(),
        digest: digest("v2"),
        evaluation: "e1".to_owned(),
        verdict,
        message: "overall: needs 200 rows, has 110".to_owned(),
    }
}

fn canary() -> Value {
    json!({"replicas": 4, "rollout": {"strategy": "Canary", "rollbackWindowSeconds": 60, "canary": {
        "steps": [{"weight": 10, "holdSeconds": 30}, {"weight": 60, "holdSeconds": 30}],
    }}})
}

#[test]
fn blue_green_goes_over_at_once_bakes_and_stops_the_old_one() {
    let mut world = roll(&json!({}));
    let mut states = Vec::new();
    while world.state() != "Done" || world.candidate().is_some() || world.champion() == "v1" {
        if !world.pass(Kill::Never) {
            world.tick(1);
        }
        if states.last() != Some(&world.state()) {
            states.push(world.state());
        }
        assert!(states.len() < 20, "{states:?}");
    }
    assert_eq!(
        states,
        [
            "Preparing",
            "Starting",
            "Loading",
            "Probing",
            "Promoted",
            "Baking",
            "Draining",
            "Done"
        ]
    );
    world.settle(60);
    let status = world.status();
    assert_eq!(world.traffic(), "v2:100");
    assert_eq!(status.previous.unwrap().model.as_deref(), Some("v1"));
    assert_eq!((world.up("v2"), world.up("v1")), (1, 0));
    assert_eq!(
        world.empty_seconds,
        World::serving(&json!({})).empty_seconds,
        "no gap"
    );
    assert_eq!(world.outcome(), "Promoted");
    assert!(world.says("RollbackReady=True/Observed") && world.says("RolledOut=True/Observed"));
    for event in ["RolloutStarted", "Promoted", "Drained"] {
        assert_eq!(
            world
                .event_names()
                .iter()
                .filter(|it| **it == event)
                .count(),
            1,
            "{event}"
        );
    }
}

#[test]
fn a_new_runtime_skips_the_gate_and_a_revert_skips_steps_too() {
    let mut extra = canary();
    super::sim::merge(
        &mut extra,
        &json!({"rollout": {"gateRef": {"name": "quality"}}}),
    );
    let mut world = World::new(&extra);
    world.gate = judged(GateVerdict::Passed);
    world.until("approved by nobody", |world| world.state() == "Gating");
    world.edit(&json!({"rollout": {"force": {"digest": digest("v1"), "reason": "first"}}}));
    world.settle(60);
    world.gate = GateView::NotJudged {
        name: "quality".to_owned(),
    };
    world.edit(&json!({"serving": {"threads": 2}}));
    world.until_state("Shifting");
    assert_eq!(
        world.status().rollout.unwrap().kind.unwrap().as_str(),
        "Runtime"
    );
    world.until("served", |world| world.state() == "Done");
    world.edit(&json!({"serving": {"threads": 0}}));
    world.until_state("Preparing");
    assert_eq!(
        world.status().rollout.unwrap().kind.unwrap().as_str(),
        "Revert"
    );
    world.until_state("Baking");
    let steps = world
        .event_names()
        .iter()
        .filter(|it| **it == "StepTaken")
        .count();
    assert_eq!(steps, 2, "only those of the first change");
}

#[test]
fn canary_takes_its_steps_with_as_many_replicas_as_they_need() {
    let mut world = roll(&canary());
    world.until_state("Probing");
    assert_eq!(world.up("v2"), 1);
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    assert_eq!(world.up("v2"), 1);
    assert!(world.says("RolledOut=False/Shifting") && world.says("Ready=True/Reconciled"));
    world.until("step 2", |world| world.traffic() == "v1:40 v2:60");
    assert_eq!(world.up("v2"), 3);
    world.until("all", |world| world.traffic() == "v2:100");
    assert_eq!(world.up("v2"), 4);
    world.settle(60);
    assert_eq!(world.outcome(), "Promoted");
}

#[test]
fn canary_stays_while_there_are_too_few_requests_and_goes_back_beyond_its_limits() {
    let mut extra = canary();
    super::sim::merge(
        &mut extra,
        &json!({"rollout": {"canary": {"limits": {"minRequests": 100_000}}}}),
    );
    let mut world = roll(&extra);
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    for _ in 0..300 {
        if !world.pass(Kill::Never) {
            world.tick(5);
        }
    }
    assert_eq!(world.traffic(), "v1:90 v2:10");
    for (errors, p95, word) in [(5, 50, "failed"), (0, 500, "95th percentile")] {
        let mut world = roll(&canary());
        world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
        let candidate = world.candidate().unwrap();
        world.errors.insert(candidate, (errors, p95));
        world.until("back", |world| world.traffic() == "v1:100");
        assert!(world.says("RolledOut=False/RollingBack"));
        world.settle(60);
        let rejected = world.status().rejected;
        assert_eq!(rejected[0].reason.as_deref(), Some("LimitsExceeded"));
        assert!(
            rejected[0].message.as_ref().unwrap().contains(word),
            "{rejected:?}"
        );
        assert_eq!(
            (world.outcome().as_str(), world.up("v2")),
            ("RolledBack", 0)
        );
        assert!(world.event_names().contains(&"RolledBack"));
        assert!(world.says("Stalled=True/Rejected") && world.says("Ready=True/Reconciled"));
    }
}

#[test]
fn what_is_measured_stands_beside_what_it_is_compared_with() {
    let measured = |world: &World| {
        let checks = world.status().rollout.unwrap_or_default().checks?;
        Some((checks.p95_millis?, checks.champion_p95_millis))
    };
    let mut world = roll(&canary());
    let champion = world.status().champion.unwrap().revision.unwrap();
    world.errors.insert(champion, (0, 39));
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    let candidate = world.candidate().unwrap();
    world.errors.insert(candidate, (0, 41));
    world.until("measured", |world| measured(world) == Some((41, Some(39))));
    // Written with a step or a change of the counts, never for itself.
    let shown = world.status().rollout.unwrap().checks.unwrap();
    let champion = world.status().champion.unwrap().revision.unwrap();
    world.errors.insert(champion, (0, 40));
    world.pass(Kill::Never);
    world.tick(1);
    world.pass(Kill::Never);
    let after = world.status().rollout.unwrap().checks;
    assert!(
        after.is_none_or(|after| after == shown || after.requests != shown.requests),
        "no write for the champion's number alone"
    );
    world.until_state("Baking");
    world.until("measured", |world| measured(world) == Some((41, Some(40))));
}

#[test]
fn shadow_compares_and_then_goes_over_or_is_taken_back() {
    let extra = json!({"rollout": {"strategy": "Shadow", "shadow": {"minComparisons": 50, "maxDisagreement": "0.10"}}});
    let mut world = roll(&extra);
    world.until("shadow", |world| world.traffic() == "v1:100 v2:0s");
    assert!(world.says("RolledOut=False/Shadowing"));
    world.until("all", |world| world.traffic() == "v2:100");
    let mut world = roll(&extra);
    world.differ_percent = 20;
    world.until("back", |world| world.says("RolledOut=False/Rejected"));
    assert_eq!(world.traffic(), "v1:100");
    assert_eq!(
        world.status().rejected[0].reason.as_deref(),
        Some("LimitsExceeded")
    );
}

#[test]
fn replace_opens_a_gap_stops_the_old_one_and_says_so() {
    let mut world = roll(&json!({"rollout": {"strategy": "Replace"}}));
    world.until("gap", |world| world.traffic() == "Gap");
    assert_eq!(world.up("v1"), 1, "traffic goes first");
    world.pass(Kill::Never);
    assert!(world.says("Available=False/Gap"));
    world.until("all", |world| world.traffic() == "v2:100");
    assert_eq!(world.up("v1"), 0);
    world.settle(60);
    assert_eq!(
        world.up("v1"),
        0,
        "it is not started again to be watched beside"
    );
    let events = world.event_names();
    assert!(
        events.contains(&"GapStarted") && events.contains(&"GapEnded"),
        "{events:?}"
    );
}

#[test]
fn replace_is_judged_before_anything_stops() {
    let mut extra = json!({"rollout": {"strategy": "Replace", "approval": "Manual", "gateRef": {"name": "quality"}}});
    super::sim::merge(
        &mut extra,
        &json!({"rollout": {"approve": digest("v1"), "force": {"digest": digest("v1"), "reason": "first"}}}),
    );
    let mut world = roll(&extra);
    world.gate = GateView::NotJudged {
        name: "quality".to_owned(),
    };
    world.settle(120);
    assert_eq!(
        (world.state().as_str(), world.traffic().as_str()),
        ("Gating", "v1:100")
    );
    assert!(world.message("RolledOut").contains("has not judged yet"));
    world.gate = judged(GateVerdict::Passed);
    world.settle(120);
    assert_eq!(
        (world.state().as_str(), world.up("v2")),
        ("AwaitingApproval", 0)
    );
    world.edit(&json!({"rollout": {"approve": digest("v2")}}));
    world.until("gap", |world| world.traffic() == "Gap");
    world.until("all", |world| world.traffic() == "v2:100");
}

#[test]
fn a_bad_one_in_a_gap_makes_room_for_the_old_one_again() {
    let mut world = roll(&json!({"rollout": {"strategy": "Replace"}}));
    world.behave("v2", bad(Reason::WrongAnswers));
    world.until("gap", |world| world.traffic() == "Gap");
    let mut together = 0;
    while world.traffic() != "v1:100" {
        if !world.pass(Kill::Never) {
            world.tick(1);
        }
        together = together.max(world.up("v1").min(world.up("v2")));
    }
    // In the pass that opens the gap only; never while the new one runs.
    assert_eq!(together, 0);
    world.settle(60);
    assert_eq!(
        (world.up("v2"), world.outcome().as_str()),
        (0, "RolledBack")
    );
    assert!(world.says("Stalled=True/Rejected"));
}

#[test]
fn without_room_for_two_there_is_a_gap_or_it_waits() {
    let mut world = roll(&json!({}));
    world.engine_bytes = Some(1500 * MIB);
    world.until("gap", |world| world.traffic() == "Gap");
    world.until("all", |world| world.traffic() == "v2:100");
    let mut world = roll(&json!({"rollout": {"whenNoRoom": "Wait"}}));
    world.engine_bytes = Some(1500 * MIB);
    world.settle(300);
    assert!(world.says("RolledOut=False/Preparing"));
    world.tick(600);
    world.settle(60);
    assert!(
        world.says("RolledOut=False/NoRoomForTwo"),
        "{:?}",
        world.told()
    );
    assert!(world.status().rejected.is_empty());
    world.engine_bytes = Some(64 << 30);
    world.until("all", |world| world.traffic() == "v2:100");
}

#[test]
fn the_old_one_is_not_started_again_where_the_gpu_does_not_hold_both() {
    let mut world = roll(&json!({}));
    world.gpu_bytes = Some(1500 * MIB);
    world.until("gap", |world| world.traffic() == "Gap");
    world.until_state("Baking");
    for _ in 0..50 {
        world.pass(Kill::Never);
        world.tick(5);
        assert_eq!(world.up("v1"), 0);
    }
    assert_eq!(
        (world.state().as_str(), world.traffic().as_str()),
        ("Baking", "v2:100")
    );
}

#[test]
fn a_canary_needs_room_for_all_its_replicas() {
    // Four old ones and one new one fit, eight do not.
    let mut extra = canary();
    super::sim::merge(&mut extra, &json!({"rollout": {"whenNoRoom": "Wait"}}));
    let mut world = roll(&extra);
    world.engine_bytes = Some(8 << 30);
    world.settle(60);
    assert_eq!((world.state().as_str(), world.up("v2")), ("Preparing", 0));
    world.engine_bytes = Some(16 << 30);
    world.until("all", |world| world.traffic() == "v2:100");
}

#[test]
fn a_gate_fails_pauses_or_is_forced() {
    let extra = json!({"rollout": {"gateRef": {"name": "quality"}, "force": {"digest": digest("v1"), "reason": "first"}}});
    let mut world = roll(&extra);
    world.gate = judged(GateVerdict::Failed);
    world.until("rejected", |world| world.says("Stalled=True/Rejected"));
    assert_eq!(
        world.status().rejected[0].reason.as_deref(),
        Some("GateFailed")
    );
    assert!(
        world
            .message("Stalled")
            .ends_with("change `modelRef` or run `relayctl rollout retry main -n space`")
    );
    // What only its gate stopped, a person may force.
    world.edit(&json!({"rollout": {"force": {"digest": digest("v2"), "reason": "known rows", "by": "ada"}}}));
    world.until("forced", |world| world.champion() == "v2");
    world.settle(700);
    let record = world.status().history[0].clone();
    assert_eq!(record.reason.as_deref(), Some("Forced by ada: known rows"));

    for verdict in [GateVerdict::Inconclusive, GateVerdict::Error] {
        let mut world = roll(&extra);
        world.gate = judged(verdict);
        world.until_state("Paused");
        world.settle(120);
        assert_eq!(
            world
                .status()
                .rollout
                .unwrap()
                .paused_from
                .unwrap()
                .as_str(),
            "Gating"
        );
        world.gate = judged(GateVerdict::Passed);
        world.until("served", |world| world.champion() == "v2");
    }
    let mut world = roll(&extra);
    world.edit(&json!({"rollout": {"onInconclusive": "Abort"}}));
    world.gate = judged(GateVerdict::Inconclusive);
    world.until("rejected", |world| world.says("RolledOut=False/Rejected"));
    assert_eq!(
        world.status().rejected[0].reason.as_deref(),
        Some("GateInconclusive")
    );
    let mut world = roll(&extra);
    world.gate = GateView::NotFound {
        name: "quality".to_owned(),
    };
    world.until_state("Gating");
    world.settle(60);
    assert!(
        world
            .message("RolledOut")
            .contains("EvaluationGate quality is not there")
    );
}

#[test]
fn one_that_is_let_through_and_is_not_ready_is_promoted_once_it_is() {
    let first = json!({"rollout": {"approval": "Manual", "approve": digest("v1")}});
    let mut world = roll(&first);
    world.until_state("AwaitingApproval");
    let hangs = Behaviour {
        hangs: Some(0),
        ..Behaviour::default()
    };
    world.behave("v2", hangs);
    world.edit(&json!({"rollout": {"approve": digest("v2")}}));
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
    assert!(world.says("RolledOut=False/AwaitingApproval"));
    world.behaviours.clear();
    world.until("served", |world| world.traffic() == "v2:100");
}

#[test]
fn another_wording_needs_a_person() {
    let contract = |byte: &str| Some(format!("sha256:{}", byte.repeat(32)));
    // One that names no contract answers ours.
    for (old, new) in [
        (contract("aa"), contract("bb")),
        (None, contract("bb")),
        (contract("aa"), None),
    ] {
        let mut world = World::new(&json!({}));
        world.models.get_mut("v1").unwrap().contract = old;
        world.models.get_mut("v2").unwrap().contract = new;
        world.settle(60);
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.until_state("AwaitingApproval");
        world.settle(120);
        assert!(world.says("RolledOut=False/AwaitingApproval"));
        assert!(world.message("RolledOut").contains("worded differently"));
        world.edit(&json!({"rollout": {"approve": digest("v2")}}));
        world.until("served", |world| world.champion() == "v2");
    }
    let mut world = World::new(&json!({}));
    let ours = decision::relay_contract().digest().to_string();
    world.models.get_mut("v2").unwrap().contract = Some(ours);
    world.settle(60);
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("served", |world| world.champion() == "v2");
}

#[test]
fn probing_rejects_what_lies_and_the_champion_is_untouched() {
    for reason in [
        Reason::WrongAnswers,
        Reason::DeadHead,
        Reason::MalformedAnswers,
        Reason::QuestionsUnknown,
        Reason::ContractMismatch,
    ] {
        let mut world = roll(&json!({}));
        world.behave("v2", bad(reason));
        world.settle(120);
        assert_eq!(
            world.status().rejected[0].reason.as_deref(),
            Some(reason.as_str())
        );
        assert_eq!((world.traffic().as_str(), world.up("v2")), ("v1:100", 0));
        assert_eq!(world.outcome(), "Rejected");
        assert!(world.says("Ready=True/Reconciled") && world.says("Stalled=True/Rejected"));
    }
}

#[test]
fn one_that_says_itself_that_it_must_not_serve_is_rejected_before_its_deadline() {
    for reason in [
        Reason::WrongAnswers,
        Reason::DeadHead,
        Reason::MalformedAnswers,
        Reason::ContractMismatch,
    ] {
        let mut world = roll(&json!({"rollout": {"progressDeadlineSeconds": 86_400}}));
        let refuses = Behaviour {
            refuses: Some(reason),
            ..Behaviour::default()
        };
        world.behave("v2", refuses);
        world.settle(60);
        let status = world.status();
        let rejected = &status.rejected[0];
        assert_eq!(rejected.reason.as_deref(), Some(reason.as_str()));
        let message = rejected.message.as_deref().unwrap();
        assert!(message.contains("ProbeFailed: its own probe"), "{message}");
        assert_eq!((world.traffic().as_str(), world.up("v2")), ("v1:100", 0));
        assert_eq!(world.outcome(), "Rejected");
    }
}

#[test]
fn a_failure_while_baking_goes_back_at_once_and_is_not_tried_again() {
    let mut world = roll(&json!({}));
    world.until_state("Baking");
    world.behave("v2", bad(Reason::WrongAnswers));
    world.until("back", |world| world.traffic() == "v1:100");
    world.settle(60);
    let status = world.status();
    assert_eq!(
        (world.champion().as_str(), world.outcome().as_str()),
        ("v1", "RolledBack")
    );
    assert!(
        status.previous.is_none(),
        "what was taken back is never gone back to"
    );
    assert_eq!(
        world
            .event_names()
            .iter()
            .filter(|it| **it == "RolledBack")
            .count(),
        1
    );
    assert!(world.says("RollbackReady=False/NoPrevious"));
    let done = world.done.len();
    world.tick(5_000);
    world.settle(60);
    assert_eq!(world.done.len(), done);
    world.behaviours.clear();
    world.edit(&json!({"rollout": {"retry": 1}}));
    world.until("retried", |world| world.champion() == "v2");
}

#[test]
fn a_new_champion_that_hangs_is_taken_back_and_the_old_one_is_never_stopped_for_it() {
    // Told by questions that are not answered; and at the latest when the watch is over.
    for (failures, soon) in [(3, true), (0, false)] {
        let mut world = roll(&json!({"rollout": {"rollbackWindowSeconds": 100}}));
        world.until_state("Baking");
        let from = world.boot;
        world.behave(
            "v2",
            Behaviour {
                hangs: Some(failures),
                ..Behaviour::default()
            },
        );
        world.until("back", |world| {
            assert_ne!(world.state(), "Draining");
            world.traffic() == "v1:100"
        });
        let took = (world.boot - from).as_secs();
        assert_eq!(took < 100, soon, "{took}");
        let rejected = world.status().rejected;
        assert_eq!(rejected[0].reason.as_deref(), Some("ProbeTimedOut"));
        world.settle(60);
        assert_eq!((world.up("v1"), world.up("v2")), (1, 0));
    }
}

#[test]
fn without_automatic_rollback_it_stands_still_until_a_person_decides() {
    let frozen = || {
        let mut world = roll(&json!({"rollout": {"autoRollback": false}}));
        world.until_state("Baking");
        world.behave("v2", bad(Reason::WrongAnswers));
        world.until_state("Paused");
        world.settle(300);
        assert_eq!(world.champion(), "v2");
        assert!(world.says("RolledOut=False/Paused") && world.says("Stalled=True/Rejected"));
        assert_eq!(world.up("v1"), 1, "the old one runs on");
        world
    };
    let mut world = frozen();
    let revision = world.status().champion.unwrap().revision;
    world.edit(&json!({"rollout": {"abort": revision}}));
    world.until("back", |world| world.traffic() == "v1:100");
    let mut world = frozen();
    world.behaviours.clear();
    world.edit(&json!({"rollout": {"retry": 1}}));
    world.settle(60);
    assert_eq!(
        (world.champion().as_str(), world.outcome().as_str()),
        ("v2", "Promoted")
    );
    let mut world = frozen();
    world.edit(&json!({"modelRef": {"name": "v3"}}));
    world.until("newest wish", |world| world.champion() == "v3");
}

#[test]
fn a_retry_after_a_deadline_has_a_new_one() {
    let mut world =
        roll(&json!({"rollout": {"autoRollback": false, "progressDeadlineSeconds": 60}}));
    let slow = Behaviour {
        loads_in: 100_000,
        ..Behaviour::default()
    };
    world.behave("v2", slow);
    world.until_state("Paused");
    world.behaviours.clear();
    world.edit(&json!({"rollout": {"retry": 1}}));
    world.until("served", |world| {
        assert!(world.status().rejected.is_empty() || world.status().retry_seen != Some(1));
        world.champion() == "v2"
    });
}

#[test]
fn a_pause_holds_steps_and_clocks_and_not_safety() {
    let mut world = roll(&canary());
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    world.tick(10);
    world.edit(&json!({"rollout": {"paused": true}}));
    world.tick(2_000);
    world.settle(60);
    assert_eq!(
        (world.state().as_str(), world.traffic().as_str()),
        ("Paused", "v1:90 v2:10")
    );
    world.edit(&json!({"rollout": {"paused": false}}));
    world.until_state("Shifting");
    world.pass(Kill::Never);
    assert_eq!(
        world.traffic(),
        "v1:90 v2:10",
        "the time that was left is left"
    );
    world.edit(&json!({"rollout": {"paused": true}}));
    world.until_state("Paused");
    for server in world.of("v2") {
        server.state = backend::RunState::Exited;
        server.exit_code = Some(1);
    }
    world.until("back", |world| world.traffic() == "v1:100");
}

#[test]
fn a_suspension_during_a_step_is_no_failure_of_the_candidate() {
    let mut world = roll(&canary());
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    world.edit(&json!({"suspend": true}));
    world.settle(60);
    assert_eq!((world.up("v1"), world.up("v2")), (0, 0));
    world.edit(&json!({"suspend": false}));
    world.until("step 1 again", |world| world.traffic() == "v1:90 v2:10");
    world.until("all", |world| world.traffic() == "v2:100");
    assert!(world.status().rejected.is_empty());
}

#[test]
fn a_person_takes_it_back_at_any_state() {
    for state in ["Preparing", "Loading", "Shifting", "Baking"] {
        let mut world = roll(&canary());
        if state == "Preparing" {
            world.models.get_mut("v2").unwrap().ready = false;
        }
        world.until_state(state);
        let revision = world
            .candidate()
            .or(world.status().champion.unwrap().revision);
        world.edit(&json!({"rollout": {"abort": revision}}));
        world.settle(60);
        assert_eq!(world.traffic(), "v1:100", "{state}");
        assert_eq!(
            world.status().rejected[0].reason.as_deref(),
            Some("Aborted"),
            "{state}"
        );
    }
}

#[test]
fn a_first_version_that_was_promoted_is_not_taken_back() {
    let mut world = World::new(&json!({}));
    world.until_state("Promoted");
    let revision = world.status().champion.unwrap().revision;
    world.edit(&json!({"rollout": {"abort": revision}}));
    world.until("served", |world| world.state() == "Done");
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
}

#[test]
fn the_newest_wish_wins_and_the_old_one_is_not_rejected() {
    for state in ["Preparing", "Starting", "Loading", "Shifting", "Baking"] {
        let mut world = roll(&canary());
        world.until_state(state);
        world.edit(&json!({"modelRef": {"name": "v3"}}));
        world.until("v3", |world| world.champion() == "v3");
        world.settle(60);
        assert!(world.status().rejected.is_empty(), "{state}");
        assert!(world.event_names().contains(&"Superseded"), "{state}");
        assert!(world.says("RolledOut=True/Observed"), "{state}");
    }
    let mut world = roll(&canary());
    world.until_state("Shifting");
    world.edit(&json!({"modelRef": {"name": "v1"}}));
    world.until("withdrawn", |world| {
        world.event_names().contains(&"Withdrawn")
    });
    assert!(world.says("RolledOut=False/Withdrawn"));
    world.settle(60);
    assert_eq!(
        (world.traffic().as_str(), world.outcome().as_str()),
        ("v1:100", "Withdrawn")
    );
}

#[test]
fn an_undo_while_baking_is_quick() {
    let mut world = roll(&json!({}));
    world.until_state("Baking");
    world.done.clear();
    world.edit(&json!({"modelRef": {"name": "v1"}}));
    world.until("v1", |world| world.champion() == "v1");
    assert!(
        !world.done.iter().any(|it| it.contains("Server")),
        "{:?}",
        world.done
    );
    assert!(world.status().rejected.is_empty());
}

#[test]
fn a_promotion_of_a_run_is_a_wish_and_ends_when_it_is_taken_back() {
    let promote = |world: &mut World| {
        world.promotions.push(super::super::Promotion {
            run: "tuesday".to_owned(),
            model: "v2".to_owned(),
            due_at: world.now().wall,
        });
        world.tick(1);
    };
    let mut world = World::serving(&json!({}));
    world.tick(5);
    promote(&mut world);
    world.until("v2", |world| world.champion() == "v2");
    let wish = world.status().wish.unwrap();
    assert_eq!(wish.from.as_deref(), Some("TrainingRun/tuesday"));
    assert_eq!(wish.spec_model.as_deref(), Some("v1"));
    world.settle(60);
    world.edit(&json!({"modelRef": {"name": "v3"}}));
    world.until("v3", |world| world.champion() == "v3");

    let mut world = World::serving(&json!({}));
    world.tick(5);
    world.behave("v2", bad(Reason::DeadHead));
    promote(&mut world);
    world.settle(120);
    assert_eq!(world.traffic(), "v1:100");
    assert!(
        !world.told().iter().any(|it| it.starts_with("Stalled")),
        "spec names no such thing"
    );
    assert!(world.says("RolledOut=True/Observed"));
    assert_eq!(
        world.status().rejected[0].reason.as_deref(),
        Some("DeadHead")
    );

    let mut world = World::serving(&json!({"promotions": "Ignore"}));
    world.tick(5);
    promote(&mut world);
    world.settle(60);
    assert_eq!(world.champion(), "v1");
}

#[test]
fn when_the_way_back_fails_too_rules_answer() {
    let mut world = roll(&json!({"rollout": {"progressDeadlineSeconds": 60}}));
    world.until_state("Baking");
    let broken = Behaviour {
        ends: Some((1, 1)),
        ..Behaviour::default()
    };
    world.behave("v1", broken.clone());
    world.behave("v2", broken);
    world.until("failed", |world| world.says("Stalled=True/RollbackFailed"));
    assert!(world.says("RolledOut=False/RollbackFailed"));
    assert_eq!(world.outcome(), "RollbackFailed");
    assert!(world.event_names().contains(&"RollbackFailed"));
    assert!(world.status().traffic.unwrap().targets.is_empty());
    world.behaviours.clear();
    world.edit(&json!({"modelRef": {"name": "v3"}}));
    world.until("a way out", |world| world.traffic() == "v3:100");
}

#[test]
fn what_is_advised_names_the_server_and_its_namespace() {
    let mut world = roll(&json!({}));
    world.until_state("Loading");
    world.edit(&json!({"rollout": {"paused": true}}));
    world.settle(20);
    let said = world.message("RolledOut");
    assert!(
        said.ends_with("Run relayctl rollout resume main -n space"),
        "{said}"
    );
    let mut world = roll(&json!({}));
    world.edit(&json!({"rollout": {"approval": "Manual"}}));
    world.until_state("AwaitingApproval");
    world.settle(20);
    let said = world.message("RolledOut");
    assert!(
        said.ends_with("Run relayctl rollout approve main -n space"),
        "{said}"
    );
}

#[test]
fn a_bake_that_a_newer_wish_cuts_short_is_recorded_as_that() {
    // Another model, and the one before again.
    for next in ["v3", "v1"] {
        let mut world = roll(&json!({}));
        world.until_state("Baking");
        world.edit(&json!({"modelRef": {"name": next}}));
        world.until("over", |world| world.status().history.len() == 2);
        let record = world.status().history[0].clone();
        assert_eq!(record.outcome.as_deref(), Some("Promoted"), "{next}");
        assert_eq!(
            record.reason.as_deref(),
            Some("the wish changed before its bake was over")
        );
        world.settle(700);
        assert_eq!(world.champion(), next);
        assert_eq!(world.status().history[0].reason, None, "watched to the end");
    }
}
