//! The same request is decided alike by a router and in process: same code, same result (issue 3, point 7).

use serde_json::{Value, json};

use crate::programs::{Ended, Home, NOWHERE, Router, run, workspace};
use crate::records::{facts, fallback, without};

/// A policy that says what a command line assumes on its user's own machine, and nothing else.
pub(crate) const KEEPS_TEXT: &str = "\
apiVersion: relay.dev/v1alpha1
kind: RoutingPolicy
metadata: {name: default}
spec: {privacy: {requestText: Full}}
";

/// Every request of the vectors and of the labelled data.
fn requests() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(workspace().join(path)).unwrap();
    let text = |row: &Value| row["request"].as_str().unwrap().to_owned();
    let vectors = read("src/routing/tests/vectors/rules_and_policy.json");
    let vectors: Value = serde_json::from_str(&vectors).unwrap();
    let labelled = read("tests/data/requests.jsonl");
    let labelled = labelled
        .lines()
        .map(|line| text(&serde_json::from_str(line).unwrap()));
    let rows = vectors["rows"].as_array().unwrap().iter().map(text);
    let all: Vec<_> = rows.chain(labelled).collect();
    assert!(all.len() > 500, "the files are read: {}", all.len());
    all
}

/// A batch file of all requests.
pub(crate) fn batch_file(home: &Home) -> (String, Vec<String>) {
    let requests = requests();
    let lines: String = requests
        .iter()
        .map(|text| json!({ "request": text }).to_string() + "\n")
        .collect();
    let file = home.file("requests.jsonl", lines);
    (file.to_str().unwrap().to_owned(), requests)
}

fn batch(home: &Home, router: &str, file: &str) -> Ended {
    let ended = run(&mut home.relay(router, &["route", "-o", "json", "--batch", file]));
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended
}

fn each_is(records: &[Value], why: &str) {
    let other = records.iter().find(|record| fallback(record) != why);
    assert_eq!(other, None, "a record whose fallback is not {why}");
}

/// With a policy that keeps texts nothing but ids and times differs, the digest of the policy included.
#[test]
fn a_router_with_the_users_own_policy_gives_the_same_records() {
    let home = Home::new().without_exploration();
    let policy = home.file("policy.yaml", KEEPS_TEXT);
    let router = Router::start(&home, &["--policy", policy.to_str().unwrap()]);
    let (file, requests) = batch_file(&home);

    let routed = batch(&home, &router.url(), &file);
    let own = batch(&home, NOWHERE, &file);
    assert!(!routed.err.contains("note:"), "{}", routed.err);
    assert_eq!(
        own.err.matches("note: no router at").count(),
        1,
        "{}",
        own.err
    );

    let (routed, own) = (routed.records(), own.records());
    assert_eq!((routed.len(), own.len()), (requests.len(), requests.len()));
    each_is(&routed, "no_model");
    each_is(&own, "router_unreachable");
    for ((routed, own), request) in routed.iter().zip(&own).zip(&requests) {
        assert_eq!(routed["request"], **request);
        assert_eq!(facts(routed), facts(own), "{request}");
    }
    let counted = router.metric("relay_router_fallbacks_total{reason=\"no_model\"}");
    assert_eq!(counted, requests.len() as f64, "each was really asked for");
}

/// A router without a policy file keeps no texts (control-plane 6: `requestText` unset is `Hashed` there and `Full` on
/// the user's own machine): the text is not in its records, and a policy that keeps texts has another digest.
#[test]
fn a_router_with_the_built_in_policy_differs_in_privacy_alone() {
    let home = Home::new().without_exploration();
    let router = Router::start(&home, &[]);
    let (file, requests) = batch_file(&home);
    let routed = batch(&home, &router.url(), &file).records();
    let own = batch(&home, NOWHERE, &file).records();
    assert_eq!((routed.len(), own.len()), (requests.len(), requests.len()));
    let privacy = ["/provenance/policy/digest", "/provenance/policy/revision"];
    for (routed, own) in routed.iter().zip(&own) {
        assert_eq!(routed.get("request"), None);
        assert_ne!(
            routed["provenance"]["policy"]["digest"],
            own["provenance"]["policy"]["digest"]
        );
        assert_eq!(
            without(&facts(routed), &privacy),
            without(&without(&facts(own), &privacy), &["/request"])
        );
    }
}

/// What the user sets travels with the request and has the same effect on the user's own router.
#[test]
fn settings_and_choices_of_the_user_have_the_same_effect() {
    let home = Home::new();
    home.settings(&json!({
        "policy": "quality",
        "exploration": 0,
        "quota": {"anthropic": 0.3},
        "models": {"fast": ["mine/small"], "strong": ["mine/large", "openai-codex/gpt-6-sol"]},
        "minConfidence": 0.6,
        "toolRouting": "enforce",
        "baseline": "mine/large",
    }));
    let policy = home.file("policy.yaml", KEEPS_TEXT);
    let router = Router::start(&home, &["--policy", policy.to_str().unwrap()]);
    for (name, more) in [
        ("nothing more", &[][..]),
        ("profile", &["--profile", "economy"]),
        ("model", &["--model", "acme/new"]),
        ("tier and effort", &["--tier", "fast", "--effort", "high"]),
        ("providers", &["--providers", "mine,google"]),
        ("dry run", &["--dry-run"]),
    ] {
        let mut arguments = vec!["route", "-o", "json", "Fix the login token expiry"];
        arguments.extend(more);
        let routed = run(&mut home.relay(&router.url(), &arguments));
        let own = run(&mut home.relay(NOWHERE, &arguments));
        assert_eq!((routed.code, own.code), (0, 0), "{name}: {}", routed.err);
        assert_eq!(facts(&routed.record()), facts(&own.record()), "{name}");
        assert_eq!(fallback(&routed.record()), "no_model", "{name}");
    }
}
