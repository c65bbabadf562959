//! Bad bodies: each gets one clear answer with the documented status, and the router goes on.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Router, answer, ask, connect, head, post};

#[test]
fn every_kind_of_bad_body_has_its_status_and_path() {
    let router = Router::start(&[]);
    let long_text = format!("{{\"request\":\"{}\"}}", "x".repeat(100_001));
    let deep = format!(
        "{{\"request\":{}1{}}}",
        "[".repeat(500_000),
        "]".repeat(500_000)
    );
    let cases: &[(&str, &[u8], u16, &str, &str)] = &[
        ("empty", b"", 400, "malformed-json", "(none)"),
        ("blank", b" \r\n\t ", 400, "malformed-json", "(none)"),
        ("no JSON", b"Fix the login", 400, "malformed-json", "(none)"),
        (
            "cut off",
            b"{\"request\":\"a",
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "two bodies",
            b"{\"request\":\"a\"}{}",
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "invalid UTF-8",
            b"{\"request\":\"\xc3\x28\"}",
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "lone surrogate",
            br#"{"request":"a \ud83d b"}"#,
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "reversed pair",
            br#"{"request":"\ude00\ud83d"}"#,
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "raw NUL",
            b"{\"request\":\"a\0b\"}",
            400,
            "malformed-json",
            "(none)",
        ),
        ("NUL bytes only", &[0; 64], 400, "malformed-json", "(none)"),
        (
            "raw control character",
            b"{\"request\":\"a\x1b[31m\"}",
            400,
            "malformed-json",
            "(none)",
        ),
        (
            "half a million brackets",
            deep.as_bytes(),
            400,
            "malformed-json",
            "(none)",
        ),
        ("a list", b"[\"a\"]", 422, "invalid-request", ""),
        ("null", b"null", 422, "invalid-request", ""),
        ("no request", b"{}", 422, "invalid-request", "request"),
        (
            "blank request",
            br#"{"request":" \n\t\u00a0"}"#,
            422,
            "invalid-request",
            "request",
        ),
        (
            "empty request",
            br#"{"request":""}"#,
            422,
            "invalid-request",
            "request",
        ),
        (
            "request too long",
            long_text.as_bytes(),
            422,
            "invalid-request",
            "request",
        ),
        (
            "request is a number",
            br#"{"request":7}"#,
            422,
            "invalid-request",
            "request",
        ),
        (
            "request twice",
            br#"{"request":"a","request":"b"}"#,
            422,
            "invalid-request",
            "request",
        ),
        (
            "a provider twice",
            br#"{"request":"a","quota":{"google":1,"openai":1,"google":0}}"#,
            422,
            "invalid-request",
            "quota.google",
        ),
        (
            "a model twice",
            br#"{"request":"a","models":[{"ref":"a/b"},{"ref":"a/b"}]}"#,
            422,
            "invalid-request",
            "models[1]",
        ),
        (
            "the virtual model",
            br#"{"request":"a","constraints":{"model":"laya/auto"}}"#,
            422,
            "invalid-request",
            "constraints.model",
        ),
        (
            "unknown field",
            br#"{"request":"a","modle":"x"}"#,
            422,
            "invalid-request",
            "modle",
        ),
        (
            "unknown field inside",
            br#"{"request":"a","constraints":{"teir":"fast"}}"#,
            422,
            "invalid-request",
            "constraints.teir",
        ),
        (
            "unknown profile",
            br#"{"request":"a","profile":"cheap"}"#,
            422,
            "invalid-request",
            "profile",
        ),
        (
            "unknown tier",
            br#"{"request":"a","constraints":{"tier":"huge"}}"#,
            422,
            "invalid-request",
            "constraints.tier",
        ),
        (
            "malformed model",
            br#"{"request":"a","constraints":{"model":"claude"}}"#,
            422,
            "invalid-request",
            "constraints.model",
        ),
        (
            "unknown kind",
            br#"{"request":"a","kind":"admin"}"#,
            422,
            "invalid-request",
            "kind",
        ),
        (
            "bad uuid",
            br#"{"request":"a","previous_decision_id":"7"}"#,
            422,
            "invalid-request",
            "previous_decision_id",
        ),
        (
            "a flag as text",
            br#"{"request":"a","dry_run":"yes"}"#,
            422,
            "invalid-request",
            "dry_run",
        ),
    ];
    for (name, body, status, slug, path) in cases {
        let answer = router.route(body);
        let seen = (answer.status, answer.slug(), answer.path());
        assert_eq!(
            seen,
            (*status, (*slug).to_owned(), (*path).to_owned()),
            "{name}: {answer:?}"
        );
    }
    assert_eq!(
        router.route("[]").json()["detail"],
        "the body must be a JSON object"
    );
    assert_eq!(
        router
            .route(json!({"request": "still there?"}).to_string())
            .status,
        200
    );
    assert!(
        router
            .get("/metrics")
            .body
            .contains("relay_task_panics_total 0")
    );
}

