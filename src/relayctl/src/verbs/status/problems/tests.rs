//! Each problem with its command.

use serde_json::json;

use super::*;
use crate::kinds;

fn engine(tree: Value) -> Engine {
    serde_json::from_value(tree).unwrap()
}

#[test]
fn the_engine_is_one_line() {
    for (tree, expected) in [
        (
            json!({"backend": "docker", "reachable": true, "version": "20.10.24", "address": "unix:///var/run/docker.sock", "memoryBytes": 8_000_000_000_u64}),
            "docker 20.10.24 at unix:///var/run/docker.sock, memory 8.0 GB, no GPU",
        ),
        (
            json!({"backend": "docker", "reachable": false, "reason": "EngineUnavailable", "message": "connection refused"}),
            "docker, not reachable: connection refused",
        ),
        (
            json!({"backend": "embedded", "reachable": true, "gpu": {"memoryBytes": 24_000_000_000_u64}}),
            "embedded, GPU 24 GB",
        ),
    ] {
        assert_eq!(engine_line(&engine(tree)), expected);
    }
}

#[test]
fn room_that_was_seen_earlier_is_no_problem_of_now() {
    for (seen_at, count) in [(None, 1), (Some("2026-11-30T10:00:00Z"), 0)] {
        let found = engine_problems(&engine(json!({"backend": "docker", "reachable": true,
            "modelsVolume": {"name": "v", "freeBytes": 5, "totalBytes": 9, "seenAt": seen_at}})));
        assert_eq!(found.len(), count, "{found:?}");
    }
}

#[test]
fn each_problem_of_the_engine_has_its_command() {
    let found = engine_problems(&engine(
        json!({"backend": "docker", "reachable": false, "reason": "EngineForbidden", "message": "permission denied",
        "strangers": [{"name": "127.0.0.1:8737", "reason": "PortInUse", "holder": "container relay-laya"},
            {"name": "relay-abc-main", "reason": "NameTaken", "holder": "container of somebody"}],
        "unclaimed": [{"kind": "LayaServer", "namespace": "default", "name": "main", "children": ["relay-abc-main-0"]}],
        "modelsVolume": {"name": "relay-abc-models", "freeBytes": 5_000_000, "totalBytes": 9_000_000_000_u64}}),
    ));
    let text: Vec<_> = found
        .iter()
        .map(|one| format!("{} | {}", one.what, one.fix))
        .collect();
    assert_eq!(text.len(), 5, "{text:#?}");
    for (line, parts) in text.iter().zip([
        ["(EngineForbidden): permission denied", "usermod -aG docker"],
        [
            "127.0.0.1:8737 belongs to container relay-laya (PortInUse)",
            "relayctl adopt",
        ],
        [
            "relay-abc-main belongs to container of somebody (NameTaken)",
            "docker rename relay-abc-main OTHER",
        ],
        [
            "relay-abc-main-0 of layaserver/main in namespace default runs on",
            "relayctl up --recover",
        ],
        [
            "is nearly full: 5.0 MB of 9.0 GB are free",
            "relayctl model rm NAME",
        ],
    ]) {
        assert!(
            parts.iter().all(|part| line.contains(part)),
            "{line}: {parts:?}"
        );
    }
    assert_eq!(
        engine_problems(&engine(json!({"backend": "embedded", "reachable": true}))),
        []
    );
}

#[test]
fn a_taken_port_is_told_once() {
    let stranger = engine(
        json!({"strangers": [{"name": "127.0.0.1:8737", "reason": "PortInUse", "holder": "x"}]}),
    );
    for (name, router, own, engine, told) in [
        (
            "the right port",
            "http://127.0.0.1:8737",
            false,
            None,
            false,
        ),
        ("the next", "http://127.0.0.1:8738", false, None, true),
        ("asked for", "http://127.0.0.1:8738", true, None, false),
        ("any port", "http://127.0.0.1:40000", false, None, false),
        (
            "told by the engine",
            "http://127.0.0.1:8738",
            false,
            Some(&stranger),
            false,
        ),
    ] {
        assert_eq!(
            port_problem(Some(router), own, engine, |_| None).is_some(),
            told,
            "{name}"
        );
    }
    let named = port_problem(Some("http://127.0.0.1:8738"), false, None, |port| {
        Some(format!("the one of {port}"))
    });
    assert_eq!(
        named.unwrap().what,
        "port 8737 is taken by the one of 8737, and the router listens on 8738 meanwhile"
    );
    assert!(port_problem(None, false, None, |_| None).is_none());
}

