//! Every metric of the router with its labels, each label's words from a closed set, and the reference page that
//! `cargo xtask docs` writes from the registry.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use api::responses::ServingState;
use decision::vocabulary::Tier;
use http::Method;
use prometheus::proto::{MetricFamily, MetricType};
use router::servers::{Target, Upstream};
use routing::assessment::Source;
use routing::follow_up::FollowUp;
use routing::outcome::AttemptResult;
use routing::reason::{Fallback, Reason, WarningCode};
use serde_json::json;
use service::telemetry::trace::TraceMetrics;
use service::telemetry::{BuildInfo, ProcessMetrics};

use support::{TestRouter, built_in_policy};

/// Set when the page is to be written instead of compared.
const UPDATE: &str = "RELAY_UPDATE_DOCS";

/// Every metric of routing.md 22.
const SPECIFIED: [&str; 17] = [
    "requests_total",
    "request_duration_seconds",
    "decisions_total",
    "assess_duration_seconds",
    "fallbacks_total",
    "breaker_open",
    "truncated_total",
    "rules_fired_total",
    "escalations_total",
    "outcomes_total",
    "explorations_total",
    "warnings_total",
    "memory_hits_total",
    "provider_availability",
    "in_flight",
    "estimated_cost_usd_total",
    "estimated_savings_usd_total",
];

