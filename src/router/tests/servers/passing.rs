//! `/v1/systemone` and its batch: bytes in, the same bytes out, and Laya's form for what the router says itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::responses::ServingState;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use router::servers::{KeyFile, Upstream};
use testkit::{FakeLaya, Fault, Says};
use tower::ServiceExt;

use crate::{Behind, target, until};

/// Not as a writer of JSON would have it.
const BODY: &str = "{ \"questions\":{\"urgent\":{\"type\":\"noul\",\"instructions\":\"Is it?\"}} ,\n \"state\": \"x\"}";
const BATCH: &str =
    r#"{"states":["a","b"],"questions":{"urgent":{"type":"noul","instructions":"Is it?"}}}"#;

async fn post(
    app: &axum::Router,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    (head.status, head.headers, body.unwrap_or_default())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn bytes_and_headers_pass_and_tokens_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "of-the-server\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let says = Says {
        key: Some("of-the-server".to_owned()),
        ..Says::relay()
    };
    let fake = FakeLaya::start(says).await;
    let mut keyed = target("one", &fake);
    keyed.version = "relay-decisions-7".to_owned();
    keyed.upstream = Upstream::Http {
        url: fake.url().parse().unwrap(),
        key: Some(Arc::new(KeyFile::open(&key).unwrap())),
    };
    let behind = Behind::new(vec![keyed], 1).await;
    let app = behind.app().await;
    let sent = [
        ("authorization", "Bearer of-the-client"),
        ("content-type", "application/json; charset=utf-8"),
        ("cookie", "a=b"),
        ("x-laya-deadline-ms", "5000"),
        ("x-request-id", "request-7"),
    ];
    for (path, body) in [("/v1/systemone", BODY), ("/v1/systemone/batch", BATCH)] {
        let (status, headers, answer) = post(&app, path, &sent, body).await;
        assert_eq!(status, 200, "{path}");
        let seen = fake.last().unwrap();
        assert_eq!(seen.line, format!("POST {path} HTTP/1.1"));
        assert_eq!(seen.body, body.as_bytes(), "{path}");
        assert_eq!(seen.header("authorization"), Some("Bearer of-the-server"));
        assert_eq!(
            seen.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(seen.header("cookie"), None);
        let millis: u64 = seen.header("x-laya-deadline-ms").unwrap().parse().unwrap();
        assert!((4000..=5000).contains(&millis), "{millis}");

        let direct = direct(&fake, path, body).await;
        assert_eq!(answer, direct, "{path}");
        for (name, expected) in [
            ("content-type", "application/json"),
            ("server-timing", "inference;dur=1.25"),
            ("x-inference-time-ms", "1.25"),
            ("x-laya-truncated", "0"),
            ("x-relay-model-version", "relay-decisions-7"),
            ("x-relay-contract", "match"),
            ("x-request-id", "request-7"),
        ] {
            assert_eq!(
                text(&headers, name).as_deref(),
                Some(expected),
                "{path} {name}"
            );
        }
        assert_eq!(
            text(&headers, "content-length"),
            Some(direct.len().to_string())
        );
        assert_eq!(
            text(&headers, "x-laya-checkpoint"),
            Says::relay().checkpoint
        );
        assert_eq!(text(&headers, "x-laya-contract"), Says::relay().contract);
    }
    // A rotated key is taken without a restart.
    fs::write(&key, "rotated\n").unwrap();
    fake.say(Says {
        key: Some("rotated".to_owned()),
        ..Says::relay()
    });
    let begun = Instant::now();
    while post(&app, "/v1/systemone", &[], BODY).await.0 != 200 {
        assert!(begun.elapsed() < crate::PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The answer of the server itself.
async fn direct(fake: &FakeLaya, path: &str, body: &str) -> Vec<u8> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(fake.address())
        .await
        .unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-the-server\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    answer[end + 4..].to_vec()
}

#[tokio::test]
async fn what_the_server_refuses_is_handed_on() {
    let fake = FakeLaya::start(Says::original()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    let app = behind.app().await;
    for (status, retry_after) in [
        (400, None),
        (413, None),
        (422, None),
        (500, None),
        (503, Some(1)),
        (429, Some(3)),
    ] {
        fake.fail(Fault::Status(status, retry_after));
        let (got, headers, body) = post(&app, "/v1/systemone", &[], BODY).await;
        assert_eq!(got, status);
        assert_eq!(body, r#"{"detail":"told so by a test"}"#);
        let wait = retry_after.map(|seconds| seconds.to_string());
        assert_eq!(text(&headers, "retry-after"), wait, "{status}");
        assert_eq!(
            text(&headers, "x-relay-contract").as_deref(),
            Some("foreign")
        );
    }
}

#[tokio::test]
async fn answers_of_a_failing_server_open_its_breaker_and_those_to_a_caller_do_not() {
    for (name, status, retry_after, deadline, calls, opens) in [
        ("a proxy without a server", 502, None, None, 1, true),
        ("away", 503, None, None, 1, true),
        ("busy", 503, Some(1), None, 1, false),
        ("busy twice", 503, Some(1), None, 2, true),
        ("too many", 429, Some(1), None, 1, false),
        ("too many twice", 429, None, None, 2, true),
        ("too late for the router", 504, None, None, 1, true),
        ("too late for the caller", 504, None, Some("5000"), 3, false),
        (
            "a deadline of its own kind",
            504,
            None,
            Some("1.5"),
            3,
            false,
        ),
        ("what a body alone can provoke", 500, None, None, 3, false),
        ("a body it refuses", 400, None, None, 3, false),
        ("a question it refuses", 422, None, None, 3, false),
    ] {
        let fake = FakeLaya::start(Says::relay()).await;
        let behind = Behind::new(vec![target("one", &fake)], 1).await;
        let app = behind.app().await;
        fake.fail(Fault::Status(status, retry_after));
        let headers: Vec<_> = deadline
            .map(|millis| ("x-laya-deadline-ms", millis))
            .into_iter()
            .collect();
        for _ in 0..calls {
            let (got, _, _) = post(&app, "/v1/systemone", &headers, BODY).await;
            assert_eq!(got, status, "{name}");
        }
        assert_eq!(behind.is_open("one"), opens, "{name}");
    }
}

#[tokio::test]
async fn what_the_router_says_itself_has_layas_form() {
    let behind = Behind::unready(Vec::new(), 1);
    let app = behind.app().await;
    let long = "x".repeat((2 << 20) + 1);
    for (name, body, status, retry_after, detail) in [
        (
            "no server",
            BODY,
            503,
            Some("1"),
            "no decision model is serving",
        ),
        ("too long", &*long, 413, None, "request body too large"),
    ] {
        for path in ["/v1/systemone", "/v1/systemone/batch"] {
            let (got, headers, answer) = post(&app, path, &[], body).await;
            assert_eq!(got, status, "{name}");
            assert_eq!(answer, format!(r#"{{"detail":"{detail}"}}"#), "{name}");
            assert_eq!(
                text(&headers, "retry-after").as_deref(),
                retry_after,
                "{name}"
            );
            assert_eq!(
                text(&headers, "content-type").as_deref(),
                Some("application/json")
            );
            assert!(headers.contains_key("x-request-id"));
        }
    }
    let get = Request::get("/v1/systemone").body(Body::empty()).unwrap();
    let response = app.clone().oneshot(get).await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(text(response.headers(), "allow").as_deref(), Some("POST"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"detail":"Method Not Allowed"}"#);
}

#[tokio::test]
async fn the_deadline_of_the_caller_holds() {
    for fault in [
        Fault::HangBeforeHead,
        Fault::Latency(Duration::from_secs(20)),
    ] {
        let fake = FakeLaya::start(Says::relay()).await;
        let behind = Behind::new(vec![target("one", &fake)], 1).await;
        let app = behind.app().await;
        fake.fail(fault);
        let begun = Instant::now();
        let deadline = [("x-laya-deadline-ms", "200")];
        let (status, _, body) = post(&app, "/v1/systemone", &deadline, BODY).await;
        assert_eq!(status, 504);
        assert_eq!(body, r#"{"detail":"deadline exceeded"}"#);
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert!(
            !behind.is_open("one"),
            "a short deadline says nothing about the server"
        );
        until("the call is gone", || fake.in_flight() == 0).await;
    }
    // Once the head is out, the only way to say it is to end the connection.
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    fake.fail(Fault::HangInBody);
    let deadline = [("x-laya-deadline-ms", "200")];
    let (status, _, body) = post(&behind.app().await, "/v1/systemone", &deadline, BODY).await;
    assert_eq!((status.as_u16(), body.len()), (200, 0), "the body failed");
    until("the call is gone", || fake.in_flight() == 0).await;
}

#[tokio::test]
async fn a_server_lost_before_it_answers_is_replaced_once_by_one_of_its_contract() {
    let other = Says::original();
    for (name, fault, second, expected) in [
        ("reset", Fault::Reset, Says::relay(), 200),
        ("closed", Fault::AcceptThenClose, Says::relay(), 200),
        ("draining", Fault::Status(503, Some(1)), Says::relay(), 200),
        ("an answer", Fault::Status(500, None), Says::relay(), 500),
        ("another contract", Fault::Reset, other, 503),
    ] {
        let (lost, spare) = (
            FakeLaya::start(Says::relay()).await,
            FakeLaya::start(second).await,
        );
        let mut last = target("spare", &spare);
        last.weight = 0;
        let behind = Behind::new(vec![target("lost", &lost), last], 5).await;
        until("both are known", || spare.connections() == 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        lost.fail(fault);
        let (status, headers, _) = post(&behind.app().await, "/v1/systemone", &[], BODY).await;
        assert_eq!(status, expected, "{name}");
        if expected == 200 {
            assert_eq!(
                text(&headers, "x-relay-model-version").as_deref(),
                Some("spare"),
                "{name}"
            );
        }
        assert!(lost.calls() <= 2 && spare.calls() <= 1, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_takes_too_long_leaves_time_for_another_one_of_its_contract() {
    let millis = Duration::from_millis;
    let other = Says::original();
    for (name, fault, second, expected, by) in [
        (
            "it hangs",
            Fault::HangBeforeHead,
            Says::relay(),
            200,
            Some("spare"),
        ),
        (
            "it is slow",
            Fault::Latency(millis(1200)),
            Says::relay(),
            200,
            Some("spare"),
        ),
        (
            "it says that it was too late",
            Fault::Status(504, None),
            Says::relay(),
            200,
            Some("spare"),
        ),
        (
            "there is no other of its contract, so it has all the time",
            Fault::Latency(millis(1200)),
            other.clone(),
            200,
            Some("slow"),
        ),
        (
            "it hangs, and there is no other of its contract",
            Fault::HangBeforeHead,
            other,
            504,
            None,
        ),
    ] {
        let (slow, spare) = (
            FakeLaya::start(Says::relay()).await,
            FakeLaya::start(second).await,
        );
        let mut last = target("spare", &spare);
        last.weight = 0;
        let behind = Behind::new(vec![target("slow", &slow), last], 5).await;
        until("both are known", || spare.connections() == 1).await;
        tokio::time::sleep(millis(50)).await;
        slow.fail(fault);
        let deadline = [("x-laya-deadline-ms", "1500")];
        let begun = Instant::now();
        let (status, headers, _) =
            post(&behind.app().await, "/v1/systemone", &deadline, BODY).await;
        assert_eq!(status, expected, "{name}");
        assert!(begun.elapsed() < millis(4000), "{name}");
        let version = text(&headers, "x-relay-model-version");
        assert_eq!(version.as_deref(), by, "{name}");
        assert!(!behind.is_open("slow"), "{name}: the deadline was short");
    }
}

#[tokio::test]
async fn a_router_without_a_model_still_decides() {
    let behind = Behind::unready(Vec::new(), 1);
    assert_eq!(behind.state(), ServingState::RulesOnly);
    let body = r#"{"request":"Fix the pager"}"#;
    let json = [("content-type", "application/json")];
    let (status, _, _) = post(&behind.app().await, "/v1/route", &json, body).await;
    assert_eq!(status, 200);
}
