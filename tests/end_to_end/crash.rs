//! `relayd local` dies in the middle of its work: what it acknowledged is there when it comes back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs::{Home, Http, PATIENCE, Router, teach, until};

const CLIENTS: usize = 4;
/// Outcomes of each client before the router is killed.
const AT_LEAST: usize = 25;

/// Decides and reports until nobody answers any more; gives the reports that were acknowledged.
fn work(url: &str, at: usize, count: &AtomicUsize) -> Vec<Value> {
    let http = Http::new(Duration::from_secs(5));
    let mut acknowledged = Vec::new();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let body = json!({"request": format!("Rename field {at} of the form")});
        let Ok(decision) = http.post(&format!("{url}/v1/route"), &body) else {
            return acknowledged;
        };
        let report = json!({
            "decision_id": decision.ok()["id"], "attempt": 1, "result": "success", "tests_passed": null,
            "tool_failures": 0, "final": true,
        });
        match http.post(&format!("{url}/v1/outcomes"), &report) {
            Ok(answer) => {
                answer.ok();
                acknowledged.push(report);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => return acknowledged,
        }
    }
    panic!("the router was not killed");
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let home = Home::new();
    let mut router = Router::local(&home, &[]);
    let url = router.url();
    let http = Http::new(PATIENCE);
    let text = "Fix the date parser of the calendar page";
    let count = AtomicUsize::new(0);
    let acknowledged: Vec<Value> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|at| {
                let (url, count) = (&url, &count);
                scope.spawn(move || work(url, at, count))
            })
            .collect();
        until("outcomes are reported", || {
            match count.load(Ordering::Relaxed) {
                seen if seen >= CLIENTS * AT_LEAST => Ok(()),
                seen => Err(seen.to_string()),
            }
        });
        // Killed right after it said that it has learned this.
        teach(&http, &url, text, "strong", Some("Three formats."));
        router.kill();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    assert!(acknowledged.len() >= CLIENTS * AT_LEAST);

    let router = Router::local(&home, &[]);
    for report in &acknowledged {
        let id = report["decision_id"].as_str().unwrap();
        let stored = router.get(&format!("/v1/decisions/{id}")).ok();
        assert_eq!(stored["outcomes"][0]["result"], "success", "{stored}");
        // The client that did not hear of it sends it again.
        router.post("/v1/outcomes", report).ok();
    }
    let decision = router.post("/v1/route", &json!({"request": text})).ok();
    assert_eq!(decision["assessment"]["source"], "memory", "{decision}");
    let copy = home.text("agent/laya/training/data/dataset.jsonl").unwrap();
    assert!(copy.contains(text), "the copy was written at the start");
    assert!(!router.log().contains("not usable"), "the file is whole");
}
