//! Which checkpoints are in memory, when, and what becomes of those that cannot be loaded (wire.md 3).

use std::time::Duration;

use crate::support::{Server, TINY_MODELS};
use crate::{ONE_CHOICE, copy_of_tiny};

fn ask(server: &Server, model: &str) -> u16 {
    server
        .ask(&ONE_CHOICE.replacen('{', &format!(r#"{{"model":"{model}","#), 1))
        .status
}

fn loaded(server: &Server) -> Vec<String> {
    let health = server.get("/health").json();
    let names = health["loaded"].as_array().into_iter().flatten();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

#[test]
fn the_least_recently_used_goes_first() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    assert_eq!(loaded(&server), Vec::<String>::new());
    assert_eq!(ask(&server, "en"), 200);
    assert_eq!(ask(&server, "ml"), 200);
    assert_eq!(loaded(&server), ["english", "multilingual"]);
    assert_eq!(ask(&server, "en"), 200);
    assert_eq!(loaded(&server), ["multilingual", "english"]);
    assert_eq!(ask(&server, "typed"), 200);
    assert_eq!(loaded(&server), ["english", "typed-decisions"]);
}

/// Names of the checkpoints that an object of `/health` shows, in the order of its text.
fn keys(health: &str, object: &str) -> Vec<&'static str> {
    let start = format!("\"{object}\":");
    let rest = health.split(&start).nth(1).expect("the object");
    let mut depth = 0_i32;
    let end = rest.find(|c| {
        depth += i32::from("{[".contains(c)) - i32::from("}]".contains(c));
        depth == 0
    });
    let text = &rest[..end.expect("its end")];
    let mut found: Vec<(usize, &str)> = ["english", "multilingual", "typed-decisions"]
        .into_iter()
        .filter_map(|name| Some((text.find(&format!("\"{name}\""))?, name)))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn health_has_revisions_by_load_and_the_rest_by_use() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0"), ("LAYA_MAX_LOADED", "2")]);
    for (asked, by_load, by_use) in [
        ("typed", &["typed-decisions"][..], &["typed-decisions"][..]),
        (
            "ml",
            &["typed-decisions", "multilingual"],
            &["typed-decisions", "multilingual"],
        ),
        (
            "typed",
            &["typed-decisions", "multilingual"],
            &["multilingual", "typed-decisions"],
        ),
        (
            "en",
            &["typed-decisions", "english"],
            &["typed-decisions", "english"],
        ),
        (
            "ml",
            &["english", "multilingual"],
            &["english", "multilingual"],
        ),
        (
            "en",
            &["english", "multilingual"],
            &["multilingual", "english"],
        ),
    ] {
        assert_eq!(ask(&server, asked), 200);
        let health = server.get("/health").text();
        assert_eq!(keys(&health, "revisions"), by_load, "{asked}: {health}");
        for object in ["loaded", "checkpoint_devices", "cpu_fallbacks"] {
            assert_eq!(keys(&health, object), by_use, "{asked} {object}: {health}");
        }
        let ready = server.get("/ready").text();
        assert_eq!(keys(&ready, "checkpoints"), by_use, "{asked}: {ready}");
    }
}

#[test]
fn several_requests_for_a_missing_checkpoint_share_one_load() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&server, "ml"))).collect();
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(statuses, [200; 8]);
    assert_eq!(
        server.metric(r#"laya_load_seconds_count{checkpoint="multilingual"}"#),
        1.0
    );
}

#[test]
fn idle_checkpoints_are_unloaded_and_come_back() {
    let server = Server::tiny(&[("LAYA_IDLE_UNLOAD_SECONDS", "0.3"), ("LAYA_MODELS", "en")]);
    let health = server.get("/health").json();
    assert_eq!(health["idle_unload_seconds"], 0.3);
    assert!(health["idle_seconds"].is_number());
    for _ in 0..2 {
        assert_eq!(ask(&server, "en"), 200);
        server.until("it is unloaded", || loaded(&server).is_empty());
        assert_eq!(server.get("/ready").status, 200, "it loads on demand");
    }
}

#[test]
fn requests_never_fail_because_of_idleness() {
    let server = Server::tiny(&[("LAYA_IDLE_UNLOAD_SECONDS", "0.06"), ("LAYA_MODELS", "en")]);
    for pause in 0..30 {
        std::thread::sleep(Duration::from_millis(5 * (pause % 12)));
        assert_eq!(ask(&server, "en"), 200);
    }
}

#[test]
fn a_checkpoint_that_is_not_there_is_named_and_served_once_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tiny");
    let server = Server::start_unready(&[], &["--model", place.to_str().unwrap()]);
    server.until("the reason is named", || {
        server.get("/ready").json()["reason"] == "NoCheckpoint"
    });
    let reply = server.ask(ONE_CHOICE);
    assert_eq!(
        (reply.status, reply.text()),
        (500, r#"{"detail":"inference failed"}"#.to_owned())
    );
    assert_eq!(server.get("/health").status, 200);
    let elsewhere = tempfile::tempdir_in(folder.path()).unwrap();
    let copy = copy_of_tiny(elsewhere.path());
    std::fs::rename(copy, &place).unwrap();
    server.until_ready();
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
}

#[test]
fn what_is_only_in_a_repository_names_the_command_that_fetches_it() {
    let server = Server::start_unready(&[("HF_HOME", "/none")], &["--models", "en"]);
    server.until("the command is named", || {
        let ready = server.get("/ready").json();
        let message = ready["message"].as_str().unwrap_or_default();
        ready["reason"] == "NoCheckpoint"
            && message.contains("hf download convaiinnovations/laya --revision main")
    });
}

#[test]
fn a_failed_load_on_demand_turns_ready_false_and_mends_itself() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_of_tiny(folder.path());
    let weights = model.join("model.safetensors");
    let good = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &good[..good.len() / 2]).unwrap();
    let models = TINY_MODELS.replacen(
        "\"tiny-laya\"",
        &format!("{:?}", model.to_str().unwrap()),
        1,
    );
    let server = Server::start(
        &[("LAYA_EXTRA_MODELS", &models), ("LAYA_MODELS", "ml")],
        &[],
    );
    assert_eq!(ask(&server, "en"), 500);
    let ready = server.get("/ready").json();
    assert_eq!(ready["reason"], "LoadFailed", "{ready}");
    assert_eq!(ask(&server, "ml"), 200, "others still answer");
    std::fs::write(&weights, good).unwrap();
    server.until_ready();
    assert_eq!(ask(&server, "en"), 200);
}
