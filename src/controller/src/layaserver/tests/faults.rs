//! Faults of engineering.md 14, as far as `plan` decides them.

use api::reason::Reason;
use backend::{BackendError, RunState};
use serde_json::json;

use super::super::{GateVerdict, GateView};
use super::sim::{Behaviour, Kill, World, digest};

#[test]
fn fault_08_a_pass_on_what_was_seen_before_does_nothing_twice() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    for _ in 0..200 {
        // Each pass happens twice, the second on what the first saw.
        let stale = world.clone();
        if !world.pass(Kill::Never) {
            world.tick(1);
            continue;
        }
        let mut late = stale;
        let planned = late.plan();
        for action in &planned.actions {
            assert!(
                world
                    .done
                    .iter()
                    .any(|it| it.starts_with(crate::reconciler::Effect::name(action)))
            );
        }
    }
    world.settle(60);
    assert_eq!((world.champion().as_str(), world.servers.len()), ("v2", 2));
}

#[test]
fn fault_11_a_clock_that_jumps_ends_no_watch_early() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Baking");
    world.tick(10);
    world.pass(Kill::Never);
    world.jump = 3_600;
    world.settle(0);
    world.pass(Kill::Never);
    assert_eq!(world.state(), "Baking");
    world.tick(600);
    world.until_state("Done");
    for jump in [3_600, -3_600] {
        let mut world = World::serving(&json!({}));
        world.jump = jump;
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.until("v2", |world| world.champion() == "v2");
        world.jump = 0;
        world.tick(8_000);
        world.settle(700);
        assert_eq!(world.state(), "Done", "{jump}");
    }
}

#[test]
fn fault_13_the_same_name_with_another_uid_is_another_revision() {
    let mut world = World::serving(&json!({}));
    let before = world.status().champion.unwrap().revision;
    world.object.metadata.uid = Some("another-uid".to_owned());
    world.object.status = None;
    world.servers.clear();
    world.documents.clear();
    world.settle(60);
    assert_ne!(world.status().champion.unwrap().revision, before);
}

#[test]
fn fault_15_a_spec_that_changes_during_the_way_back_waits_for_it() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Baking");
    let lies = Behaviour {
        lies: Some((Reason::DeadHead, true)),
        ..Behaviour::default()
    };
    world.behave("v2", lies);
    for server in world.of("v1") {
        server.state = RunState::Exited;
        server.exit_code = Some(0);
    }
    world.until_state("RollingBack");
    world.edit(&json!({"modelRef": {"name": "v3"}}));
    world.pass(Kill::Never);
    assert!(
        world.candidate().is_none(),
        "the way back is finished first"
    );
    world.until("v1", |world| world.traffic() == "v1:100");
    world.until("v3", |world| world.champion() == "v3");
    world.settle(60);
    let rejected: Vec<_> = world
        .status()
        .rejected
        .into_iter()
        .filter_map(|it| it.digest)
        .collect();
    assert_eq!(rejected, [digest("v2")]);
}

#[test]
fn fault_24_a_crash_loop_a_slow_load_and_a_load_that_hangs_are_rejected() {
    for (behaviour, reason) in [
        (
            Behaviour {
                ends: Some((1, 1)),
                ..Behaviour::default()
            },
            "CrashLoop",
        ),
        (
            Behaviour {
                ends: Some((1, 3)),
                ..Behaviour::default()
            },
            "ModelDamaged",
        ),
        (
            Behaviour {
                ends: Some((1, 137)),
                oom: true,
                ..Behaviour::default()
            },
            "OutOfMemory",
        ),
        (
            Behaviour {
                loads_in: 100_000,
                ..Behaviour::default()
            },
            "LoadTimedOut",
        ),
        (
            Behaviour {
                lies: Some((Reason::ProbeTimedOut, false)),
                ..Behaviour::default()
            },
            "ProbeTimedOut",
        ),
    ] {
        let mut world = World::serving(&json!({"rollout": {"progressDeadlineSeconds": 60}}));
        world.behave("v2", behaviour);
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.settle(300);
        assert_eq!(world.status().rejected[0].reason.as_deref(), Some(reason));
        assert_eq!(
            (world.traffic().as_str(), world.up("v2")),
            ("v1:100", 0),
            "{reason}"
        );
    }
}

