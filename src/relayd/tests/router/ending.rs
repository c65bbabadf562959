//! Signals, drain and exit codes.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Router, answer, connect, head, wait_for};

const BODY: &str = "{\"request\":\"rename a variable\"}";

/// A request whose body is still missing.
fn half_a_request(router: &Router) -> TcpStream {
    let mut stream = connect(router.address);
    let header = format!("content-length: {}", BODY.len());
    stream
        .write_all(head("/v1/route", "application/json", &header).as_bytes())
        .unwrap();
    wait_for("the request to be in flight", || {
        router
            .get("/metrics")
            .body
            .lines()
            .any(|line| line == "relay_router_in_flight 2")
            .then_some(())
    });
    stream
}

#[test]
fn either_signal_ends_an_idle_router_at_once_with_zero() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut router = Router::start(&[]);
        let _idle = connect(router.address);
        assert_eq!(router.get("/health").status, 200);
        let start = Instant::now();
        router.signal(signal);
        let status = router.ended();
        assert_eq!(
            (status.code(), status.signal()),
            (Some(0), None),
            "{signal:?}: {:?}",
            router.log()
        );
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}

#[test]
fn an_open_request_is_answered_before_the_end() {
    let mut router = Router::start(&[]);
    let mut open = half_a_request(&router);
    router.signal(Signal::TERM);
    wait_for("not ready", || {
        (router.admin("/readyz").status == 503).then_some(())
    });
    assert_eq!(router.admin("/livez").status, 200, "draining is alive");
    let reasons = router.admin("/readyz").json();
    assert_eq!(reasons["reasons"][0]["message"], "draining");
    wait_for("the port to close", || {
        TcpStream::connect(router.address).is_err().then_some(())
    });
    open.write_all(BODY.as_bytes()).unwrap();
    let answered = answer(&mut open);
    assert_eq!(
        (answered.status, answered.headers["connection"].as_str()),
        (200, "close"),
        "{answered:?}"
    );
    assert_eq!(router.ended().code(), Some(0), "{:?}", router.log());
}

#[test]
fn a_second_signal_stops_it_at_once_with_the_code_of_the_signal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut router = Router::start(&[]);
        let _open = half_a_request(&router);
        router.signal(signal);
        wait_for("the drain to begin", || {
            (router.admin("/readyz").status == 503).then_some(())
        });
        router.signal(signal);
        assert_eq!(router.ended().code(), Some(code), "{:?}", router.log());
    }
}

#[test]
fn nothing_is_lost_when_it_ends_under_load() {
    let mut router = Router::start(&[]);
    let address = router.address;
    let clients: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = connect(address);
                let request =
                    crate::support::post("/v1/route", "application/json", BODY.as_bytes());
                let mut answered = 0;
                loop {
                    stream.write_all(&request).unwrap();
                    let answer = answer(&mut stream);
                    assert_eq!(answer.status, 200, "after {answered}: {answer:?}");
                    answered += 1;
                    if answer
                        .headers
                        .get("connection")
                        .is_some_and(|value| value == "close")
                    {
                        return answered;
                    }
                }
            })
        })
        .collect();
    wait_for("some load", || {
        let metrics = router.get("/metrics").body;
        let line = metrics.lines().find(|l| {
            l.starts_with("relay_router_requests_total{code=\"200\",route=\"/v1/route\"}")
        });
        line.and_then(|l| l.rsplit(' ').next()?.parse::<u64>().ok())
            .filter(|count| *count > 200)
    });
    router.signal(Signal::TERM);
    for client in clients {
        client
            .join()
            .expect("each request was answered, the last one with `connection: close`");
    }
    assert_eq!(router.ended().code(), Some(0));
}
