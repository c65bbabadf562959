//! `plan` and what surrounds it, for a policy that is in force (control-plane 19: `plan` ≤ 200 µs).

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use api::kinds::RoutingPolicy;
use controller::clock::Now;
use controller::reconciler::{Reconciler, Seen};
use controller::routingpolicy::{
    Checked, Observation, Presence, RoutingPolicies, ServerState, compile,
};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;

fn policy() -> RoutingPolicy {
    let rules: Vec<_> = (0..32)
        .map(|at| json!({"id": format!("r{at}"), "patterns": [format!("term {at}"), "gdpr"]}))
        .collect();
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "team", "namespace": "space", "uid": "u", "generation": 1, "resourceVersion": "4"},
        "spec": {"rules": rules, "tiers": [{"name": "fast", "models": ["acme/a"]}]},
    });
    serde_json::from_value(object).unwrap()
}

fn benches(criterion: &mut Criterion) {
    let now = Now {
        wall: "2026-11-30T10:00:00Z".parse().unwrap(),
        boot: Duration::from_secs(9),
    };
    let today = "2026-11-30".parse().unwrap();
    let mut policy = policy();
    let checked = Checked {
        compiled: compile("team", &policy.spec, today).into(),
        server: ServerState::Unnamed,
    };
    let seen = Seen::of(Observation {
        wanted: Presence::Stored,
        documents: Vec::new(),
    });
    let first = RoutingPolicies::plan(&policy, &checked, &seen, &now);
    policy.status = Some(first.status.get().clone());
    criterion.bench_function("plan, settled", |bench| {
        bench.iter(|| RoutingPolicies::plan(black_box(&policy), &checked, &seen, &now));
    });
    criterion.bench_function("compile, 32 rules", |bench| {
        bench.iter(|| compile("team", black_box(&policy.spec), today));
    });
}

criterion_group!(all, benches);
criterion_main!(all);
