//! Traces as a collector sees them, and what a request sees of a collector that is not there: nothing.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod collector;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, Request, StatusCode};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prometheus::{IntCounter, Registry, TextEncoder};
use service::http::{
    Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Routes, Stack,
};
use service::telemetry::trace::{
    TraceMetrics, TraceSettings, Traces, carry_blocking, decision, inject,
};
use service::telemetry::{BuildInfo, RepeatedError};
use tower::ServiceExt;
use uuid::Uuid;

use collector::{Collector, Manner};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const DECISION: Uuid = Uuid::from_u128(0x0193_d2b1_0000_7000_8000_0000_0000_0001);

/// A server with spans to a collector.
struct Server {
    app: Router,
    traces: Traces,
    registry: Registry,
    /// What a handler gave on to a model server.
    given_on: Arc<Mutex<HeaderMap>>,
}

impl Server {
    fn with(environment: &[(&str, &str)]) -> Self {
        let registry = Registry::new();
        let metrics = TraceMetrics::register(&registry).unwrap();
        let build = BuildInfo {
            component: "test",
            version: "9.8.7",
            commit: "none",
        };
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let (settings, warnings) = TraceSettings::of_environment(environment.iter().map(owned));
        assert_eq!(warnings, [""; 0]);
        let counter = || IntCounter::new("counter", "test").unwrap();
        let traces = settings.map_or_else(Traces::off, |settings| {
            Traces::start(&settings, build, metrics, RepeatedError::new(counter())).unwrap()
        });
        let given_on = Arc::new(Mutex::new(HeaderMap::new()));
        let kept = given_on.clone();
        let guarded = Router::new()
            .route(
                "/v1/call/{id}",
                post(move |_: String| async move {
                    decision(DECISION);
                    inject(&mut kept.lock().unwrap());
                    "answered secret"
                }),
            )
            .route("/v1/long", get(long))
            .route("/v1/fails", get(|| async { StatusCode::BAD_GATEWAY }));
        let stack = Stack {
            metrics: HttpMetrics::register(&registry, "test").unwrap(),
            task_panics: counter(),
            origins: Arc::new(Origins::new(Vec::new(), HostRule::Any)),
            authority: Arc::new(Authority::Open),
            admission: Arc::new(Admission::new(AdmissionLimits::default())),
            traces: traces.clone(),
        };
        let app = stack.layered(Routes {
            open: Router::new().route("/health", get(|| async { "ok" })),
            guarded,
            ..Routes::default()
        });
        Self {
            app,
            traces,
            registry,
            given_on,
        }
    }