#[test]
fn odd_text_that_is_a_request_is_decided() {
    let router = Router::start(&[]);
    for text in [
        "a\u{0}b",
        "\u{1b}[31mred\u{7}",
        "😀",
        "\u{202e}olleh",
        "\u{feff}x",
        "ﷺ",
        "a\r\n\r\nGET / HTTP/1.1",
    ] {
        let answer = router.route(json!({"request": text}).to_string());
        assert_eq!(answer.status, 200, "{text:?}: {answer:?}");
    }
    let longest = "x".repeat(100_000);
    assert_eq!(
        router.route(json!({"request": longest}).to_string()).status,
        200
    );
}

#[test]
fn a_model_the_registry_lacks_is_used_and_said() {
    let router = Router::start(&[]);
    let body = json!({"request": "rename a variable", "constraints": {"model": "some/thing-9"}});
    let decision = router.route(body.to_string()).json();
    assert_eq!(decision["selected"]["model"], "some/thing-9");
    let codes: Vec<_> = decision["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].clone())
        .collect();
    assert!(codes.contains(&json!("capability_unknown")), "{decision}");
}

#[test]
fn a_body_that_is_not_declared_as_json_is_refused() {
    let router = Router::start(&[]);
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let answer = ask(
            router.address,
            &post("/v1/route", kind, b"{\"request\":\"a\"}"),
        );
        assert_eq!(
            (answer.status, answer.slug().as_str()),
            (415, "unsupported-media-type"),
            "{kind}"
        );
    }
}

#[test]
fn ten_megabytes_are_refused_however_they_come() {
    let router = Router::start(&[]);
    let megabyte = vec![b'x'; 1 << 20];
    let ten = megabyte.repeat(10);
    assert_eq!(router.route(&ten).slug(), "too-large", "with a length");

    let mut stream = connect(router.address);
    stream
        .write_all(
            head(
                "/v1/route",
                "application/json",
                "transfer-encoding: chunked",
            )
            .as_bytes(),
        )
        .unwrap();
    for _ in 0..10 {
        stream
            .write_all(format!("{:x}\r\n", megabyte.len()).as_bytes())
            .unwrap();
        stream.write_all(&megabyte).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(answer(&mut stream).slug(), "too-large", "in chunks");

    let mut stream = connect(router.address);
    let header = format!("content-length: {}\r\nexpect: 100-continue", ten.len());
    stream
        .write_all(head("/v1/route", "application/json", &header).as_bytes())
        .unwrap();
    assert_eq!(answer(&mut stream).slug(), "too-large", "before it is sent");

    assert_eq!(
        router
            .route(json!({"request": "x".repeat(90_000)}).to_string())
            .status,
        200,
        "below the limit"
    );
}

/// A client that sends the head and waits has its answer at once, and the connection ends soon after.
#[test]
fn a_length_that_is_too_large_is_refused_before_the_body_comes() {
    let router = Router::start(&[]);
    let start = Instant::now();
    let mut stream = connect(router.address);
    let head = head("/v1/route", "application/json", "content-length: 2097152");
    stream.write_all(head.as_bytes()).unwrap();
    let refused = answer(&mut stream);
    assert_eq!(refused.slug(), "too-large");
    assert_eq!(refused.headers["connection"], "close");
    let answered = start.elapsed();
    assert!(answered < Duration::from_millis(900), "{answered:?}");
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    let closed = start.elapsed();
    assert!(closed < Duration::from_secs(6), "{closed:?}");
}

#[test]
fn a_body_or_a_head_that_never_ends_is_cut_off_after_ten_seconds() {
    let router = Router::start(&[]);
    let start = Instant::now();
    let mut silent = connect(router.address);
    silent
        .write_all(head("/v1/route", "application/json", "content-length: 100").as_bytes())
        .unwrap();
    silent.write_all(b"{\"request\":").unwrap();
    let mut headless = connect(router.address);
    headless
        .write_all(b"POST /v1/route HTTP/1.1\r\nhost: localhost\r\n")
        .unwrap();

    let late = answer(&mut silent);
    assert_eq!(
        (late.status, late.slug().as_str()),
        (408, "request-timeout")
    );
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut headless, &mut rest);
    let elapsed = start.elapsed();
    assert!(
        (Duration::from_secs(9)..Duration::from_secs(15)).contains(&elapsed),
        "{elapsed:?}"
    );
}
