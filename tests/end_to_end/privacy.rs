//! What of a request is written down: in the store, in files beside it, in logs and metrics.

use serde_json::{Value, json};

use crate::programs::{Home, Router};

/// In no file unless the request is.
const MARKER: &str = "Qx7MarkerOfTheTest";

/// Everything a router can be asked with a text, an outcome and an escalation. Gives the decisions.
fn use_it(router: &Router, more: &Value) -> Vec<Value> {
    let mut decisions = Vec::new();
    for text in [
        format!("Fix the {MARKER} parser"),
        format!("still fails on {MARKER}"),
    ] {
        let mut body = json!({"request": text, "conversation_id": "c-1"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let decision = router.post("/v1/route?explain=true", &body).ok();
        let failure = json!({"kind": "check_failed"});
        let body = json!({"decision_id": decision["id"], "failures": vec![failure; 4]});
        router.post("/v1/escalate", &body);
        decisions.push(decision);
    }
    // What is refused is not written down either.
    let refused = json!({"request": format!("{MARKER} {MARKER}"), "profile": MARKER});
    assert_eq!(router.post("/v1/route", &refused).status, 422);
    router.post("/v1/route", &json!(MARKER));
    decisions
}

/// Ends the router, so that nothing is only in memory, and tells which files hold the marker.
fn files_with_the_marker(home: &Home, mut router: Router) -> Vec<String> {
    let metrics = router.get("/metrics").text();
    assert!(!metrics.contains(MARKER), "{metrics}");
    router.terminate();
    assert_eq!(router.ended().code(), Some(0));
    let found = home.files_with(MARKER);
    let name = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(home.path()).unwrap();
        name.to_str().unwrap().to_owned()
    };
    found.iter().map(name).collect()
}

#[test]
fn a_shared_router_writes_no_text_down_unless_its_policy_says_so() {
    for arguments in [&["--log-level", "trace"][..], &[]] {
        let home = Home::new();
        let router = Router::start(&home, arguments);
        let decisions = use_it(&router, &json!({}));
        for decision in &decisions {
            assert_eq!(decision.get("request"), None, "{decision}");
            let id = decision["id"].as_str().unwrap();
            let stored = router.get(&format!("/v1/decisions/{id}")).ok();
            assert!(!stored.to_string().contains(MARKER), "{stored}");
        }
        assert_eq!(
            decisions[1]["task_id"], decisions[0]["task_id"],
            "it is the same task"
        );
        assert_eq!(
            files_with_the_marker(&home, router),
            [""; 0],
            "{arguments:?}"
        );
    }
}

#[test]
fn ones_own_router_keeps_texts_in_its_store_and_nowhere_else() {
    let home = Home::new();
    let router = Router::local(&home, &["--log-level", "trace"]);
    let decisions = use_it(&router, &json!({}));
    let stored = router.get(&format!(
        "/v1/decisions/{}",
        decisions[0]["id"].as_str().unwrap()
    ));
    assert_eq!(stored.ok()["request"], format!("Fix the {MARKER} parser"));
    let files = files_with_the_marker(&home, router);
    assert!(
        !files.is_empty() && files.iter().all(|file| file.starts_with("relay.db")),
        "{files:?}"
    );
}

#[test]
fn a_dry_run_leaves_nothing() {
    let home = Home::new();
    let router = Router::local(&home, &["--log-level", "trace"]);
    for decision in use_it(&router, &json!({"dry_run": true})) {
        let id = decision["id"].as_str().unwrap();
        assert_eq!(router.get(&format!("/v1/decisions/{id}")).status, 404);
    }
    let report = router.get("/v1/report").ok();
    assert_eq!(report["total"]["decisions"], 0, "{report}");
    assert_eq!(files_with_the_marker(&home, router), [""; 0]);
}
