//! Follow-ups through a router, in process, and when the router goes away in between.

use serde_json::{Value, json};

use crate::programs::{Home, NOWHERE, Router, run};
use crate::records::{facts, links};
use crate::same_result::KEEPS_TEXT;

/// Two conversations and a request without one, interleaved.
const LINES: &[(Option<&str>, &str, &str)] = &[
    (Some("a"), "Fix the login token expiry", "new"),
    (Some("b"), "Rename the author field", "new"),
    (Some("a"), "continue", "continuation"),
    (None, "continue", "new"),
    (Some("a"), "still fails on Safari", "correction"),
    (Some("b"), "também no rodapé", "amendment"),
    (Some("a"), "thanks!", "acknowledgement"),
    (
        Some("b"),
        "Design a job scheduler service for our platform",
        "new",
    ),
];

fn file(home: &Home, name: &str, lines: &[(Option<&str>, &str, &str)]) -> String {
    let text: String = lines
        .iter()
        .map(|(conversation, request, _)| {
            let mut line = json!({ "request": request });
            if let Some(id) = conversation {
                line["conversation_id"] = (*id).into();
            }
            line.to_string() + "\n"
        })
        .collect();
    home.file(name, text).to_str().unwrap().to_owned()
}

fn decided(home: &Home, router: &str, file: &str) -> Vec<Value> {
    let ended = run(&mut home.relay(router, &["route", "-o", "json", "--batch", file]));
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended.records()
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["follow_up"].as_str().unwrap())
        .collect()
}

fn expected(lines: &[(Option<&str>, &str, &'static str)]) -> Vec<&'static str> {
    lines.iter().map(|(_, _, kind)| *kind).collect()
}

#[test]
fn a_conversation_is_the_same_through_a_router_and_in_process() {
    let home = Home::new().without_exploration();
    let policy = home.file("policy.yaml", KEEPS_TEXT);
    let router = Router::start(&home, &["--policy", policy.to_str().unwrap()]);
    let file = file(&home, "lines.jsonl", LINES);
    let routed = decided(&home, &router.url(), &file);
    let own = decided(&home, NOWHERE, &file);
    assert_eq!(kinds(&routed), expected(LINES));
    for ((routed, own), line) in routed.iter().zip(&own).zip(LINES) {
        assert_eq!(facts(routed), facts(own), "{line:?}");
    }
    assert_eq!(links(&routed), links(&own));
    let continued = &links(&routed)[2];
    assert_eq!(
        *continued,
        (Some(0), 0),
        "`continue` goes on with the first"
    );
}

/// Each run is a process of its own; the router is what remembers.
#[test]
fn a_router_remembers_a_conversation_between_two_runs() {
    let home = Home::new().without_exploration();
    let router = Router::start(&home, &[]);
    let (first, second) = LINES.split_at(2);
    let first = decided(&home, &router.url(), &file(&home, "first.jsonl", first));
    let second_lines = second;
    let second = decided(&home, &router.url(), &file(&home, "second.jsonl", second));
    assert_eq!(kinds(&second), expected(second_lines));
    assert_eq!(second[0]["parent_id"], first[0]["id"]);
    assert_eq!(
        second[0]["selected"]["model"],
        first[0]["selected"]["model"]
    );
    // Without one, nothing outlives a run.
    let alone = decided(
        &home,
        NOWHERE,
        &file(&home, "alone.jsonl", &second_lines[..1]),
    );
    assert_eq!(kinds(&alone), ["new"]);
}
