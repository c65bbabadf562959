//! The rows of control-plane 3.2, each by its name.

use api::kinds::laya_model::ModelLocation;
use api::reason::Reason;
use backend::{BackendError, CheckpointPlace, RunState, VolumeRole};
use serde_json::json;

use super::sim::{Behaviour, Kill, MIB, World, digest};
use crate::probe::{DeviceSaid, Questions, Readiness, ReplicaProbe};
use crate::reconciler::Requeue;

fn actions(world: &mut World) -> Vec<String> {
    let planned = world.plan();
    let told = planned.actions.iter();
    told.map(|it| crate::reconciler::Effect::name(it).to_owned())
        .collect()
}

#[test]
fn first_start_stores_then_fetches_then_starts_then_asks_then_serves() {
    let mut world = World::new(&json!({}));
    world.settle(60);
    let names: Vec<_> = world
        .done
        .iter()
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert_eq!(names, ["StoreRevision", "EnsureImage", "EnsureServer"]);
    assert_eq!(
        (world.champion().as_str(), world.traffic().as_str()),
        ("v1", "v1:100")
    );
    assert_eq!(world.event_names(), ["RolloutStarted", "Promoted"]);
    for said in [
        "Ready=True/Reconciled",
        "Available=True/Observed",
        "ContractMatched=True/ContractUnverified",
        "Probed=True/Observed",
        "DeviceMatched=True/Cpu",
        "RolledOut=True/Observed",
        "RollbackReady=False/NoPrevious",
        "ModelReady=True/Observed",
        "FieldsSupported=True/AllApplied",
        "BackendReachable=True/Observed",
    ] {
        assert!(world.says(said), "{said}: {:?}", world.told());
    }
    let status = world.status();
    assert_eq!(status.phase.as_deref(), Some("Steady"));
    assert_eq!((status.replicas, status.ready_replicas), (Some(1), Some(1)));
    assert!(
        !world
            .told()
            .iter()
            .any(|it| it.starts_with("Stalled") || it.starts_with("Reconciling"))
    );
}

#[test]
fn steady_does_nothing_and_writes_nothing() {
    let mut world = World::serving(&json!({}));
    let writes = world.writes;
    for _ in 0..200 {
        world.tick(60);
        assert!(!world.pass(Kill::Never));
    }
    assert_eq!(world.writes, writes);
    let requeue = world.plan().requeue;
    assert_eq!(requeue, Requeue::After(std::time::Duration::from_secs(60)));
}

#[test]
fn suspended_empties_traffic_first_and_stops_then() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"suspend": true}));
    assert!(actions(&mut world).is_empty());
    world.pass(Kill::Never);
    assert_eq!(world.traffic(), "Suspended");
    assert_eq!(actions(&mut world), ["Drain", "StopServer"]);
    world.settle(60);
    assert_eq!(world.up("v1"), 0);
    assert!(world.says("Ready=False/Suspended"));
    world.edit(&json!({"suspend": false}));
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
    world.edit(&json!({"replicas": 0}));
    world.settle(60);
    assert_eq!((world.up("v1"), world.traffic().as_str()), (0, "Suspended"));
}

pub(super) fn foreign(right: bool) -> ReplicaProbe {
    ReplicaProbe {
        revision: String::new(),
        ordinal: 0,
        url: "http://127.0.0.1:8737".to_owned(),
        readiness: Readiness::Ready {
            since: "2026-11-30T10:00:00Z".parse().unwrap(),
            for_seconds: 60,
        },
        plain: false,
        digest: Some(digest("f")),
        contract: None,
        device: DeviceSaid::default(),
        questions: Questions {
            passed_all: right,
            passed_at: right.then(|| "2026-11-30T10:00:00Z".parse().unwrap()),
            failures: 3,
            failed: (!right).then(|| crate::probe::QuestionsFailed {
                reason: Reason::ContractMismatch,
                message: "requires_git is missing".to_owned(),
                conclusive: true,
            }),
            ..Questions::default()
        },
    }
}

