//! `plan` and what surrounds it, for a policy that is in force (control-plane 19: `plan` ≤ 200 µs) and for a server of 64
//! replicas (≤ 2 ms; settled ≤ 200 µs).

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use api::kinds::{LayaServer, RoutingPolicy};
use backend::{Capabilities, Observed, RevisionInputs, RunState, ServerSeen};
use controller::clock::Now;
use controller::layaserver::{
    Ages, Checked as ServerChecked, GateView, ModelView, Observation as ServerObservation, plan,
};
use controller::probe::{DeviceSaid, Questions, Readiness, ReplicaProbe};
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

const REPLICAS: u32 = 64;

fn server() -> LayaServer {
    serde_json::from_value(json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": "main", "namespace": "space", "uid": "u", "generation": 1, "resourceVersion": "4"},
        "spec": {"modelRef": {"name": "v1"}, "replicas": REPLICAS},
    }))
    .unwrap()
}

fn inputs(digest: &str) -> RevisionInputs {
    serde_json::from_value(json!({
        "ownerUid": "u", "digest": digest, "image": "laya:1", "serverApi": "Relay", "device": "Auto",
        "devicePolicy": "Require", "serving": {}, "renderVersion": backend::RENDER_VERSION,
    }))
    .unwrap()
}

fn replica(revision: &str, ordinal: u32) -> ServerSeen {
    ServerSeen {
        revision: revision.to_owned(),
        ordinal,
        state: RunState::Running,
        started_at: Some("2026-11-30T09:00:00Z".parse().unwrap()),
        restarts: 0,
        exit_code: None,
        oom_killed: false,
        image_id: Some("sha256:i".to_owned()),
        url: Some(format!("http://10.0.0.{ordinal}:8000")),
        spec_hash: Some("h".to_owned()),
        hash_matches: Some(true),
        tampered: Vec::new(),
        waiting: None,
        memory_bytes: 1 << 30,
        model: Some("v1".to_owned()),
        inputs: None,
        checkpoint: None,
        log_tail: String::new(),
    }
}

fn probe(revision: &str, ordinal: u32) -> ReplicaProbe {
    let at = "2026-11-30T09:30:00Z".parse().unwrap();
    ReplicaProbe {
        revision: revision.to_owned(),
        ordinal,
        url: format!("http://10.0.0.{ordinal}:8000"),
        readiness: Readiness::Ready {
            since: at,
            for_seconds: 600,
        },
        plain: false,
        digest: None,
        contract: None,
        device: DeviceSaid {
            claimed: Some("cpu".to_owned()),
            p50_millis: Some(40),
            ..DeviceSaid::default()
        },
        questions: Questions {
            passed_all: true,
            passed_at: Some(at),
            ..Questions::default()
        },
    }
}

fn checked(revision: &str, inputs: RevisionInputs) -> ServerChecked {
    let model = ModelView {
        name: "v1".to_owned(),
        ready: true,
        reason: "Reconciled".to_owned(),
        message: "is here".to_owned(),
        digest: Some(inputs.digest.clone()),
        contract: None,
        size_bytes: 600 << 20,
        location: None,
        foreign_volume: false,
        deleting: false,
        verified_at: None,
    };
    ServerChecked {
        models: [("v1".to_owned(), model)].into(),
        promotions: Vec::new(),
        gate: GateView::None,
        capabilities: Capabilities {
            name: "kubernetes",
            max_replicas: 64,
            gpu: true,
            split_traffic: true,
            training: true,
            images: false,
            pods: true,
        },
        default_image: "laya:1".to_owned(),
        documents: [(revision.to_owned(), inputs)].into(),
        document_uids: [(revision.to_owned(), "d".to_owned())].into(),
        logs: std::collections::BTreeMap::new(),
        taken: std::collections::BTreeSet::new(),
        own_address: None,
    }
}

/// A server that goes through a whole first rollout, and what the last pass saw.
fn servers(criterion: &mut Criterion) {
    let mut server = server();
    let inputs = inputs(&format!("sha256:{}", "ab".repeat(32)));
    let revision = inputs.revision();
    let checked = checked(&revision, inputs);
    let seen = ServerObservation {
        engine: Ok(Observed {
            servers: (0..REPLICAS).map(|at| replica(&revision, at)).collect(),
            complete: true,
            ..Observed::default()
        }),
        replicas: (0..REPLICAS).map(|at| probe(&revision, at)).collect(),
        external: None,
        report: Err("no router".to_owned()),
        ages: Ages::default(),
    };
    let at = |seconds: i64| Now {
        wall: jiff::Timestamp::from_second(1_796_040_000 + seconds).unwrap(),
        boot: Duration::from_secs(9),
    };
    criterion.bench_function("plan, 64 replicas, first look", |bench| {
        bench.iter(|| plan(black_box(&server), &checked, &seen, &at(0)));
    });
    for pass in 0..40 {
        server.status = Some(plan(&server, &checked, &seen, &at(pass * 100)).status);
    }
    let settled = plan(&server, &checked, &seen, &at(4_000));
    assert_eq!(server.status.as_ref(), Some(&settled.status));
    assert!(settled.status.champion.is_some() && settled.actions.is_empty());
    criterion.bench_function("plan, 64 replicas, settled", |bench| {
        bench.iter(|| plan(black_box(&server), &checked, &seen, &at(4_000)));
    });
}

criterion_group!(all, benches, servers);
criterion_main!(all);
