//! How long a decision takes: with given labels, and from text with the keyword rules (routing.md 22).

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use routing::decide::{Client, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::policy::{Policy, PolicySource};
use routing::request::RouteRequest;
use serde_json::json;

/// Ordinary sentences of a request, repeated to a length; ASCII, so units are bytes.
const SENTENCES: &str = "The order service answers with status 500 when a customer changes the delivery address twice. \
    Look at src/orders/address.ts and at the handler in updateAddress, find out why the second call fails, fix it and \
    add a test that shows the bug. Keep the public API as it is and do not touch the invoices. ";

fn text(units: usize) -> String {
    SENTENCES.chars().cycle().take(units).collect()
}

fn labels() -> serde_json::Value {
    json!({
        "task_type": "bug_fix", "complexity": 2, "scope": "module", "risk": 1, "ambiguity": 0,
        "reasoning_requirement": 2, "capability_tier": "balanced", "reasoning_effort": "medium",
        "agent": "backend-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": false, "requires_tests": true, "requires_web": false, "requires_browser": false,
        "requires_database": false, "requires_git": false, "security_sensitive": false
    })
}

fn run(policy: &Policy, request: &RouteRequest, now: Timestamp) -> usize {
    let prepared = prepare(request, policy, Client::Own, None, now).expect("the request is valid");
    let moment = Moment::new(now, [7; 28], &|| 0.0, Explain::No);
    let decided = decide(
        &prepared,
        Judgement::Rules { fallback: None },
        &NothingKnown,
        moment,
    );
    decided
        .expect("there are candidates")
        .decision
        .alternatives
        .len()
}

fn benches(criterion: &mut Criterion) {
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
    let today = "2026-11-30".parse().expect("a day");
    let policy = Policy::compile("bench", "", PolicySource::default(), today).expect("compiles");
    let labelled = RouteRequest {
        labels: Some(labels()),
        ..RouteRequest::new("Fix the pager on the orders page")
    };
    criterion.bench_function("decide, labels given", |bench| {
        bench.iter(|| run(&policy, black_box(&labelled), now));
    });
    for units in [200, 2_000, 20_000, 100_000] {
        let request = RouteRequest::new(text(units));
        criterion.bench_function(&format!("decide, from {units} units of text"), |bench| {
            bench.iter(|| run(&policy, black_box(&request), now));
        });
    }
}

criterion_group!(decide_benches, benches);
criterion_main!(decide_benches);