#[test]
fn external_serves_while_its_answers_are_right_and_until_ours_does() {
    let mut world = World::new(&json!({"external": {"url": "http://127.0.0.1:8737/"}}));
    world.external = Some(foreign(true));
    world.settle(60);
    assert!(world.done.is_empty());
    let target = world.status().traffic.unwrap().targets[0].clone();
    assert_eq!(
        (target.urls, target.weight),
        (vec!["http://127.0.0.1:8737".to_owned()], Some(100))
    );
    assert!(world.says("Adopted=True/Observed") && world.says("Ready=True/Reconciled"));
    assert!(world.says("ContractMatched=True/ContractUnverified"));
    world.external = Some(foreign(false));
    world.settle(60);
    assert_eq!(world.traffic(), "ContractMismatch");
    assert!(world.says("ContractMatched=False/ContractMismatch"));
    world.external = Some(foreign(true));
    world.settle(60);
    world.external = None;
    world.edit(&json!({"external": null}));
    world.pass(Kill::Never);
    assert_eq!(
        world.status().traffic.unwrap().targets.len(),
        1,
        "it stays until ours serves"
    );
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
    assert_eq!(world.empty_seconds, 60, "only while its answers were wrong");
}

#[test]
fn external_that_is_this_router_itself_gets_nothing_and_is_told() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"external": {"url": "http://localhost:8737/"}}));
    world.own_address = Some("127.0.0.1:8737".parse().unwrap());
    // Whatever it answers: it is never asked.
    for external in [None, Some(foreign(true))] {
        world.external = external;
        world.settle(60);
        assert_eq!(world.traffic(), "InvalidSpec");
        for said in [
            "Stalled=True/InvalidSpec",
            "Ready=False/InvalidSpec",
            "Adopted=False/InvalidSpec",
        ] {
            assert!(world.says(said), "{said}: {:?}", world.told());
        }
        let message = world.message("Stalled");
        assert!(message.starts_with("spec.external.url: "), "{message}");
    }
    world.own_address = None;
    world.external = None;
    world.edit(&json!({"external": null}));
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
}

#[test]
fn external_without_ready_is_told_of_and_never_merely_not_asked() {
    let plain = |readiness, questions| ReplicaProbe {
        plain: true,
        readiness,
        questions,
        ..foreign(true)
    };
    let failing = |reason, failures| Questions {
        failures,
        failed: Some(crate::probe::QuestionsFailed {
            reason,
            message: "so it is".to_owned(),
            conclusive: false,
        }),
        ..Questions::default()
    };
    let mut world = World::new(&json!({"external": {"url": "http://127.0.0.1:8737/"}}));
    world.external = Some(plain(Readiness::Unknown, Questions::default()));
    world.settle(60);
    assert_eq!(world.traffic(), "Starting");
    let said = world.message("Adopted");
    assert!(
        said.contains("has not answered its probe questions") && said.contains("no /ready"),
        "{said}"
    );
    for (reason, failures, condition) in [
        (Reason::QuestionsUnknown, 0, "ContractMatched"),
        (Reason::ProbeTimedOut, 3, "Probed"),
    ] {
        world.external = Some(plain(Readiness::Unknown, failing(reason, failures)));
        world.settle(60);
        assert_eq!(world.traffic(), reason.as_str());
        assert!(
            world.says(&format!("{condition}=False/{}", reason.as_str())),
            "{:?}",
            world.told()
        );
    }
    let served = foreign(true);
    world.external = Some(plain(served.readiness, served.questions));
    world.settle(60);
    assert_eq!(world.status().traffic.unwrap().targets.len(), 1);
    assert!(world.says("Ready=True/Reconciled"));
    assert!(world.message("Adopted").contains("it has no /ready"));
    // Of one that is said to speak Laya's own words nobody expects it.
    world.edit(&json!({"serverApi": "Laya"}));
    world.settle(60);
    assert!(!world.message("Adopted").contains("/ready"));
}

