//! Paths, origins, tokens, headers, deadlines, contracts, drain (wire.md 2).

use crate::support::Server;
use crate::{ONE_CHOICE, copy_with_contract, heavy};

fn detail(text: &str) -> String {
    format!(r#"{{"detail":"{text}"}}"#)
}

#[test]
fn paths_and_methods_come_before_everything() {
    let server = Server::tiny(&[("LAYA_API_KEY", "s3cret"), ("LAYA_PRELOAD", "0")]);
    let rows = [
        ("GET", "/nope", 404, "Not Found", None),
        ("POST", "/docs", 404, "Not Found", None),
        ("GET", "/redoc", 404, "Not Found", None),
        ("GET", "/openapi.json", 404, "Not Found", None),
        ("GET", "/", 404, "Not Found", None),
        (
            "GET",
            "/v1/systemone",
            405,
            "Method Not Allowed",
            Some("POST"),
        ),
        (
            "OPTIONS",
            "/v1/systemone/batch",
            405,
            "Method Not Allowed",
            Some("POST"),
        ),
        ("POST", "/health", 405, "Method Not Allowed", Some("GET")),
        (
            "PUT",
            "/%68ealth?x=1",
            405,
            "Method Not Allowed",
            Some("GET"),
        ),
        (
            "GET",
            "/drain",
            405,
            "Method Not Allowed",
            Some("POST, DELETE"),
        ),
        (
            "POST",
            "/v1/systemone",
            401,
            "invalid or missing bearer token",
            None,
        ),
        (
            "GET",
            "/metrics",
            401,
            "invalid or missing bearer token",
            None,
        ),
        (
            "POST",
            "/drain",
            401,
            "invalid or missing bearer token",
            None,
        ),
    ];
    for (method, path, status, text, allow) in rows {
        let reply = server.send(method, path, &[("origin-not", "x")], b"");
        assert_eq!(
            (reply.status, reply.text()),
            (status, detail(text)),
            "{method} {path}"
        );
        assert_eq!(reply.header("allow"), allow, "{method} {path}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/json"),
            "{method} {path}"
        );
        assert_eq!(reply.header("www-authenticate"), None, "{method} {path}");
    }
}

#[test]
fn slashes_are_redirected_with_host_and_query() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    for (method, path, location) in [
        ("GET", "/health/", "http://host.example:1/health"),
        (
            "POST",
            "/v1/systemone//?a=b&c=%20",
            "http://host.example:1/v1/systemone?a=b&c=%20",
        ),
        ("DELETE", "/%68ealth%2f?", "http://host.example:1/health"),
    ] {
        let reply = server.send(method, path, &[("host", "host.example:1")], b"");
        assert_eq!(
            (reply.status, reply.header("location")),
            (307, Some(location)),
            "{path}"
        );
        assert_eq!(
            (reply.header("content-length"), reply.header("content-type")),
            (Some("0"), None),
            "{path}"
        );
    }
}

#[test]
fn head_has_the_same_headers_and_no_body() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let mut client = server.client();
    for path in ["/health", "/nope"] {
        client.request("HEAD", path, &[], b"");
        let head = client.reply("HEAD");
        client.request("PATCH", path, &[], b"");
        let patch = client.reply("PATCH");
        assert_eq!(
            (head.status, head.header("content-length")),
            (patch.status, patch.header("content-length"))
        );
        assert!(head.body.is_empty());
    }
}

