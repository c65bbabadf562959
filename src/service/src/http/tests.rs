use std::future::pending;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use prometheus::{Registry, TextEncoder};
use tokio::sync::Notify;
use tower::ServiceExt;

use super::*;
use crate::telemetry::{BuildInfo, ProcessMetrics};
use api::problem::Problem;

struct Server {
    app: Router,
    registry: Registry,
    /// Opens the gate of `/gate`.
    gate: Arc<Notify>,
}

struct Setup {
    authority: Authority,
    origins: Origins,
    admission: AdmissionLimits,
    body: BodyLimits,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            authority: Authority::Open,
            origins: Origins::new(
                vec!["https://ide.example".parse().unwrap()],
                HostRule::LoopbackOnly,
            ),
            admission: AdmissionLimits::default(),
            body: BodyLimits {
                bytes: 64,
                wait: Duration::from_secs(10),
            },
        }
    }
}

fn server(setup: Setup) -> Server {
    let registry = Registry::new();
    let build = BuildInfo {
        component: "test",
        version: "0.0.0",
        commit: "none",
    };
    let process = ProcessMetrics::register(registry.clone(), build).unwrap();
    let stack = Stack {
        metrics: HttpMetrics::register(&registry, "test").unwrap(),
        task_panics: process.task_panics,
        origins: Arc::new(setup.origins),
        authority: Arc::new(setup.authority),
        admission: Arc::new(Admission::new(setup.admission)),
        traces: Traces::off(),
    };
    let gate = Arc::new(Notify::new());
    let wait = gate.clone();
    let guarded = Router::new()
        .route(
            "/echo",
            post(|JsonBody(body): JsonBody<serde_json::Value>| async move { body.to_string() }),
        )
        .layer(Extension(setup.body))
        .route(
            "/tenant",
            get(|Extension(tenant): Extension<Tenant>| async move { tenant.0.to_string() }),
        )
        .route("/gate", get(move || async move { wait.notified().await }))
        .route(
            "/panic",
            get(|| async {
                if true {
                    panic!("on purpose")
                }
            }),
        );
    let unqueued = Router::new().route("/metrics", get(|| async { "metrics" }));
    let open = Router::new().route("/health", get(|| async { "ok" }));
    Server {
        app: stack.layered(Routes {
            open,
            unqueued,
            guarded,
            detail: Router::new().route(
                "/laya",
                post(|request: Request<Body>| async move {
                    let (head, body) = request.into_parts();
                    let limits = BodyLimits {
                        bytes: 64,
                        wait: Duration::from_millis(50),
                    };
                    read_body(&head.headers, body, limits).await
                }),
            ),
        }),
        registry,
        gate,
    }
}

impl Server {
    async fn ask(&self, request: Request<Body>) -> Response {
        self.app.clone().oneshot(request).await.unwrap()
    }

    async fn problem(&self, request: Request<Body>) -> Problem {
        problem_of(self.ask(request).await).await
    }

    fn metrics(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap()
    }
}

async fn problem_of(response: Response) -> Problem {
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "application/problem+json"
    );
    let id = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let document: Problem = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (document.request_id.as_str(), document.status),
        (id.as_str(), status.as_u16())
    );
    document
}

fn get_request(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

fn post_json(body: impl Into<Body>) -> Request<Body> {
    Request::post("/echo")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.into())
        .unwrap()
}

fn slug(problem: &Problem) -> &str {
    problem.slug()
}

/// A body whose parts arrive `pause` apart and that ends after them, or never.
fn trickle(parts: usize, pause: Duration) -> Body {
    let stream = futures_util::stream::unfold(0, move |sent| async move {
        if sent == parts {
            return pending().await;
        }
        tokio::time::sleep(pause).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), sent + 1))
    });
    Body::from_stream(stream)
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_unknown_paths_and_methods_are_problems() {
    let server = server(Setup::default());
    let fine = server.ask(get_request("/health")).await;
    assert_eq!(
        (
            fine.status().as_u16(),
            fine.headers().contains_key("x-request-id")
        ),
        (200, true)
    );
    let kept = Request::get("/health")
        .header("x-request-id", "mine-1")
        .body(Body::empty())
        .unwrap();
    assert_eq!(server.ask(kept).await.headers()["x-request-id"], "mine-1");
    assert_eq!(
        slug(&server.problem(get_request("/nowhere")).await),
        "not-found"
    );
    let response = server
        .ask(Request::delete("/gate").body(Body::empty()).unwrap())
        .await;
    assert_eq!(response.headers()[header::ALLOW], "GET,HEAD");
    let document = problem_of(response).await;
    assert_eq!(
        (document.status, document.slug()),
        (405, "method-not-allowed")
    );
}