    async fn ask(&self, request: Request<Body>) -> Response {
        self.app.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Response {
        self.ask(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    fn dropped(&self, reason: &str) -> u64 {
        let text = TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap();
        let series = format!("relay_otel_dropped_total{{reason=\"{reason}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&series));
        count.unwrap().parse().unwrap()
    }
}

/// Work on another thread still knows its request.
async fn long() {
    let work = carry_blocking(|| decision(DECISION));
    tokio::task::spawn_blocking(work).await.unwrap();
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|pair| pair.key == key)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_a_span_of_its_callers_trace_and_gives_it_on() {
    let collector = Collector::start(Manner::Takes);
    let url = collector.url();
    let server = Server::with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let request = Request::post("/v1/call/7")
        .header("traceparent", PARENT)
        .header("tracestate", "vendor=value")
        .header("x-request-id", "mine-7")
        .body(Body::empty())
        .unwrap();
    assert_eq!(server.ask(request).await.status(), 200);
    server.traces.finish(Duration::from_secs(10));

    let [span] = &collector.spans()[..] else {
        panic!("{:?}", collector.spans());
    };
    assert_eq!(span.name, "POST /v1/call/{id}");
    assert_eq!(
        (hex(&span.trace_id), hex(&span.parent_span_id)),
        (TRACE.to_owned(), "b7ad6b7169203331".to_owned())
    );
    let seen: Vec<_> = span
        .attributes
        .iter()
        .map(|pair| (pair.key.as_str(), attribute(span, &pair.key).unwrap()))
        .collect();
    let decision = DECISION.to_string();
    for pair in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/call/{id}"),
        ("http.response.status_code", "200"),
        ("relay.request.id", "mine-7"),
        ("relay.decision.id", decision.as_str()),
    ] {
        assert!(
            seen.contains(&(pair.0, pair.1.to_owned())),
            "{pair:?}: {seen:?}"
        );
    }
    assert_eq!(seen.len(), 5, "nothing else: {seen:?}");

    let given_on = server.given_on.lock().unwrap();
    let id = hex(&span.span_id);
    assert_eq!(given_on["traceparent"], format!("00-{TRACE}-{id}-01"));
    assert_eq!(given_on["tracestate"], "vendor=value");

    let [post] = &collector.posts()[..] else {
        panic!("one batch");
    };
    assert!(post.head.starts_with("post /v1/traces "), "{}", post.head);
    assert!(
        post.head.contains("content-type: application/x-protobuf"),
        "{}",
        post.head
    );
    let resource = collector.requests()[0].resource_spans[0].resource.clone();
    let resource = format!("{:?}", resource.unwrap());
    for part in ["relay-test", "9.8.7", "service.instance.id"] {
        assert!(resource.contains(part), "{part}: {resource}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_say_how_a_request_ended_and_probes_have_none() {
    let collector = Collector::start(Manner::Takes);
    let url = format!("{}/custom", collector.url());
    let server = Server::with(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url)]);
    server.get("/v1/fails").await;
    server.get("/v1/long").await;
    server.get("/nowhere/secret").await;
    server.get("/health").await;
    let odd = Request::builder().method("SECRET").uri("/v1/long");
    server.ask(odd.body(Body::empty()).unwrap()).await;
    server.traces.finish(Duration::from_secs(10));

    let ends: Vec<_> = collector
        .spans()
        .iter()
        .map(|span| {
            let of = |key| attribute(span, key).unwrap_or_default();
            let error = span.status.as_ref().map_or(0, |status| status.code);
            let ends = (of("http.response.status_code"), of("error.type"), error);
            (span.name.clone(), ends, of("relay.decision.id"))
        })
        .collect();
    let ended = |status: &str, error: &str, code| (status.to_owned(), error.to_owned(), code);
    let none = String::new();
    assert_eq!(
        ends,
        [
            (
                "GET /v1/fails".to_owned(),
                ended("502", "502", 2),
                none.clone()
            ),
            (
                "GET /v1/long".to_owned(),
                ended("200", "", 0),
                DECISION.to_string()
            ),
            ("GET".to_owned(), ended("404", "", 0), none.clone()),
            ("_OTHER /v1/long".to_owned(), ended("405", "", 0), none),
        ]
    );
    assert!(collector.posts()[0].head.starts_with("post /custom "));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_request_or_an_answer_leaves() {
    let collector = Collector::start(Manner::Takes);
    let url = collector.url();
    let server = Server::with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let request = Request::post("/v1/call/secret?q=secret")
        .header("authorization", "Bearer secret")
        .header("user-agent", "secret")
        .header("x-request-id", "not harmless: secret")
        .header("baggage", "user=secret")
        .body(Body::from("{\"request\": \"secret\"}"))
        .unwrap();
    assert_eq!(server.ask(request).await.status(), 200);
    server.get("/secret").await;
    server.traces.finish(Duration::from_secs(10));
    assert_eq!(collector.spans().len(), 2);
    for post in collector.posts() {
        let seen = post.head + &String::from_utf8_lossy(&post.body).to_ascii_lowercase();
        assert!(!seen.contains("secret"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_or_is_away_costs_spans_and_nothing_else() {
    let hanging = Collector::start(Manner::Hangs);
    let refusing = Collector::start(Manner::Refuses);
    // Port 9 of loopback: nobody listens.
    for (name, url) in [
        ("hangs", hanging.url()),
        ("refuses", refusing.url()),
        ("away", "http://127.0.0.1:9".to_owned()),
    ] {
        let server = Server::with(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "16"),
        ]);
        let start = Instant::now();
        for _ in 0..200 {
            assert_eq!(server.get("/v1/long").await.status(), 200);
        }
        let answered = start.elapsed();
        // The SDK waits 5 s for a batch to fill, the collector hangs for ever: neither is seen here.
        assert!(answered < Duration::from_secs(4), "{name}: {answered:?}");
        let start = Instant::now();
        server.traces.finish(Duration::from_millis(300));
        let finished = start.elapsed();
        assert!(finished < Duration::from_secs(4), "{name}: {finished:?}");
        let lost = server.dropped("queue_full") + server.dropped("not_delivered");
        assert_eq!(lost, 200, "{name}: every span is accounted for");
        assert!(server.dropped("queue_full") > 0, "{name}: 16 may wait");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_off_nothing_is_sent_and_the_callers_trace_goes_on() {
    let collector = Collector::start(Manner::Takes);
    let url = collector.url();
    let server = Server::with(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
        ("OTEL_SDK_DISABLED", "true"),
    ]);
    let call = || Request::post("/v1/call/7");
    for (name, request, given_on) in [
        (
            "a trace",
            call().header("traceparent", PARENT),
            Some(PARENT),
        ),
        ("none", call(), None),
        ("damaged", call().header("traceparent", "00-zz-1-01"), None),
    ] {
        server.given_on.lock().unwrap().clear();
        server.ask(request.body(Body::empty()).unwrap()).await;
        let headers = server.given_on.lock().unwrap().clone();
        let seen = headers
            .get("traceparent")
            .map(|value| value.to_str().unwrap());
        assert_eq!(seen, given_on, "{name}");
        assert!(!headers.contains_key("tracestate"), "{name}: empty");
    }
    server.traces.finish(Duration::from_secs(10));
    assert!(collector.posts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_sample_and_a_state_that_is_too_long_are_respected() {
    let collector = Collector::start(Manner::Takes);
    let url = collector.url();
    let server = Server::with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    let call = |flags: &str, state: &str| {
        Request::post("/v1/call/7")
            .header("traceparent", format!("{}{flags}", &PARENT[..53]))
            .header("tracestate", state)
            .body(Body::empty())
            .unwrap()
    };
    server.ask(call("00", "a=b")).await;
    let given_on = server.given_on.lock().unwrap().clone();
    let parent = given_on["traceparent"].to_str().unwrap();
    assert!(
        parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-00"),
        "{parent}"
    );
    server.given_on.lock().unwrap().clear();
    server
        .ask(call("01", &format!("a={}", "x".repeat(600))))
        .await;
    assert!(!server.given_on.lock().unwrap().contains_key("tracestate"));
    server.traces.finish(Duration::from_secs(10));
    assert_eq!(collector.spans().len(), 1);
}