#[test]
fn browsers_are_refused_unless_their_origin_is_listed() {
    let server = Server::tiny(&[
        ("LAYA_ALLOWED_ORIGINS", "https://ok.example"),
        ("LAYA_API_KEY", "s3cret"),
        ("LAYA_PRELOAD", "0"),
    ]);
    for (origin, path, status) in [
        ("https://bad.example", "/health", 403),
        ("https://bad.example", "/v1/systemone", 405),
        ("https://bad.example", "/nope", 404),
        ("null", "/metrics", 403),
        ("https://ok.example", "/health", 200),
        ("https://ok.example", "/metrics", 401),
    ] {
        let reply = server.send("GET", path, &[("origin", origin)], b"");
        assert_eq!(reply.status, status, "{origin} {path}");
        if status == 403 {
            assert_eq!(reply.text(), detail("origin not allowed"));
        }
        let allowed = reply.header("access-control-allow-origin");
        assert_eq!(
            allowed.is_some(),
            origin == "https://ok.example",
            "{origin} {path}"
        );
    }
}

#[test]
fn replies_name_checkpoint_contract_and_truncation() {
    let server = Server::tiny(&[]);
    let reply = server.ask(ONE_CHOICE);
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("x-laya-checkpoint")
            .is_some_and(|digest| digest.starts_with("sha256:"))
    );
    assert_eq!(
        (
            reply.header("x-laya-contract"),
            reply.header("x-laya-truncated")
        ),
        (Some("none"), Some("0"))
    );
    let long = ONE_CHOICE.replace(
        "The server is down",
        &"The server is down again. ".repeat(100),
    );
    assert_eq!(server.ask(&long).header("x-laya-truncated"), Some("1"));
    let batch = r#"{"states":["The server is down","商品がまだ届いていません","The server is up"],"questions":{}}"#;
    let reply = server.send("POST", "/v1/systemone/batch", &[], batch.as_bytes());
    let digests: Vec<&str> = reply
        .header("x-laya-checkpoint")
        .unwrap()
        .split(", ")
        .collect();
    assert_eq!(digests.len(), 2, "{digests:?}");
    assert_eq!(reply.header("x-laya-contract"), Some("none, none"));
}

#[test]
fn a_checkpoint_with_a_contract_says_so_and_other_contracts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_with_contract(folder.path());
    let model = model.to_str().unwrap();
    let server = Server::start(&[], &["--model", model]);
    let health = server.get("/health").json();
    let keys: Vec<&str> = health
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for key in ["ok", "decisions", "contract", "shape", "checkpoints"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    assert_eq!(health["decisions"], serde_json::json!(["urgent", "kind"]));
    let own = health["contract"].as_str().unwrap();
    assert_eq!(health["checkpoints"]["model"]["contract"], own);
    assert_eq!(health["checkpoints"]["model"]["device"]["kind"], "cpu");

    let ask = |contract: &str| {
        server.send(
            "POST",
            "/v1/systemone",
            &[("x-laya-contract", contract)],
            ONE_CHOICE.as_bytes(),
        )
    };
    let reply = ask(own);
    assert_eq!(
        (reply.status, reply.header("x-laya-contract")),
        (200, Some(own))
    );
    let routing = reply.json()["routing"].clone();
    assert_eq!(
        serde_json::to_string(&routing).unwrap(),
        serde_json::json!({"detection":null,"model":"model","reason":"only checkpoint","repo":model,"workflow":null})
            .to_string()
    );
    let reply = ask("sha256:00");
    let expected = detail(&format!(
        "contract mismatch: asked for sha256:00, serving {own}"
    ));
    assert_eq!((reply.status, reply.text()), (409, expected));

    let other = Server::start_unready(&[("LAYA_CONTRACT", "sha256:00")], &["--model", model]);
    other.until("the reason is named", || {
        other.get("/ready").json()["reason"] == "WrongContract"
    });
    assert_eq!(other.get("/health").status, 200);
    let same = Server::start(&[("LAYA_CONTRACT", own)], &["--model", model]);
    assert_eq!(same.get("/ready").json()["ready"], true);
}

