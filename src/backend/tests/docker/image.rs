//! The fault image itself: each switch does what it says.

use std::process::Command;

use api::group::Kind;
use backend::RunState;
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Run, answers, ensure, fault_image, owner, server, status};

/// Asks a server three questions about a state.
fn ask(url: &str, state: &str) -> String {
    let body = json!({"state": state, "questions": {
        "kind": {"type": "choice", "instructions": "Which?", "criteria": {"bug": "a", "idea": "b", "chore": "c"}},
        "urgent": {"type": "noul", "instructions": "Is it?"},
    }});
    curl(&format!("{url}/v1/systemone"), Some(&body.to_string()))
}

fn curl(url: &str, body: Option<&str>) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "10", url]);
    if let Some(body) = body {
        curl.args(["--data-binary", body]);
    }
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

/// A server with these switches, and its address.
async fn serving(run: &mut Run, name: &str, switches: &str) -> String {
    let image = match switches {
        "" => fault_image(),
        switches => run.faulty(switches),
    };
    let main = owner(Kind::LayaServer, name);
    run.with_models(&main).await;
    run.done(&main, ensure(&server(&image, "64Mi"), &[0])).await;
    let seen = run.server(&main, 0, |server| server.url.is_some()).await;
    let url = seen.url.unwrap();
    answers(&url, "/health").await;
    url
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_healthy_server_answers_as_a_model_does() {
    let mut run = Run::new().await;
    let url = serving(&mut run, "healthy", "").await;
    answers(&url, "/ready").await;
    assert_eq!(status(&url, "/metrics"), 200);
    let one: Value = serde_json::from_str(&ask(&url, "one")).unwrap();
    let two: Value = serde_json::from_str(&ask(&url, "two")).unwrap();
    assert_ne!(one["answers"], two["answers"]);
    assert_eq!(
        serde_json::from_str::<Value>(&ask(&url, "one")).unwrap(),
        one
    );
    let health: Value = serde_json::from_str(&curl(&format!("{url}/health"), None)).unwrap();
    assert_eq!(
        health["checkpoints"]["model"]["digest"],
        format!("sha256:{}", "ab".repeat(32))
    );
    assert_eq!(health["device"], "cpu");
    // The command of the health check.
    let name = run.instance.server(
        &owner(Kind::LayaServer, "healthy"),
        &server(&fault_image(), "64Mi").revision,
        0,
    );
    run.told(&["exec", &name, "/laya", "probe", "--ready"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn each_lie_is_told() {
    let mut run = Run::new().await;
    let honest = serving(&mut run, "honest", "").await;
    let url = serving(&mut run, "never-ready", "never-ready").await;
    assert_eq!(status(&url, "/ready"), 503);
    let url = serving(&mut run, "no-ready", "no-ready").await;
    assert_eq!(
        (status(&url, "/ready"), status(&url, "/health")),
        (404, 200)
    );
    let url = serving(&mut run, "nan", "nan").await;
    assert!(ask(&url, "one").contains("NaN"));
    let url = serving(&mut run, "malformed", "malformed").await;
    assert!(serde_json::from_str::<Value>(&ask(&url, "one")).is_err());
    let url = serving(&mut run, "dead-head", "dead-head").await;
    assert_eq!(ask(&url, "one"), ask(&url, "two"));
    let url = serving(&mut run, "wrong", "wrong-answers").await;
    let choice = |text: &str| {
        let answer: Value = serde_json::from_str(text).unwrap();
        answer["answers"]["kind"]["choice"].clone()
    };
    assert_ne!(choice(&ask(&url, "one")), choice(&ask(&honest, "one")));
    let url = serving(&mut run, "other", "wrong-contract,wrong-digest").await;
    let health: Value = serde_json::from_str(&curl(&format!("{url}/health"), None)).unwrap();
    let other = format!("sha256:{}", "2".repeat(64));
    assert_eq!(health["contract"], other.as_str());
    assert_eq!(health["checkpoints"]["model"]["digest"], other.as_str());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_slow_load_ends_and_a_crash_comes_after_so_many_answers() {
    let mut run = Run::new().await;
    let url = serving(&mut run, "slow", "slow-load=1500").await;
    assert_eq!(status(&url, "/ready"), 503);
    answers(&url, "/ready").await;
    let url = serving(&mut run, "crash", "crash-after=2,crash-code=7").await;
    let crash = owner(Kind::LayaServer, "crash");
    for state in ["one", "two"] {
        ask(&url, state);
    }
    let seen = run.server(&crash, 0, |server| server.restarts > 0).await;
    assert!(matches!(
        seen.state,
        RunState::Running | RunState::Restarting
    ));
    let started = std::time::Instant::now();
    while run.server(&crash, 0, |_| true).await.exit_code != Some(7) {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