#[test]
fn fault_24_what_a_candidate_said_last_is_in_the_event() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    for server in world.of("v2") {
        server.state = RunState::Exited;
        server.exit_code = Some(1);
    }
    world.settle(60);
    let mut told = world.events.iter();
    let (_, note) = told.find(|(name, _)| name == "Rejected").unwrap();
    assert!(note.contains("the end of its log"), "{note}");
}

#[test]
fn fault_25_require_refuses_and_prefer_serves_and_says_so() {
    let cuda = |claims, p50, fallbacks| Behaviour {
        claims,
        p50,
        fallbacks,
        ..Behaviour::default()
    };
    for (behaviour, reason) in [
        (cuda("cpu", 400, 0), "DeviceMismatch"),
        (cuda("cuda", 400, 0), "DeviceSuspect"),
        (cuda("cuda", 40, 2), "CpuFallback"),
        (cuda("", 400, 0), "DeviceSuspect"),
    ] {
        let mut world = World::new(&json!({}));
        world.behave("v1", cuda("cuda", 20, 0));
        world.behave("v2", behaviour.clone());
        world.edit(&json!({"device": "Cuda"}));
        world.settle(60);
        assert!(world.says("DeviceMatched=True/Cuda"));
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.settle(120);
        assert_eq!(world.status().rejected[0].reason.as_deref(), Some(reason));
        assert_eq!(world.champion(), "v1");

        let mut world = World::new(&json!({"device": "Cuda", "devicePolicy": "Prefer"}));
        world.behave("v1", behaviour);
        world.settle(60);
        assert!(
            world.says(&format!("DeviceMatched=False/{reason}")),
            "{:?}",
            world.told()
        );
        assert!(world.says("Ready=True/Reconciled"));
    }
    let mut world = World::new(&json!({"device": "Cuda"}));
    world.behave("v1", cuda("", 20, 0));
    world.settle(60);
    assert!(world.says("DeviceMatched=Unknown/NotReported") && world.says("Ready=True/Reconciled"));
}

#[test]
fn fault_25_a_gpu_that_goes_away_is_tried_again_with_pauses() {
    let mut world = World::new(&json!({"device": "Cuda"}));
    let on = |claims| Behaviour {
        claims,
        p50: 20,
        ..Behaviour::default()
    };
    world.behave("v1", on("cuda"));
    world.settle(60);
    world.done.clear();
    world.behave("v1", on("cpu"));
    for _ in 0..200 {
        if !world.pass(Kill::Never) {
            world.tick(1);
        }
    }
    let anew = world
        .done
        .iter()
        .filter(|it| it.starts_with("RecreateServer"))
        .count();
    assert!((1..12).contains(&anew), "{anew}");
    world.behave("v1", on("cuda"));
    world.settle(400);
    assert!(world.says("DeviceMatched=True/Cuda") && world.says("Ready=True/Reconciled"));
}

#[test]
fn fault_26_a_champion_that_lies_gets_no_traffic() {
    let mut world = World::serving(&json!({}));
    world.behave(
        "v1",
        Behaviour {
            other_weights: true,
            ..Behaviour::default()
        },
    );
    world.settle(60);
    assert!(world.says("Probed=False/WrongAnswers") && world.says("Ready=False/WrongAnswers"));
    assert_eq!(world.traffic(), "WrongAnswers");
    world.behaviours.clear();
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
}

