//! What each route answers.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{Router, ask};

#[test]
fn decides_a_request_and_counts_it() {
    let router = Router::start(&[]);
    let answer = router.route(json!({"request": "Fix the login token expiry"}).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let decision = answer.json();
    assert_eq!(decision["selected"]["tier"], "strong");
    assert_eq!(decision["assessment"]["source"], "rules");
    assert_eq!(decision["provenance"]["fallback"], "no_model");
    assert_eq!(decision.get("trace"), None);
    assert!(
        decision["policy"]["rules"]
            .as_array()
            .unwrap()
            .contains(&json!("authentication")),
        "{decision}"
    );
    let metrics = router.get("/metrics").body;
    for line in [
        "relay_router_decisions_total{follow_up=\"new\",profile=\"balanced\",source=\"rules\",tier=\"strong\"} 1",
        "relay_router_rules_fired_total{rule=\"authentication\"} 1",
        "relay_router_fallbacks_total{reason=\"no_model\"} 1",
        "relay_router_requests_total{code=\"200\",route=\"/v1/route\"} 1",
        "relay_task_panics_total 0",
    ] {
        assert!(
            metrics.lines().any(|l| l == line),
            "{line} is not in\n{metrics}"
        );
    }
    assert_eq!(router.admin("/metrics").status, 200);
}

#[test]
fn explains_when_asked_and_refuses_other_parameters() {
    let router = Router::start(&[]);
    let body = json!({"request": "Fix the login token expiry", "dry_run": true}).to_string();
    let post = |query: &str| {
        let path = format!("/v1/route{query}");
        ask(
            router.address,
            &crate::support::post(&path, "application/json", body.as_bytes()),
        )
    };
    let explained = post("?explain=true");
    assert!(
        !explained.json()["trace"]["steps"]
            .as_array()
            .unwrap()
            .is_empty(),
        "{explained:?}"
    );
    assert_eq!(post("?explain=false").json().get("trace"), None);
    let refused = post("?expain=true");
    assert_eq!(
        (refused.slug(), refused.path()),
        ("invalid-request".to_owned(), "?expain".to_owned())
    );
}

#[test]
fn a_follow_up_goes_on_with_the_task_of_its_conversation() {
    let router = Router::start(&[]);
    let ask = |text: &str, conversation: &str| {
        router
            .route(json!({"request": text, "conversation_id": conversation}).to_string())
            .json()
    };
    let first = ask("Fix the login token expiry", "one");
    let second = ask("continue", "one");
    assert_eq!(second["follow_up"], "continuation");
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(second["task_id"], first["task_id"]);
    assert_eq!(second["selected"]["tier"], first["selected"]["tier"]);
    assert_eq!(
        ask("continue", "two")["follow_up"],
        "new",
        "another conversation knows nothing of it"
    );
    let by_id = json!({"request": "continue", "previous_decision_id": first["id"]});
    assert_eq!(
        router.route(by_id.to_string()).json()["parent_id"],
        first["id"]
    );
}

#[test]
fn says_what_is_in_force() {
    let router = Router::start(&[]);
    let policy = router.get("/v1/policy").json();
    assert_eq!(
        (&policy["name"], &policy["accepted"], &policy["profile"]),
        (&json!("default"), &json!(true), &json!("balanced"))
    );
    let digest = policy["digest"].as_str().unwrap();
    assert_eq!(
        digest.strip_prefix("sha256:").unwrap()[..10],
        *policy["revision"].as_str().unwrap()
    );

    let contract = router.get("/v1/contract").json();
    assert_eq!(
        contract["shape"],
        "sha256:69666a987e7b5a1b481806b092cf70de9eb5d00db05cb73b9a63b2129e5b780c"
    );
    assert!(
        contract["decisions"].is_object() || contract["decisions"].is_array(),
        "{contract}"
    );

    let models = router.get("/v1/models").json();
    let tiers: Vec<_> = models["tiers"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(tiers, ["balanced", "fast", "frontier", "strong"]);
    assert_eq!(
        models["tiers"]["fast"][0]["model"],
        "anthropic/claude-haiku-4-5"
    );
    assert_eq!(models["serving"]["state"], "rules_only");

    let health = router.get("/health").json();
    assert_eq!(
        (&health["ok"], &health["status"], &health["serving"]),
        (&json!(false), &json!("degraded"), &json!("rules_only"))
    );
    assert_eq!(health["decisions"].as_array().unwrap().len(), 18);
    assert_eq!(
        (&health["contract"], &health["shape"]),
        (&contract["digest"], &contract["shape"])
    );

    for answer in [router.get("/ready"), router.admin("/readyz")] {
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"ready": true}))
        );
    }
    assert_eq!(router.admin("/livez").status, 200);
}