#[test]
fn unknown_keeps_facts_and_traffic_and_does_nothing() {
    let mut world = World::serving(&json!({}));
    let before = world.status();
    world.engine = Err(BackendError::Unavailable {
        what: "list".to_owned(),
        address: "/var/run/docker.sock".to_owned(),
        message: "refused".to_owned(),
    });
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.settle(120);
    assert!(world.says("BackendReachable=False/EngineUnavailable"));
    assert!(world.says("Ready=Unknown/EngineUnavailable"));
    let after = world.status();
    assert_eq!(
        (after.traffic, after.champion),
        (before.traffic, before.champion)
    );
    assert!(world.done.is_empty());
    world.engine = Ok(());
    world.until("v2", |world| world.champion() == "v2");
}

#[test]
fn recovering_takes_over_the_oldest_that_is_ready() {
    let mut world = World::serving(&json!({}));
    let running = world.status().champion.unwrap().revision;
    world.object.status = None;
    world.documents.clear();
    world.settle(60);
    assert_eq!(world.status().champion.unwrap().revision, running);
    assert_eq!(world.event_names()[0], "Adopted");
    assert!(
        !world.done.iter().any(|it| it.starts_with("EnsureServer")),
        "{:?}",
        world.done
    );
    assert_eq!(world.documents.len(), 1, "stored again");
    assert_eq!(world.traffic(), "v1:100");
}

#[test]
fn recovering_waits_a_minute_and_then_begins_anew() {
    let mut world = World::serving(&json!({}));
    world.behave(
        "v1",
        Behaviour {
            loads_in: 100_000,
            ..Behaviour::default()
        },
    );
    world.object.status = None;
    world.pass(Kill::Never);
    world.tick(50);
    world.pass(Kill::Never);
    assert_eq!(world.state(), "");
    world.tick(15);
    world.until_state("Preparing");
}

#[test]
fn crashing_is_made_anew_with_a_growing_pause() {
    let mut world = World::serving(&json!({}));
    world.behave(
        "v1",
        Behaviour {
            ends: Some((1, 1)),
            ..Behaviour::default()
        },
    );
    for _ in 0..3_000 {
        if !world.pass(Kill::Never) {
            world.tick(1);
        }
    }
    assert!(
        world.says("Available=False/CrashLoop"),
        "{:?}",
        world.told()
    );
    assert_eq!(world.status().phase.as_deref(), Some("Crashing"));
    assert_eq!(world.traffic(), "CrashLoop");
    let anew = world
        .done
        .iter()
        .filter(|it| it.starts_with("RecreateServer"))
        .count();
    assert!((2..12).contains(&anew), "{anew}");
    assert_eq!(
        world
            .event_names()
            .iter()
            .filter(|it| **it == "CrashLoop")
            .count(),
        1
    );
    world.behaviours.clear();
    world.settle(400);
    assert_eq!(world.traffic(), "v1:100");
}

#[test]
fn repairing_starts_what_was_stopped_and_says_so_once() {
    let mut world = World::serving(&json!({}));
    for server in world.of("v1") {
        server.state = RunState::Exited;
        server.exit_code = Some(137);
    }
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
    assert_eq!(world.event_names(), ["Repaired"]);
    assert!(
        world.status().restarts.is_none(),
        "a stop by hand is no crash"
    );
}

#[test]
fn fault_14_repairing_makes_what_was_removed_and_says_so_once() {
    for (replicas, expected) in [(1, "it was gone"), (3, "1 of 3 replicas was gone")] {
        let mut world = World::serving(&json!({"replicas": replicas}));
        world.remove_one("v1");
        world.settle(60);
        assert_eq!(world.up("v1"), replicas);
        assert_eq!(world.event_names(), ["Repaired"], "{replicas}");
        let note = &world.events[0].1;
        assert!(note.contains(expected), "{note}");
    }
}

#[test]
fn repairing_puts_another_beside_first_where_there_is_room() {
    for (bytes, expected) in [
        (
            Some(64 << 30),
            vec!["EnsureServer", "Drain", "DeleteServer"],
        ),
        (Some(1 << 30), vec!["RecreateServer"]),
    ] {
        let mut world = World::serving(&json!({}));
        world.engine_bytes = bytes;
        world.of("v1")[0].tampered = vec!["memory".to_owned()];
        let empty = world.empty_seconds;
        world.settle(60);
        let names: Vec<_> = world
            .done
            .iter()
            .filter_map(|it| it.split(' ').next())
            .collect();
        assert_eq!(names, expected);
        assert_eq!(world.empty_seconds > empty, bytes == Some(1 << 30));
        assert!(
            world
                .events
                .iter()
                .any(|(name, note)| name == "Repaired" && note.contains("memory"))
        );
        assert_eq!((world.up("v1"), world.traffic().as_str()), (1, "v1:100"));
    }
}