#[test]
fn choices_of_a_checkpoint_mean_nothing_where_there_is_one() {
    let server = Server::start(&[], &["--model", "tiny-laya"]);
    for control in [
        r#""model":"multilingual""#,
        r#""model":"a/b""#,
        r#""task":"nothing""#,
        r#""lang":"de""#,
    ] {
        let body = ONE_CHOICE.replacen('{', &format!("{{{control},"), 1);
        let reply = server.ask(&body);
        assert_eq!(reply.status, 200, "{control}: {}", reply.text());
        assert_eq!(
            reply.json()["routing"]["reason"],
            "only checkpoint",
            "{control}"
        );
    }
}

#[test]
fn deadlines_end_requests_in_the_queue_and_in_a_pass() {
    let server = Server::tiny(&[("LAYA_THREADS", "1")]);
    let ask = |millis: &str| {
        let headers = [("x-laya-deadline-ms", millis)];
        server.send(
            "POST",
            "/v1/systemone/batch",
            &headers,
            heavy(64).as_bytes(),
        )
    };
    let reply = ask("0");
    assert_eq!(
        (reply.status, reply.text()),
        (504, detail("deadline exceeded"))
    );
    let reply = ask("60");
    assert_eq!(
        (reply.status, reply.text()),
        (504, detail("deadline exceeded"))
    );
    assert_eq!(ask("soon").status, 422);
    // The slot is free again, and rows that had not begun are gone.
    server.until("no row waits", || server.metric("laya_queue_depth") == 0.0);
    assert_eq!(server.metric("laya_in_flight"), 0.0);
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
}

#[test]
fn a_drained_server_turns_new_requests_away_until_told_otherwise() {
    let server = Server::tiny(&[]);
    for _ in 0..2 {
        let reply = server.send("POST", "/drain", &[], b"");
        assert_eq!(
            (reply.status, reply.text()),
            (202, r#"{"draining":true,"in_flight":0}"#.to_owned())
        );
    }
    let reply = server.ask(ONE_CHOICE);
    assert_eq!(
        (reply.status, reply.text()),
        (503, detail("server is draining"))
    );
    assert_eq!(reply.header("retry-after"), Some("1"));
    let ready = server.get("/ready");
    assert_eq!(
        (ready.status, ready.json()["reason"].clone()),
        (503, "Draining".into())
    );
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.metric("laya_draining"), 1.0);
    assert_eq!(server.send("DELETE", "/drain", &[], b"").status, 200);
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn readiness_shows_checkpoints_only_to_those_with_the_key() {
    let server = Server::start_unready(
        &[
            ("LAYA_API_KEY", "s3cret"),
            ("LAYA_EXTRA_MODELS", crate::support::TINY_MODELS),
        ],
        &[],
    );
    server.until_ready();
    assert_eq!(server.get("/ready").text(), r#"{"ready":true}"#);
    let reply = server.send("GET", "/ready", &[("authorization", "Bearer s3cret")], b"");
    let shown = &reply.json()["checkpoints"]["multilingual"];
    assert_eq!(
        (&shown["precision"], &shown["parity"]),
        (&"f32".into(), &serde_json::Value::Null)
    );
    assert!(shown["probe_ms"].is_number(), "{shown}");
    assert_eq!(shown["verified"], false);
}

#[test]
fn metrics_count_what_happened() {
    let server = Server::tiny(&[]);
    server.ask(ONE_CHOICE);
    server.ask("{");
    for (metric, least) in [
        (
            r#"laya_requests_total{route="systemone",status="200"}"#,
            1.0,
        ),
        (
            r#"laya_requests_total{route="systemone",status="400"}"#,
            1.0,
        ),
        (
            r#"laya_answers_total{checkpoint="english",type="choice"}"#,
            1.0,
        ),
        (
            r#"laya_routed_total{branch="english",checkpoint="english"}"#,
            1.0,
        ),
        (r#"laya_tokens_total{checkpoint="english"}"#, 10.0),
        ("laya_pass_rows_count", 1.0),
        ("laya_ready", 1.0),
        ("process_open_fds", 3.0),
    ] {
        assert!(
            server.metric(metric) >= least,
            "{metric}: {}",
            server.get("/metrics").text()
        );
    }
}
