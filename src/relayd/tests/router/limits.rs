//! Too many at once.

use std::io::Write;

use serde_json::json;

use crate::support::{Router, answer, connect, head, wait_for};

#[test]
fn beyond_256_in_flight_and_64_queued_a_request_is_told_to_come_again() {
    let router = Router::start(&[]);
    let body = json!({"request": "rename a variable"}).to_string();
    let header = format!("content-length: {}", body.len());
    // Heads without their bodies hold their slots.
    let mut waiting: Vec<_> = (0..320)
        .map(|_| {
            let mut stream = connect(router.address);
            stream
                .write_all(head("/v1/route", "application/json", &header).as_bytes())
                .unwrap();
            stream
        })
        .collect();
    wait_for("all to be in flight", || {
        router
            .get("/metrics")
            .body
            .lines()
            .any(|line| line == "relay_router_in_flight 321")
            .then_some(())
    });
    let refused = router.route(&body);
    assert_eq!(
        (refused.status, refused.headers["retry-after"].as_str()),
        (503, "1"),
        "{refused:?}"
    );
    assert_eq!(refused.slug(), "overloaded");
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(router.get(path).status, 200, "{path} takes no slot");
    }
    assert_eq!(router.admin("/livez").status, 200);
    for stream in &mut waiting {
        stream.write_all(body.as_bytes()).unwrap();
    }
    let statuses: Vec<_> = waiting
        .iter_mut()
        .map(|stream| answer(stream).status)
        .collect();
    assert!(
        statuses.iter().filter(|status| **status == 200).count() >= 256,
        "{statuses:?}"
    );
    assert!(
        statuses.iter().all(|status| [200, 503].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(router.route(&body).status, 200);
}

#[test]
fn clients_that_vanish_give_their_slots_back() {
    let router = Router::start(&[]);
    for _ in 0..3 {
        let streams: Vec<_> = (0..300)
            .map(|_| {
                let mut stream = connect(router.address);
                let head = head("/v1/route", "application/json", "content-length: 50");
                stream.write_all(head.as_bytes()).unwrap();
                stream
            })
            .collect();
        drop(streams);
    }
    wait_for("no request to be in flight", || {
        router
            .get("/metrics")
            .body
            .lines()
            .any(|line| line == "relay_router_in_flight 1")
            .then_some(())
    });
    assert_eq!(
        router.route("{\"request\":\"rename a variable\"}").status,
        200
    );
}