#[test]
fn scaling_goes_up_and_down_without_a_gap() {
    let mut world = World::serving(&json!({}));
    let empty = world.empty_seconds;
    world.edit(&json!({"replicas": 3}));
    world.settle(60);
    assert_eq!(world.up("v1"), 3);
    assert_eq!(world.status().traffic.unwrap().targets[0].urls.len(), 3);
    assert!(
        world.events.is_empty(),
        "scaling is no repair: {:?}",
        world.events
    );
    world.edit(&json!({"replicas": 1}));
    world.settle(60);
    assert_eq!((world.up("v1"), world.empty_seconds), (1, empty));
    assert_eq!(world.status().traffic.unwrap().targets[0].urls.len(), 1);
}

#[test]
fn pointing_follows_a_new_port_and_says_why_there_is_none() {
    let mut world = World::serving(&json!({}));
    let before = world.status().traffic.unwrap();
    world.of("v1")[0].port = 50_000;
    world.pass(Kill::Never);
    world.settle(60);
    let after = world.status().traffic.unwrap();
    assert_eq!(after.targets[0].urls, ["http://127.0.0.1:50000"]);
    assert!(after.generation > before.generation);
}

#[test]
fn sweeping_removes_what_is_neither_champion_candidate_nor_previous() {
    let mut world = World::serving(&json!({"rollout": {"rollbackWindowSeconds": 0}}));
    for model in ["v2", "v3"] {
        world.edit(&json!({"modelRef": {"name": model}}));
        world.until("promoted", |world| world.champion() == model);
        world.settle(60);
    }
    assert_eq!(world.servers.len(), 2, "champion and previous");
    assert_eq!((world.up("v3"), world.up("v2")), (1, 0));
    assert!(world.done.iter().any(|it| it.starts_with("DeleteServer")));
}

#[test]
fn a_server_that_is_being_deleted_is_left_alone() {
    let mut world = World::serving(&json!({}));
    let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now().wall);
    world.object.metadata.deletion_timestamp = Some(at);
    let planned = world.plan();
    assert_eq!(
        (planned.actions.len(), planned.requeue),
        (0, Requeue::Never)
    );
    world.pass(Kill::Never);
    assert!(world.says("Ready=False/Deleting"));
}

#[test]
fn what_a_back_end_cannot_do_is_cut_and_said() {
    let mut world = World::new(&json!({
        "replicas": 3, "device": "Cuda", "gpu": {"count": 2}, "pod": {"priorityClassName": "high"},
        "rollout": {"strategy": "Canary", "canary": {"steps": [{"weight": 10, "holdSeconds": 30}]}},
    }));
    world.capabilities = backend::Capabilities {
        name: "embedded",
        max_replicas: 1,
        gpu: false,
        split_traffic: false,
        training: false,
        images: false,
        pods: false,
    };
    world.settle(60);
    assert!(world.says("FieldsSupported=False/FieldsIgnored"));
    let paths = world.message("FieldsSupported");
    for path in [
        "spec.replicas",
        "spec.device",
        "spec.gpu",
        "spec.pod",
        "spec.rollout.strategy",
    ] {
        assert!(paths.contains(path), "{path}: {paths}");
    }
    assert_eq!((world.up("v1"), world.traffic().as_str()), (1, "v1:100"));
    assert!(world.says("Ready=True/Reconciled"));
    let image = world.status().champion.and_then(|it| it.image);
    assert_eq!(image, None, "nothing is an image there");
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("v2", |world| world.champion() == "v2");
    assert!(!world.event_names().contains(&"StepTaken"));
}