#[tokio::test]
async fn origins_and_hosts() {
    let server = server(Setup::default());
    for (name, header, value, status) in [
        ("no origin", "x-none", "1", 200),
        ("a listed origin", "origin", "https://ide.example", 200),
        ("another origin", "origin", "https://evil.example", 403),
        ("an opaque origin", "origin", "null", 403),
        ("a loopback host", "host", "127.0.0.1:8737", 200),
        ("a re-pointed host", "host", "evil.example:8737", 403),
    ] {
        let request = Request::get("/health")
            .header(header, value)
            .body(Body::empty())
            .unwrap();
        let response = server.ask(request).await;
        assert_eq!(response.status().as_u16(), status, "{name}");
        if status == 403 {
            assert_eq!(
                slug(&problem_of(response).await),
                "origin-refused",
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn guarded_routes_need_a_token_and_open_ones_do_not() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, "red 0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let authority = Authority::Tokens(TokenFile::open(&path).unwrap());
    let server = server(Setup {
        authority,
        ..Setup::default()
    });
    assert_eq!(
        server.ask(get_request("/health")).await.status(),
        StatusCode::OK
    );
    let refused = server.ask(get_request("/tenant")).await;
    assert_eq!(refused.headers()[header::WWW_AUTHENTICATE], "Bearer");
    assert_eq!(slug(&problem_of(refused).await), "unauthorized");
    assert_eq!(
        slug(&server.problem(get_request("/metrics")).await),
        "unauthorized"
    );
    let request = Request::get("/tenant").header("authorization", "Bearer 0123456789abcdef");
    let response = server.ask(request.body(Body::empty()).unwrap()).await;
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "red"
    );
}

#[tokio::test(start_paused = true)]
async fn beyond_the_slots_and_the_queue_a_request_is_told_to_come_again() {
    let admission = AdmissionLimits {
        in_flight: 1,
        queued: 1,
        queue_wait: Duration::from_secs(60),
    };
    let server = Arc::new(server(Setup {
        admission,
        ..Setup::default()
    }));
    let ask = |server: &Arc<Server>| {
        let server = server.clone();
        tokio::spawn(async move { server.ask(get_request("/gate")).await.status().as_u16() })
    };
    let (first, second) = (ask(&server), ask(&server));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let refused = server.ask(get_request("/gate")).await;
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    assert_eq!(slug(&problem_of(refused).await), "overloaded");
    assert_eq!(
        server.ask(get_request("/health")).await.status(),
        StatusCode::OK,
        "health takes no slot"
    );
    server.gate.notify_one();
    assert_eq!(first.await.unwrap(), 200);
    server.gate.notify_one();
    assert_eq!(
        second.await.unwrap(),
        200,
        "the queued request had its turn"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_slot_ends_and_a_client_that_leaves_gives_its_slot_back() {
    let admission = AdmissionLimits {
        in_flight: 1,
        queued: 1,
        queue_wait: Duration::from_secs(2),
    };
    let server = Arc::new(server(Setup {
        admission,
        ..Setup::default()
    }));
    let holder = server.clone();
    let holder = tokio::spawn(async move { holder.ask(get_request("/gate")).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let start = tokio::time::Instant::now();
    assert_eq!(
        slug(&server.problem(get_request("/gate")).await),
        "overloaded"
    );
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    holder.abort();
    let _ = holder.await;
    assert_eq!(
        server.ask(get_request("/tenant")).await.status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_panic_is_counted_and_answered() {
    let server = server(Setup::default());
    let document = server.problem(get_request("/panic")).await;
    assert_eq!((document.status, document.slug()), (500, "internal"));
    assert!(server.metrics().contains("relay_task_panics_total 1"));
}

#[tokio::test]
async fn bodies_are_read_or_refused_with_the_documented_status() {
    let server = server(Setup::default());
    let long = format!("\"{}\"", "x".repeat(70));
    let stream = || {
        Body::from_stream(futures_util::stream::iter(
            (0..3).map(|_| Ok::<_, std::io::Error>(vec![b'['; 40])),
        ))
    };
    let broken = || {
        let parts = vec![
            Ok(Bytes::from_static(b"{")),
            Err(std::io::Error::other("connection reset")),
        ];
        Body::from_stream(futures_util::stream::iter(parts))
    };
    for (name, body, expected) in [
        ("fine", Body::from("{\"a\":1}"), 200),
        ("empty", Body::empty(), 400),
        ("not JSON", Body::from("hello"), 400),
        ("invalid UTF-8", Body::from(&b"{\"a\":\"\xff\"}"[..]), 400),
        ("a list", Body::from("[1]"), 422),
        ("too long in one piece", Body::from(long), 413),
        ("too long in pieces", stream(), 413),
        ("cut off", broken(), 400),
    ] {
        assert_eq!(
            server.ask(post_json(body)).await.status().as_u16(),
            expected,
            "{name}"
        );
    }
    let declared = Request::post("/echo")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, "65")
        .header(header::EXPECT, "100-continue");
    assert_eq!(
        server
            .problem(declared.body(trickle(0, Duration::ZERO)).unwrap())
            .await
            .status,
        413
    );
    let form = Request::post("/echo").body(Body::from("{}")).unwrap();
    assert_eq!(slug(&server.problem(form).await), "unsupported-media-type");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_refused_at_the_wait_however_it_trickles() {
    let server = server(Setup::default());
    for (name, body) in [
        ("silent", trickle(0, Duration::ZERO)),
        ("a byte each second", trickle(60, Duration::from_secs(1))),
    ] {
        let start = tokio::time::Instant::now();
        let document = server.problem(post_json(body)).await;
        assert_eq!(
            (document.status, start.elapsed()),
            (408, Duration::from_secs(10)),
            "{name}"
        );
    }
    let start = tokio::time::Instant::now();
    let too_long = trickle(200, Duration::from_millis(100));
    assert_eq!(
        server.problem(post_json(too_long)).await.status,
        413,
        "a long body stays too long when it is slow"
    );
    assert_eq!(
        start.elapsed(),
        Duration::from_millis(6500),
        "with its 65th byte, not at the wait"
    );
}

#[tokio::test]
async fn requests_are_counted_by_route_pattern_and_code() {
    let server = server(Setup::default());
    server.ask(get_request("/health")).await;
    for path in ["/a", "/b", "/c"] {
        server.ask(get_request(path)).await;
    }
    server.ask(post_json("x")).await;
    let metrics = server.metrics();
    for line in [
        "test_requests_total{code=\"200\",route=\"/health\"} 1",
        "test_requests_total{code=\"404\",route=\"other\"} 3",
        "test_requests_total{code=\"400\",route=\"/echo\"} 1",
        "test_request_duration_seconds_count{route=\"/health\"} 1",
        "test_in_flight 0",
        "relay_build_info{commit=\"none\",component=\"test\",version=\"0.0.0\"} 1",
    ] {
        assert!(
            metrics.lines().any(|l| l == line),
            "{line} not in\n{metrics}"
        );
    }
}

#[tokio::test]
async fn detail_routes_answer_errors_in_layas_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, "red 0123456789abcdef\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).unwrap();
    let server = server(Setup {
        authority: Authority::Tokens(TokenFile::open(&path).unwrap()),
        ..Setup::default()
    });
    let request = |method: &str, headers: &[(&str, &str)], body: &str| {
        let mut request = Request::builder().method(method).uri("/laya");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::from(body.to_owned())).unwrap()
    };
    let token = ("authorization", "Bearer 0123456789abcdef");
    let long = "x".repeat(65);
    for (name, request, status, detail) in [
        (
            "no token",
            request("POST", &[], ""),
            401,
            "invalid or missing bearer token",
        ),
        (
            "other method",
            request("GET", &[token], ""),
            405,
            "Method Not Allowed",
        ),
        (
            "an origin",
            request("POST", &[token, ("origin", "https://evil.example")], ""),
            403,
            "requests of this browser origin are refused",
        ),
        (
            "too long",
            request("POST", &[token], &long),
            413,
            "request body too large",
        ),
    ] {
        let response = server.ask(request).await;
        assert_eq!(response.status(), status, "{name}");
        let headers = response.headers().clone();
        assert_eq!(headers[header::CONTENT_TYPE], "application/json", "{name}");
        assert!(headers.contains_key("x-request-id"), "{name}");
        assert!(!headers.contains_key(header::WWW_AUTHENTICATE), "{name}");
        assert_eq!(headers.contains_key(header::ALLOW), status == 405, "{name}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = format!(r#"{{"detail":"{detail}"}}"#);
        assert_eq!(body, expected, "{name}");
    }
    let response = server.ask(request("POST", &[token], "as it is")).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "as it is");
}