#[test]
fn why_no_model_serves_is_told_with_what_helps() {
    let health = json!({"ok": false});
    let laya = |spec: Value, status: Value| json!({"metadata": {"name": "main", "generation": 1}, "spec": spec, "status": status});
    let wish = || json!({"modelRef": {"name": "v1"}});
    let suspended = json!({"metadata": {"name": "v1"}, "spec": {"suspend": true, "source": {"http": crate::manifest::Manifest::shipped().to_source()}}});
    let failed = json!({"metadata": {"name": "v1"}, "status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "SourceNotFound", "message": "404"}]}});
    for (name, models, servers, what, fix) in [
        (
            "nothing",
            vec![],
            vec![],
            "no decision model: keyword",
            "relayctl up",
        ),
        (
            "not fetched",
            vec![suspended],
            vec![laya(wish(), json!({}))],
            "v1 (678 MB from huggingface.co) is not fetched",
            "relayctl model fetch v1",
        ),
        (
            "not there",
            vec![],
            vec![laya(wish(), json!({}))],
            "names layamodel/v1, which is not there",
            "relayctl use NAME",
        ),
        (
            "its model failed",
            vec![failed.clone()],
            vec![laya(wish(), json!({}))],
            "layaserver/main: 404 (SourceNotFound)",
            "relayctl explain layaserver/main",
        ),
        (
            "suspended",
            vec![failed.clone()],
            vec![laya(json!({"suspend": true}), json!({}))],
            "is suspended",
            "remove spec.suspend",
        ),
        (
            "champion ill",
            vec![failed],
            vec![laya(
                wish(),
                json!({"champion": {"model": "v1"}, "conditions": [{"type": "Ready", "status": "False", "reason": "CrashLoop", "message": "ends"}]}),
            )],
            "layaserver/main: ends (CrashLoop)",
            "relayctl explain layaserver/main",
        ),
    ] {
        let missing = no_model(Some(&health), None, false, &models, &servers).unwrap();
        assert!(
            missing.what.contains(what) && missing.fix.starts_with(fix),
            "{name}: {missing:?}"
        );
    }
    assert!(no_model(Some(&json!({"ok": true})), None, false, &[], &[]).is_none());
    assert!(no_model(None, None, false, &[], &[]).is_none());
    let own = no_model(Some(&health), Some(&Said::Loading), true, &[], &[]).unwrap();
    assert!(own.what.contains("being loaded"));
}

#[test]
fn conditions_lead_to_their_commands() {
    let object = |reason: &str| {
        json!({"metadata": {"name": "main", "generation": 1}, "spec": {"modelRef": {"name": "v1"}}, "status": {"observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "m"}]}})
    };
    for (kind, reason, fix) in [
        (
            kinds::laya_server(),
            "CrashLoop",
            Some("relayctl logs main"),
        ),
        (
            kinds::laya_server(),
            "ModelNotReady",
            Some("relayctl explain lm/v1"),
        ),
        (
            kinds::laya_server(),
            "NoRoomForTwo",
            Some("relayctl explain layaserver/main"),
        ),
        (kinds::laya_server(), "Suspended", None),
        (
            kinds::laya_model(),
            "ModelDamaged",
            Some("relayctl model verify main"),
        ),
        (
            kinds::laya_model(),
            "SourceBusy",
            Some("relayctl model fetch main"),
        ),
    ] {
        let found = trouble(kind, &object(reason)).map(|missing| missing.fix);
        assert_eq!(found.as_deref(), fix, "{reason}");
    }
}