/// What may stand at a label.
enum Words {
    /// These and no others.
    Closed(Vec<String>),
    /// As many as an operator configured; what they are.
    Configured(&'static str),
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Words {
    Words::Closed(all.iter().map(|one| word(*one).to_owned()).collect())
}

/// A label that is not here has no closed set, and must not exist.
fn words_of(metric: &str, label: &str) -> Words {
    match (metric, label) {
        (_, "source") => words(Source::ALL, Source::as_str),
        (_, "tier") => words(Tier::ALL, Tier::as_str),
        (_, "follow_up") => words(FollowUp::ALL, FollowUp::as_str),
        ("relay_router_model_calls_total", "result") => {
            let all = ["answered", "error", "timeout", "rejected"];
            Words::Closed(all.map(str::to_owned).to_vec())
        }
        (_, "role") => Words::Closed(vec!["champion".to_owned(), "candidate".to_owned()]),
        (_, "comparison") => {
            let all = ["agrees", "differs", "failed", "dropped"];
            Words::Closed(all.map(str::to_owned).to_vec())
        }
        (_, "result") => words(AttemptResult::ALL, AttemptResult::as_str),
        (_, "use") => Words::Closed(vec!["route".to_owned(), "lesson".to_owned()]),
        (_, "profile") => Words::Configured("profiles of the policy"),
        ("relay_router_fallbacks_total", "reason") => words(Fallback::ALL, Fallback::as_str),
        ("relay_router_warnings_total", "code") => words(WarningCode::ALL, WarningCode::as_str),
        ("relay_router_escalations_total", "reason") => words(Reason::ALL, Reason::as_str),
        ("relay_otel_dropped_total", "reason") => {
            Words::Closed(vec!["not_delivered".to_owned(), "queue_full".to_owned()])
        }
        ("relay_router_requests_total", "code") => Words::Configured("HTTP status"),
        (_, "route") => {
            let paths = api::routes::ROUTES
                .iter()
                .map(|route| route.path.to_owned());
            let all: BTreeSet<String> = paths
                .chain(["other".to_owned(), "/v1/internal/revisions".to_owned()])
                .collect();
            Words::Closed(all.into_iter().collect())
        }
        (_, "rule") => Words::Configured("rules, built in and of the policy"),
        (_, "provider") => Words::Configured("providers of the registry"),
        (_, "server") => Words::Configured("servers of the configuration or of a LayaServer"),
        ("relay_build_info", "component" | "version" | "commit") => {
            Words::Configured("what was built")
        }
        (metric, label) => panic!("{metric}{{{label}}} has no closed set"),
    }
}

/// A router on which everything that makes a series has happened.
async fn busy_router() -> TestRouter {
    let router = TestRouter::start(&built_in_policy()).await;
    let build = BuildInfo {
        component: "router",
        version: "0",
        commit: "none",
    };
    ProcessMetrics::register(router.registry.clone(), build).unwrap();
    TraceMetrics::register(&router.registry).unwrap();
    // Nobody listens there.
    let upstream = Upstream::Http {
        url: "http://127.0.0.1:9".parse().unwrap(),
        key: None,
    };
    router
        .servers
        .replace(vec![Target::new("laya", upstream)])
        .unwrap();
    let request = json!({"request": "Fix the login token expiry"});
    let (status, decision) = router.post("/v1/route", &request).await;
    assert_eq!(status, 200, "{decision}");
    let outcome = json!({
        "decision_id": decision["id"], "attempt": 1, "result": "success", "tests_passed": true,
        "tool_failures": 0, "final": true
    });
    let (status, answer) = router.post("/v1/outcomes", &outcome).await;
    assert_eq!(status, 200, "{answer}");
    let (status, _) = router.ask(Method::GET, "/nowhere", None).await;
    assert_eq!(status, 404);
    router
}

fn labels(family: &MetricFamily) -> BTreeSet<String> {
    let metrics = family.get_metric().iter();
    let names = metrics.map(|metric| {
        let pairs = metric.get_label().iter();
        pairs.map(|pair| pair.name().to_owned()).collect()
    });
    let names: BTreeSet<BTreeSet<String>> = names.collect();
    assert_eq!(names.len(), 1, "{}: one set of labels", family.name());
    names.into_iter().next().unwrap()
}

fn kind(family: &MetricFamily) -> &'static str {
    match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        other => panic!("{}: {other:?}", family.name()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_come_from_closed_sets_and_every_specified_metric_is_there() {
    let router = busy_router().await;
    let families = router.registry.gather();
    let names: BTreeSet<&str> = families.iter().map(MetricFamily::name).collect();
    for name in SPECIFIED {
        let name = format!("relay_router_{name}");
        assert!(names.contains(&*name), "{name} is missing: {names:?}");
    }
    for family in &families {
        let name = family.name();
        assert_eq!(
            name.ends_with("_total"),
            kind(family) == "counter",
            "{name}"
        );
        for metric in family.get_metric() {
            for pair in metric.get_label() {
                if let Words::Closed(all) = words_of(name, pair.name()) {
                    let known = all.iter().any(|word| word == pair.value());
                    assert!(known, "{name}{{{}={}}}", pair.name(), pair.value());
                }
            }
        }
    }
}

const HEAD: &str = "\
<!-- Written by `cargo xtask docs` from the registry of a running router; changes here are lost. -->

# Metrics of the router

Prometheus text at `GET /metrics` of the router (with the token, beyond loopback) and of the admin port (without). Every
label has a closed set of words: no text, tenant, task or id is ever one. Series of closed sets exist from the start where
that is possible, so that `rate()` sees their first event.

| metric | type | labels | |
|---|---|---|---|
";

fn page(families: &[MetricFamily]) -> String {
    let mut out = HEAD.to_owned();
    let mut sets: BTreeMap<(String, Vec<String>), Vec<&str>> = BTreeMap::new();
    for family in families {
        let name = family.name();
        let mut shown = Vec::new();
        for label in labels(family) {
            let said = match words_of(name, &label) {
                Words::Closed(_) => format!("`{label}`"),
                Words::Configured(what) => format!("`{label}` ({what})"),
            };
            if let Words::Closed(all) = words_of(name, &label) {
                sets.entry((label.clone(), all)).or_default().push(name);
            }
            shown.push(said);
        }
        let kind = kind(family);
        let labels = shown.join(", ");
        writeln!(out, "| `{name}` | {kind} | {labels} | {} |", family.help()).unwrap();
    }
    out.push_str("\n## Words of the labels\n\n");
    for ((label, all), metrics) in &sets {
        let several = sets.keys().filter(|(other, _)| other == label).count() > 1;
        let metrics: Vec<_> = metrics.iter().map(|name| format!("`{name}`")).collect();
        let of = if several {
            format!(" of {}", metrics.join(", "))
        } else {
            String::new()
        };
        let all: Vec<_> = all.iter().map(|word| format!("`{word}`")).collect();
        writeln!(out, "- `{label}`{of}: {}", all.join(", ")).unwrap();
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn the_committed_page_is_current() {
    let router = busy_router().await;
    let text = page(&router.registry.gather());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == text,
        "docs/metrics.md is old: run `cargo xtask docs`"
    );
}

/// A trace that reaches the router reaches the model server too, whether or not spans are sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_callers_trace_reaches_the_model_server() {
    use axum::body::Body;
    use http::Request;
    use service::runtime::ShutdownTrigger;
    use testkit::{FakeLaya, Says};
    use tower::ServiceExt;

    let fake = FakeLaya::start(Says::relay()).await;
    let router = TestRouter::start(&built_in_policy()).await;
    let upstream = Upstream::Http {
        url: fake.url().parse().unwrap(),
        key: None,
    };
    router
        .servers
        .replace(vec![Target::new("laya", upstream)])
        .unwrap();
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let looked_at = router.servers.clone();
    tokio::spawn(async move { looked_at.follow(&shutdown).await });
    let mut looks = 0;
    while router.servers.serving().state == ServingState::RulesOnly {
        looks += 1;
        assert!(looks < 2000, "the server is never ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = json!({"request": "Fix the date parser"}).to_string();
    let long = json!({"request": "Fix the date parser ".repeat(1000)}).to_string();
    let passed =
        json!({"state": "x", "questions": {"urgent": {"type": "noul", "instructions": "Is it?"}}});
    let passed = passed.to_string();
    for (path, body) in [
        ("/v1/route", &asked),
        ("/v1/route", &long),
        ("/v1/systemone", &passed),
    ] {
        for trace in [Some(parent), None] {
            let mut request = Request::post(path).header("content-type", "application/json");
            if let Some(parent) = trace {
                request = request.header("traceparent", parent);
            }
            let request = request.body(Body::from(body.clone())).unwrap();
            let before = fake.calls();
            let response = router.app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            assert!(fake.calls() > before, "{path}: the server was asked");
            let seen = fake.last().unwrap();
            assert_eq!(seen.header("traceparent"), trace, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_a_task_is_counted_once_however_its_conversation_goes_on() {
    let router = TestRouter::start(&built_in_policy()).await;
    let ask = |text: &str| json!({"request": text, "conversation_id": "c-1"});
    let (_, first) = router
        .post("/v1/route", &ask("Rename the author field"))
        .await;
    let failed = json!({"kind": "edit_rejected"});
    let report = json!({"decision_id": first["id"], "failures": vec![failed; 3]});
    let (_, moved) = router.post("/v1/escalate", &report).await;
    assert_eq!(moved["action"], "move", "{moved}");
    for (text, kind) in [
        ("continue", "continuation"),
        ("still fails on Safari", "correction"),
    ] {
        let (_, next) = router.post("/v1/route", &ask(text)).await;
        assert_eq!(next["follow_up"], kind, "{next}");
        let raises = next["escalations"].as_array().unwrap();
        let stays = raises
            .iter()
            .filter(|raise| raise["reason"] == "repeated_failure");
        assert_eq!(stays.count(), 1, "{text}: {raises:?}");
    }
    let families = router.registry.gather();
    let counted = families
        .iter()
        .filter(|family| family.name() == "relay_router_escalations_total")
        .flat_map(MetricFamily::get_metric)
        .filter(|metric| metric.get_label()[0].value() == "repeated_failure")
        .map(|metric| metric.get_counter().get_value());
    assert_eq!(counted.sum::<f64>(), 1.0);
}