#[test]
fn external_holds_a_rollout_and_needs_no_engine() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    let before = world.status().champion;
    world.edit(&json!({"external": {"url": "http://127.0.0.1:8737/"}}));
    world.external = Some(foreign(true));
    world.engine = Err(BackendError::TimedOut {
        what: "list".to_owned(),
        after: std::time::Duration::from_secs(5),
    });
    world.settle(60);
    assert_eq!(
        (world.state().as_str(), world.status().champion),
        ("Paused", before)
    );
    assert!(world.message("RolledOut").contains("spec.external"));
    assert!(world.says("BackendReachable=False/ObservationTimedOut"));
    assert!(world.says("Adopted=True/Observed"));
    world.tick(5_000);
    world.engine = Ok(());
    world.external = None;
    world.edit(&json!({"external": null}));
    world.until("v2", |world| world.champion() == "v2");
    assert!(world.status().rejected.is_empty());
}

#[test]
fn scaling_down_keeps_those_that_serve() {
    let mut world = World::serving(&json!({"replicas": 3}));
    world.tick(2_000);
    world.settle(60);
    let slow = Behaviour {
        loads_in: 1_000,
        ..Behaviour::default()
    };
    world.behave("v1", slow);
    let boot = world.boot;
    for ((_, ordinal), server) in &mut world.servers {
        if *ordinal == 0 {
            server.started = boot;
        }
    }
    world.edit(&json!({"replicas": 1}));
    world.settle(60);
    let up = world
        .servers
        .iter()
        .filter(|(_, server)| server.state == RunState::Running);
    let left: Vec<_> = up.map(|((_, ordinal), _)| *ordinal).collect();
    assert_eq!((left, world.traffic().as_str()), (vec![1], "v1:100"));
}

/// A champion from a volume that is not ours, whose model cannot be read any more.
fn champion_without_its_model(gone: bool) -> World {
    let mut world = World::new(&json!({}));
    let model = world.models.get_mut("v1").unwrap();
    model.foreign_volume = true;
    model.size_bytes = 4_096 * MIB;
    model.location = Some(ModelLocation {
        volume: Some("theirs".to_owned()),
        path: Some("local-3".to_owned()),
        ..ModelLocation::default()
    });
    world.settle(60);
    assert_eq!(world.champion(), "v1");
    if gone {
        world.models.remove("v1");
    } else {
        // As of an object that does not parse.
        let model = world.models.get_mut("v1").unwrap();
        model.ready = false;
        model.digest = None;
        model.size_bytes = 0;
        model.location = None;
        model.foreign_volume = false;
    }
    world
}

#[test]
fn repairing_without_its_model_renders_from_the_labels_of_what_is_left() {
    for gone in [true, false] {
        let mut world = champion_without_its_model(gone);
        let server = world.of("v1").remove(0);
        server.state = RunState::Exited;
        server.exit_code = Some(0);
        // Where traffic goes comes first.
        world.pass(Kill::Never);
        let planned = world.plan();
        let ensured = planned
            .actions
            .iter()
            .find_map(|it| match it.backend_action() {
                Some(backend::Action::EnsureServer { server, .. }) => Some(server),
                _ => None,
            });
        let server = ensured.unwrap_or_else(|| panic!("{:?}", planned.actions));
        assert_eq!(
            server.checkpoint(),
            CheckpointPlace {
                volume: VolumeRole::Foreign {
                    name: "theirs".to_owned()
                },
                path: "local-3".to_owned(),
                bytes: 4_096 * MIB,
            }
        );
        world.settle(60);
        assert_eq!((world.up("v1"), world.traffic().as_str()), (1, "v1:100"));
    }
}

#[test]
fn repairing_guesses_nothing_and_says_what_is_missing() {
    for gone in [true, false] {
        let mut world = champion_without_its_model(gone);
        world.servers.clear();
        world.done.clear();
        world.settle(60);
        let starts = |it: &String| it.starts_with("EnsureServer") || it.starts_with("Recreate");
        assert!(!world.done.iter().any(starts), "{:?}", world.done);
        let said = world.message("Available");
        assert!(
            said.contains("cannot be started") && said.contains("LayaModel v1"),
            "{said}"
        );
        assert!(world.says("Available=False/Starting"));
    }
}
