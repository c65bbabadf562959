//! Outcomes that wait for a router (agent.md 10.3).

use std::time::{Duration, Instant};

use api::problem::{Problem, Slug};
use serde_json::json;

use crate::fake_router::{FakeRouter, Reply};
use crate::{Home, decision};

const FILE: &str = "laya/outcomes.jsonl";

fn line(attempt: u32) -> String {
    json!({
        "decision_id": "0193d2b1-7c4e-7a10-8f00-000000000001", "attempt": attempt, "result": "success",
        "tests_passed": true, "tool_failures": 0, "final": true,
    })
    .to_string()
        + "\n"
}

fn taken() -> serde_json::Value {
    json!({"recorded": true, "history": {"key": "bug_fix:2", "model": "a/b", "successes": 1.0, "failures": 0.0,
           "mean": 0.9, "upper": 0.95, "excluded": false}})
}

/// A router that decides.
fn router() -> FakeRouter {
    let router = FakeRouter::start();
    router.answer("POST /v1/route", &decision("Fix the pager"));
    router
}

#[test]
fn they_go_out_with_the_next_contact_oldest_first() {
    let (home, router) = (Home::new(), router());
    router.answer("POST /v1/outcomes", &taken());
    home.write(FILE, &(line(1) + &line(2)));
    let ended = home.run(&router.url(), &["route", "Fix the pager"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    let asked = router.asked();
    let attempts: Vec<_> = asked
        .iter()
        .map(|asked| asked.body["attempt"].as_u64())
        .collect();
    assert_eq!(attempts, [None, Some(1), Some(2)]);
    assert_eq!(home.read(FILE).unwrap(), "");
    // Nothing waits, so nothing is asked.
    home.run(&router.url(), &["route", "Fix the pager"]);
    assert_eq!(router.lines().len(), 4);
}

#[test]
fn what_is_refused_goes_with_a_word_and_the_rest_stays() {
    let (home, router) = (Home::new(), router());
    home.write(FILE, &line(1));
    for (problem, stays) in [
        (Problem::new(Slug::Unavailable, "the store is away"), true),
        (Problem::new(Slug::Overloaded, "too much"), true),
        (Problem::new(Slug::Unauthorized, "who are you"), true),
        (Problem::new(Slug::NotFound, "no decision 1"), false),
        (Problem::new(Slug::Conflict, "recorded as failure"), false),
        (
            Problem::new(Slug::InvalidRequest, "attempt: too large"),
            false,
        ),
    ] {
        router.refuse("POST /v1/outcomes", &problem);
        home.write(FILE, &line(1));
        let ended = home.run(&router.url(), &["route", "Fix the pager"]);
        assert_eq!(ended.code, 0, "{problem:?}: {ended:?}");
        let left = home.read(FILE).unwrap();
        assert_eq!(!left.is_empty(), stays, "{problem:?}");
        assert_eq!(
            ended.err.contains(&problem.detail),
            !stays,
            "{problem:?}: {}",
            ended.err
        );
    }
}

#[test]
fn no_router_no_telemetry_no_delivery() {
    let (home, router) = (Home::new(), router());
    router.answer("POST /v1/outcomes", &taken());
    home.write(FILE, &line(1));
    home.run("http://127.0.0.1:9", &["route", "Fix the pager"]);
    assert_eq!(home.read(FILE).unwrap(), line(1));
    home.write("settings.json", r#"{"laya": {"telemetry": false}}"#);
    home.run(&router.url(), &["route", "Fix the pager"]);
    assert_eq!(home.read(FILE).unwrap(), line(1));
    assert_eq!(router.lines(), ["POST /v1/route"]);
}

#[test]
fn a_router_that_is_slow_with_them_delays_nobody() {
    let (home, router) = (Home::new(), router());
    router.reply("POST /v1/outcomes", Reply::Hang(Duration::from_secs(20)));
    let lines: String = (1..=50).map(line).collect();
    home.write(FILE, &lines);
    let began = Instant::now();
    let ended = home.run(&router.url(), &["route", "Fix the pager"]);
    // What starting a process takes on a busy machine, and far less than one of the fifty hangs.
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(home.read(FILE).unwrap(), lines);
}

#[test]
fn every_command_that_reaches_a_router_delivers() {
    let (home, router) = (Home::new(), router());
    router.answer("POST /v1/outcomes", &taken());
    let empty = json!({"tasks": [], "total": 0, "stale": 0, "revision": 0});
    router.answer("GET /v1/memory", &empty);
    let url = router.url();
    for arguments in [
        &["laya", "memory", "list"][..],
        &["laya", "connect"],
        &["laya", "connect", &url],
    ] {
        home.write(FILE, &line(1));
        let ended = home.run(&url, arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        assert_eq!(home.read(FILE).unwrap(), "", "{arguments:?}");
    }
}