#[test]
fn unknown_paths_and_methods_are_problems() {
    let router = Router::start(&[]);
    assert_eq!(router.get("/v2/route").slug(), "not-found");
    let wrong = router.get("/v1/route");
    assert_eq!(
        (wrong.status, wrong.headers["allow"].as_str()),
        (405, "POST"),
        "{wrong:?}"
    );
    assert_eq!(wrong.slug(), "method-not-allowed");
    let named = ask(
        router.address,
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine-7\r\n\r\n",
    );
    assert_eq!(named.headers["x-request-id"], "mine-7");
}

#[test]
fn the_list_of_metrics_is_the_documented_one() {
    // The one of a server that is not there needs no server.
    let router = Router::start(&["--laya-url", "http://127.0.0.1:9"]);
    router.route(json!({"request": "Fix the login token expiry"}).to_string());
    let metrics = router.get("/metrics").body;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            seen.insert(rest.to_owned());
        }
    }
    // The page is written from a registry (`cargo xtask docs`); here is the program.
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<String> = rows
        .map(|row| {
            let mut cells = row.split(" | ");
            let name = cells.next().unwrap().trim_end_matches('`');
            format!("{name} {}", cells.next().unwrap())
        })
        .collect();
    assert_eq!(seen, documented, "docs/metrics.md lists them");
}

#[test]
fn browsers_are_refused_unless_their_origin_is_listed() {
    let router = Router::start(&["--allow-origin", "https://ide.example"]);
    let with = |header: &str| {
        let body = "{\"request\":\"rename a variable\"}";
        let head = format!(
            "POST /v1/route HTTP/1.1\r\n{header}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(router.address, head.as_bytes())
    };
    for (name, header, status) in [
        ("no origin", "host: 127.0.0.1:8737", 200),
        (
            "listed",
            "host: localhost\r\norigin: https://ide.example",
            200,
        ),
        (
            "not listed",
            "host: localhost\r\norigin: https://evil.example",
            403,
        ),
        ("opaque", "host: localhost\r\norigin: null", 403),
        (
            "itself",
            "host: localhost\r\norigin: http://localhost:8737",
            403,
        ),
        ("re-pointed name", "host: evil.example:8737", 403),
    ] {
        let answer = with(header);
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        if status == 403 {
            assert_eq!(answer.slug(), "origin-refused", "{name}");
        }
    }
}

/// Which host a request is for is said once, and not around the rule by a whole URI in its first line.
#[test]
fn a_request_names_one_host() {
    let router = Router::start(&[]);
    for (name, head, status) in [
        ("none", "GET /health HTTP/1.1", 400),
        ("none in HTTP/1.0", "GET /health HTTP/1.0", 200),
        (
            "two",
            "GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost",
            400,
        ),
        (
            "a whole URI of this machine",
            "GET http://127.0.0.1:8737/health HTTP/1.1\r\nhost: localhost",
            200,
        ),
        (
            "a whole URI of another",
            "GET http://evil.example/health HTTP/1.1\r\nhost: localhost",
            403,
        ),
        (
            "another behind a user",
            "GET http://localhost@evil.example/health HTTP/1.1\r\nhost: localhost",
            403,
        ),
    ] {
        let answer = ask(router.address, format!("{head}\r\n\r\n").as_bytes());
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        if status == 400 {
            let told = (answer.body.as_str(), answer.headers["connection"].as_str());
            assert_eq!(told, ("", "close"), "{name}");
        }
    }
}
