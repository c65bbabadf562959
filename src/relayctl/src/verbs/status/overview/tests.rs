//! The screen.

use serde_json::json;

use super::*;
use crate::context::Source;
use crate::daemon::Model;
use crate::kinds;
use crate::verbs::status::{Unanswered, lost};
use api::exit::Exit;
use files::Places;

fn context(name: &str) -> Chosen {
    Chosen {
        name: name.to_owned(),
        source: Source::Default,
    }
}

fn screen(facts: &Facts, context: &Chosen) -> String {
    let now = "2026-11-30T10:00:00Z".parse().unwrap();
    overview(facts, context, "default", now).render(Styles::PLAIN)
}

#[test]
fn an_empty_machine_is_told_how_to_begin() {
    let facts = Facts {
        daemon: Some(State::Absent),
        api: Some(Unanswered {
            exit: Exit::Unreachable,
            why: "cannot reach it".into(),
            hint: None,
        }),
        ..Facts::default()
    };
    assert_eq!(
        screen(&facts, &context("local")),
        "context   local, namespace default\nrelayd    not running\nproblem   `relayd local` is not running\n          fix: relayctl up\n"
    );
}

#[test]
fn each_problem_has_its_command() {
    let refused = json!({"metadata": {"name": "default", "generation": 2}, "status": {"observedGeneration": 2, "acceptedRevision": "0123456789", "conditions": [
        {"type": "Accepted", "status": "False", "reason": "BadPattern", "message": "m"},
        {"type": "Stalled", "status": "True", "reason": "BadPattern", "message": "rule 0\u{1b} is empty"}]}});
    let facts = Facts {
        objects: vec![(kinds::routing_policy(), vec![refused])],
        ..Facts::default()
    };
    assert_eq!(
        screen(&facts, &context("team")),
        "context   team, namespace default\npolicy    default: Accepted=False (BadPattern), revision 0123456789\nproblem   routingpolicy/default: rule 0\\u{1b} is empty (BadPattern)\n          fix: relayctl explain routingpolicy/default\n"
    );
    let none = Facts {
        objects: vec![(kinds::routing_policy(), Vec::new())],
        ..Facts::default()
    };
    assert!(screen(&none, &context("team")).contains("fix: relayctl apply -f policy.yaml"));
}

#[test]
fn problems_are_bounded_and_what_nobody_acts_on_is_none() {
    let new = |name: String| json!({"metadata": {"name": name, "generation": 1}});
    let many = |count: usize| {
        (0..count)
            .map(|at| new(format!("o{at}")))
            .collect::<Vec<_>>()
    };
    let facts = Facts {
        objects: vec![
            (kinds::named("LayaServer").unwrap(), many(12)),
            (kinds::named("TrainingRun").unwrap(), many(3)),
            (kinds::routing_policy(), many(13)),
        ],
        ..Facts::default()
    };
    let text = screen(&facts, &context("team"));
    assert_eq!(text.matches("\nproblem ").count(), 10, "{text}");
    assert!(
        text.contains("and 15 more; `relayctl status -o yaml`"),
        "{text}"
    );
    assert!(!text.contains("trainingrun/"), "{text}");
    assert!(
        text.contains(
            "server    o9: Ready=Unknown (no controller has looked at it yet)\n          and 2 more"
        ),
        "{text}"
    );
}

#[test]
fn a_lost_store_a_full_disk_and_a_bad_checkpoint_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    let places = Places {
        relay: folder.path().to_owned(),
        agent: folder.path().join("agent"),
    };
    let aside = folder.path().join("objects.db.damaged-17");
    std::fs::write(&aside, "").unwrap();
    let facts = Facts {
        lost: lost(&places),
        free: Some(3 << 20),
        home: Some("/home/ada/.relay".into()),
        health: Some(json!({"ok": false})),
        model: Some(Model::Refused("'/m' is no directory".into())),
        own_model: true,
        ..Facts::default()
    };
    let text = screen(&facts, &context("local"));
    for part in [
        &format!("objects was set aside as {}", aside.display()),
        "RELAY_HOME (/home/ada/.relay) is full: 3 MiB are free, 103 MiB are needed",
        "no decision model: '/m' is no directory; keyword rules answer",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn engine_server_and_rollout_have_their_lines() {
    let laya = json!({"metadata": {"name": "main", "generation": 1}, "spec": {"modelRef": {"name": "w"}}, "status": {"observedGeneration": 1,
        "champion": {"model": "v1", "shortDigest": "d5a13ee24047", "device": {"actual": "cuda"}},
        "candidate": {"model": "w", "shortDigest": "41c07fe2a9d1"}, "previous": {"model": "v0"},
        "rollout": {"kind": "Model", "state": "Probing"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}]}});
    let facts = Facts {
        engine: serde_json::from_value(json!({"backend": "docker", "reachable": true, "version": "20.10",
            "modelsVolume": {"name": "relay-abc-models", "freeBytes": 12_000_000_000_u64, "totalBytes": 100_000_000_000_u64}})).unwrap(),
        objects: vec![(kinds::laya_server(), vec![laya])],
        ..Facts::default()
    };
    assert_eq!(
        screen(&facts, &context("local")),
        "\
context   local, namespace default
engine    docker 20.10, no GPU
space     relay-abc-models: 12 GB free of 100 GB
server    main: Ready=True (Reconciled), champion v1 (d5a13ee24047) on cuda, previous v0
rollout   main: v1 (d5a13ee24047) -> w (41c07fe2a9d1), blue-green, probing
problems  none
"
    );
}