#[test]
fn fault_30_a_report_that_is_gone_holds_the_step_then_pauses_and_never_promotes() {
    let mut world = World::serving(&json!({"rollout": {"strategy": "Canary", "canary": {
        "steps": [{"weight": 10, "holdSeconds": 600}]}}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    world.tick(60);
    world.pass(Kill::Never);
    world.report = Err("the router does not answer".to_owned());
    world.pass(Kill::Never);
    world.tick(250);
    world.pass(Kill::Never);
    assert_eq!(world.state(), "Shifting");
    world.tick(60);
    world.until_state("Paused");
    world.tick(5_000);
    world.settle(60);
    assert_eq!(
        (world.state().as_str(), world.traffic().as_str()),
        ("Paused", "v1:90 v2:10")
    );
    assert!(world.status().rejected.is_empty());
    world.report = Ok(());
    world.until_state("Shifting");
    world.tick(400);
    world.pass(Kill::Never);
    assert_eq!(
        world.traffic(),
        "v1:90 v2:10",
        "the time without a report does not count"
    );
    world.until("all", |world| world.traffic() == "v2:100");

    let mut world =
        World::serving(&json!({"rollout": {"strategy": "Shadow", "shadow": {"maxSeconds": 600}}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Shadowing");
    world.report = Err("the router does not answer".to_owned());
    world.tick(700);
    world.until_state("Paused");
    world.report = Ok(());
    world.until("all", |world| world.traffic() == "v2:100");
}

#[test]
fn fault_30_a_router_that_has_not_taken_a_step_holds_it() {
    let mut world = World::serving(&json!({"rollout": {"strategy": "Canary", "canary": {
        "steps": [{"weight": 10, "holdSeconds": 30}]}}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("step 1", |world| world.traffic() == "v1:90 v2:10");
    let generation = world.status().traffic.unwrap().generation;
    world.router_has = generation.map(|generation| generation - 1);
    for _ in 0..20 {
        world.tick(10);
        world.pass(Kill::Never);
    }
    assert_eq!(
        (world.state().as_str(), world.traffic().as_str()),
        ("Shifting", "v1:90 v2:10")
    );
    world.until_state("Paused");
    world.router_has = None;
    world.until("all", |world| world.traffic() == "v2:100");
    assert!(world.status().rejected.is_empty());
}

#[test]
fn fault_31_a_gate_that_failed_names_question_and_slice() {
    let mut world =
        World::serving(&json!({"rollout": {"force": {"digest": digest("v1"), "reason": "first"}}}));
    world.gate = GateView::Judged {
        name: "quality".to_owned(),
        digest: digest("v2"),
        evaluation: "e1".to_owned(),
        verdict: GateVerdict::Failed,
        message: "recall of security_sensitive on lang:pt is 0.71, floor 0.90".to_owned(),
    };
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("rejected", |world| world.says("Stalled=True/Rejected"));
    let told = world.message("Stalled");
    assert!(
        told.contains("security_sensitive") && told.contains("lang:pt"),
        "{told}"
    );
}

#[test]
fn fault_32_a_candidate_that_dies_after_promotion_is_taken_back_without_the_network() {
    for stopped in [false, true] {
        let mut world = World::serving(&json!({}));
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.until_state("Baking");
        // No registry: an image that is not here stays so.
        let fetched = world
            .done
            .iter()
            .filter(|it| it.starts_with("EnsureImage"))
            .count();
        for server in world.of("v1") {
            if stopped {
                server.state = RunState::Exited;
                server.exit_code = Some(0);
            }
        }
        world.behave(
            "v2",
            Behaviour {
                ends: Some((0, 1)),
                ..Behaviour::default()
            },
        );
        world.until("v1", |world| world.traffic() == "v1:100");
        world.settle(60);
        let again = world
            .done
            .iter()
            .filter(|it| it.starts_with("EnsureImage"))
            .count();
        assert_eq!(fetched, again);
        assert_eq!(
            (world.champion().as_str(), world.outcome().as_str()),
            ("v1", "RolledBack")
        );
        assert_eq!(
            world.status().rejected[0].reason.as_deref(),
            Some("CrashLoop")
        );
        assert_eq!(world.up("v2"), 0);
    }
}

#[test]
fn fault_02_a_controller_that_was_away_asks_before_it_decides() {
    for state in ["Loading", "Probing", "Baking"] {
        let mut world = World::serving(&json!({}));
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        world.until_state(state);
        world.tick(5_000);
        world.restart_process();
        world.pass(Kill::Never);
        assert_eq!(world.state(), state);
        world.until("done", |world| world.state() == "Done");
        assert_eq!(world.champion(), "v2", "{state}");
        assert!(world.status().rejected.is_empty(), "{state}");
    }
}

#[test]
fn a_suspension_on_the_way_back_takes_none_of_its_time() {
    let mut world = World::serving(&json!({"rollout": {"progressDeadlineSeconds": 60}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Baking");
    let lies = Behaviour {
        lies: Some((Reason::DeadHead, true)),
        ..Behaviour::default()
    };
    world.behave("v2", lies);
    for server in world.of("v1") {
        server.state = RunState::Exited;
        server.exit_code = Some(0);
    }
    world.until_state("RollingBack");
    world.edit(&json!({"suspend": true}));
    for _ in 0..50 {
        world.pass(Kill::Never);
        world.tick(10);
    }
    world.edit(&json!({"suspend": false}));
    world.until("v1", |world| world.traffic() == "v1:100");
    world.settle(60);
    assert_eq!(world.outcome(), "RolledBack");
}

#[test]
fn fault_16_an_engine_that_is_back_finds_everything_as_it_was() {
    let mut world = World::serving(&json!({}));
    world.engine = Err(BackendError::TimedOut {
        what: "list".to_owned(),
        after: std::time::Duration::from_secs(5),
    });
    world.settle(60);
    assert!(world.says("BackendReachable=False/ObservationTimedOut"));
    world.restart_process();
    world.engine = Ok(());
    world.settle(60);
    assert_eq!(
        (world.servers.len(), world.traffic().as_str()),
        (1, "v1:100")
    );
    assert!(world.done.is_empty(), "{:?}", world.done);
}

#[test]
fn fault_19_a_stranger_on_the_name_of_the_candidate_is_in_nobody_elses_way() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Starting");
    let candidate = world.candidate().unwrap();
    world.strangers.push(backend::Stranger {
        name: format!("relay-abc-main-{candidate}-0"),
        reason: Reason::NameTaken,
        holder: "container of somebody".to_owned(),
    });
    world.pass(Kill::Never);
    assert!(world.says("RolledOut=False/NameTaken"));
    for server in world.of("v1") {
        server.state = RunState::Exited;
        server.exit_code = Some(0);
    }
    world.settle(60);
    assert_eq!((world.up("v1"), world.up("v2")), (1, 0));
    assert_eq!(world.traffic(), "v1:100");
    world.strangers.clear();
    world.until("served", |world| world.champion() == "v2");
}

#[test]
fn fault_21_damage_is_told_once_until_it_was_repaired() {
    let mut world = World::serving(&json!({}));
    for server in world.of("v1") {
        server.state = RunState::Exited;
        server.exit_code = Some(3);
    }
    world.pass(Kill::Never);
    let damage = world.status().damage.unwrap();
    assert_eq!(damage.digest, Some(digest("v1")));
    assert!(world.says("ModelReady=False/ModelDamaged"));
    world.settle(60);
    assert_eq!(world.status().damage, Some(damage));
    world.models.get_mut("v1").unwrap().verified_at = Some(world.now().wall);
    world.settle(60);
    assert!(world.says("ModelReady=True/Observed"));
    assert_eq!(
        world
            .event_names()
            .iter()
            .filter(|it| **it == "ModelDamaged")
            .count(),
        1
    );
}

#[test]
fn a_document_whose_name_is_taken_is_said_each_pass_and_not_tried_each_pass() {
    let mut world = World::serving(&json!({}));
    let revision = world.status().champion.unwrap().revision.unwrap();
    world.documents.clear();
    world.taken.insert(revision.clone());
    world.settle(60);
    assert!(world.says("RolledOut=False/NameTaken") && world.says("Stalled=True/NameTaken"));
    let writes = world.writes;
    world.settle(60);
    assert_eq!(world.writes, writes);
    assert!(!world.done.iter().any(|it| it.starts_with("StoreRevision")));
    world.taken.clear();
    world.settle(60);
    assert!(world.says("RolledOut=True/Observed") && !world.says("Stalled=True/NameTaken"));
    assert!(world.documents.contains_key(&revision));
}
