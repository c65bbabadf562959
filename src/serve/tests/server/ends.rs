//! How a server starts and ends: exit codes, signals, drain (wire.md 2.5, 3).

use std::time::{Duration, Instant};

use crate::support::{Client, PATIENCE, Server, TINY_MODELS, laya};
use crate::{ONE_CHOICE, copy_of_tiny, heavy};

fn ends_with(environment: &[(&str, &str)], flags: &[&str]) -> (Option<i32>, String) {
    let output = laya(environment)
        .arg("serve")
        .args(["--port", "0"])
        .args(flags)
        .output()
        .expect("runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn configuration_that_cannot_work_ends_with_1() {
    for (name, environment, flags, expected) in [
        (
            "port",
            &[("LAYA_EXTRA_MODELS", "x")][..],
            &[][..],
            "laya: invalid LAYA_EXTRA_MODELS: not valid JSON",
        ),
        (
            "level",
            &[("LAYA_LOG_LEVEL", "loud")],
            &[],
            "laya: invalid LAYA_LOG_LEVEL 'loud': must be one of",
        ),
        (
            "flag",
            &[],
            &["--device", "tpu"],
            "laya: invalid --device 'tpu': must be auto, cpu or cuda",
        ),
        (
            "address",
            &[],
            &["--host", "203.0.113.1", "--allow-unauthenticated"],
            "cannot listen on 203.0.113.1:0",
        ),
        (
            "no key",
            &[],
            &["--host", "0.0.0.0"],
            "refusing to listen on 0.0.0.0:0 without LAYA_API_KEY",
        ),
        (
            "key file",
            &[],
            &["--api-key-file", "/none"],
            "cannot read the key from /none",
        ),
        (
            "no parity",
            &[],
            &["--model", "tiny-laya", "--precision", "int8"],
            "no passed int8 parity report",
        ),
        (
            "no parity, nothing preloaded",
            &[("LAYA_PRELOAD", "0"), ("LAYA_PRECISION", "int8")],
            &[],
            "no passed int8 parity report: LAYA_PARITY is not set",
        ),
        (
            "no report, nothing preloaded",
            &[
                ("LAYA_PRELOAD", "0"),
                ("LAYA_PRECISION", "int8"),
                ("LAYA_PARITY", "tiny-laya/encoder"),
            ],
            &[],
            "no passed int8 parity report: tiny-laya/encoder",
        ),
        (
            "unknown model, nothing preloaded",
            &[("LAYA_PRELOAD", "0"), ("LAYA_MODELS", "frensh")],
            &[],
            "laya: invalid LAYA_MODELS 'frensh': unknown model 'frensh'",
        ),
    ] {
        let (code, said) = ends_with(environment, flags);
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
    }
    let (code, _) = ends_with(&[], &["--no-such-flag"]);
    assert_eq!(code, Some(2));
}

#[test]
fn a_refused_checkpoint_ends_with_3_and_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_of_tiny(folder.path());
    let path = model.to_str().unwrap();
    let wrong = format!("sha256:{}", "0".repeat(64));
    let digests = format!(r#"{{"model.safetensors":"{}"}}"#, "0".repeat(64));
    for (name, environment, flags, expected) in [
        (
            "digest",
            &[][..],
            &["--model", path, "--expect-digest", &wrong][..],
            "checkpoint digest mismatch",
        ),
        (
            "file",
            &[("LAYA_SHA256_DIGESTS", digests.as_str())],
            &["--model", path],
            "laya: SHA-256 mismatch for model.safetensors",
        ),
        (
            "unverified",
            &[("LAYA_REQUIRE_VERIFIED", "1")],
            &["--model", path],
            "has no manifest",
        ),
        (
            "no checkpoint",
            &[],
            &["--model", folder.path().to_str().unwrap()],
            "does not contain 'rl_agent_config.json'",
        ),
    ] {
        let (code, said) = ends_with(environment, flags);
        assert_eq!(code, Some(3), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
    }
    std::fs::write(
        model.join("model.safetensors"),
        b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
    )
    .unwrap();
    let (code, said) = ends_with(&[], &["--model", path]);
    assert_eq!(code, Some(3), "{said}");
    let mut files: Vec<_> = std::fs::read_dir(&model)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(
        files,
        [
            "encoder",
            "model.safetensors",
            "rl_agent_config.json",
            "tokenizer"
        ]
    );
}

#[test]
fn the_first_signal_drains_and_ends_with_0() {
    let mut server = Server::tiny(&[]);
    let begun = Instant::now();
    server.signal("-TERM");
    server.until("not ready", || {
        server.get("/ready").json()["reason"] == "Draining"
    });
    assert_eq!(
        server.ask(ONE_CHOICE).status,
        200,
        "requests are still taken"
    );
    assert_eq!(server.ended(), Some(0));
    assert!(begun.elapsed() >= Duration::from_secs(5), "it lingers");
}

#[test]
fn a_request_that_runs_is_answered_before_the_end() {
    let mut server = Server::tiny(&[("LAYA_THREADS", "1")]);
    let mut client = Client::connect(server.address);
    let mut stalled = Client::connect(server.address);
    // The body comes only after the drain has begun.
    stalled.request(
        "POST",
        "/v1/systemone",
        &[("content-length", &ONE_CHOICE.len().to_string())],
        b"",
    );
    client.request("POST", "/v1/systemone/batch", &[], heavy(16).as_bytes());
    server.until("both are admitted", || {
        server.metric("laya_in_flight") == 2.0
    });
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(5500));
    stalled.write(ONE_CHOICE.as_bytes());
    assert_eq!(client.reply("POST").status, 200);
    assert_eq!(stalled.reply("POST").status, 200);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn the_drain_has_a_bound_and_a_second_signal_ends_at_once() {
    let mut server = Server::tiny(&[
        ("LAYA_DRAIN_TIMEOUT", "0.2"),
        ("LAYA_BODY_READ_TIMEOUT", "60"),
    ]);
    let mut stalled = Client::connect(server.address);
    stalled.request("POST", "/v1/systemone", &[("content-length", "10")], b"");
    server.until("it is admitted", || server.metric("laya_in_flight") == 1.0);
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));

    let mut server = Server::tiny(&[]);
    server.signal("-TERM");
    server.until("not ready", || server.get("/ready").status == 503);
    let begun = Instant::now();
    server.signal("-INT");
    assert_eq!(server.ended(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn the_last_line_of_the_start_says_what_is_served() {
    let server = Server::start(
        &[
            ("LAYA_EXTRA_MODELS", TINY_MODELS),
            ("LAYA_MODELS", "en,typed"),
        ],
        &[],
    );
    let begun = Instant::now();
    loop {
        let line = server
            .lines
            .lock()
            .unwrap()
            .recv_timeout(PATIENCE.saturating_sub(begun.elapsed()))
            .expect("the line");
        if line.contains("serving on") {
            assert!(
                line.contains(&format!("http://{}", server.address)),
                "{line}"
            );
            assert!(
                line.contains("english, typed-decisions sha256:") && line.contains("on cpu in f32"),
                "{line}"
            );
            return;
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_served_by_the_cpu_and_never_ready() {
    let server = Server::start_unready(&[], &["--model", "tiny-laya", "--device", "cuda"]);
    server.until("it is loaded", || {
        !server.get("/health").json()["device_is_preference"]
            .as_bool()
            .unwrap()
    });
    let ready = server.get("/ready");
    assert_eq!(
        (ready.status, ready.json()["reason"].clone()),
        (503, "WrongDevice".into())
    );
    assert_eq!(server.get("/health").json()["device"], "cpu");
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
}
