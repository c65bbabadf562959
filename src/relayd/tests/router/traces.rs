//! Traces of the real process: where the environment names a collector, spans are there after the process has ended,
//! and a collector that hangs does not hold up that end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Router, ask, relayd, wait_for};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A collector; what it was sent comes out of the channel. One that hangs reads and never answers.
fn collector(answers: bool) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sent, posts) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sent.send(body).unwrap();
            if !answers {
                std::thread::sleep(PATIENCE);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = (&stream).write_all(answer);
        }
    });
    (url, posts)
}

fn router(environment: &[(&str, &str)]) -> Router {
    let mut command = relayd(&["router", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    command.args(["--log-format", "json", "--log-level", "debug"]);
    command.envs(environment.iter().copied());
    Router::spawn(&mut command)
}

fn route(router: &Router, text: &str) {
    let body = json!({"request": text}).to_string();
    let head = format!(
        "POST /v1/route HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine-7\r\ntraceparent: 00-{TRACE}-b7ad6b7169203331-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = ask(router.address, head.as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn spans_leave_before_the_process_ends_and_hold_no_prompt() {
    let (url, posts) = collector(true);
    let mut router = router(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
        ("OTEL_SERVICE_NAME", "the-router"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=staging",
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x"),
    ]);
    route(&router, "Fix the zebra expiry");
    // Long texts are decided on another thread.
    route(&router, &"zebra crossing ".repeat(1000));
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0));

    let body = posts.recv_timeout(PATIENCE).unwrap();
    let trace: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&TRACE[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    for part in [
        &trace[..],
        b"POST /v1/route",
        b"mine-7",
        b"relay.decision.id",
        b"the-router",
        b"staging",
    ] {
        assert!(holds(&body, part), "{}", String::from_utf8_lossy(part));
    }
    assert!(!holds(&body, b"zebra"));

    let decided: Vec<Value> = router
        .log()
        .iter()
        .inspect(|line| assert!(!line.contains("zebra"), "{line}"))
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| event["message"] == "decided")
        .collect();
    assert_eq!(decided.len(), 2);
    for event in decided {
        assert_eq!(event["span"]["request_id"], "mine-7", "{event}");
        assert_eq!(event["span"]["trace_id"], TRACE, "{event}");
    }
}

#[test]
fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    let (url, posts) = collector(false);
    let mut router = router(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
    ]);
    route(&router, "rename a variable");
    posts.recv_timeout(PATIENCE).unwrap();
    let start = Instant::now();
    route(&router, "rename a variable");
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0), "{:?}", router.log());
    let took = start.elapsed();
    // 2 s for the spans, 0.3 s for idle connections; the call itself would take 10 s.
    assert!(took < Duration::from_secs(8), "{took:?}");
    wait_for("the loss to be said", || {
        let said = |line: &String| line.contains("spans did not leave in time");
        router.log().iter().any(said).then_some(())
    });
}

#[test]
fn a_setting_that_cannot_be_followed_is_said() {
    let router = router(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_TRACES_SAMPLER", "xray"),
    ]);
    let said = |line: &String| line.contains("OTEL_TRACES_SAMPLER: is not known");
    assert!(router.log().iter().any(said), "{:?}", router.log());
}
