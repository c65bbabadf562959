//! Fault 34: a thousand at once, and callers that vanish, before a server that hangs.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use router::servers::CALLS_IN_FLIGHT;
use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::{Behind, target, until, within};

const CROWD: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_server_holds_32_calls_and_everybody_else_is_told_at_once() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 5).await;
    fake.fail(Fault::HangBeforeHead);
    let mut asking = JoinSet::new();
    for number in 0..CROWD {
        let servers = behind.servers.clone();
        asking.spawn(async move {
            let begun = Instant::now();
            let task = format!("task-{number}");
            let answered = servers.ask("Fix it", &task, within(1500)).await;
            (answered.unwrap_err(), begun.elapsed())
        });
    }
    let (mut waited, mut at_once) = (0, 0);
    while let Some(ended) = asking.join_next().await {
        let (reason, took) = ended.unwrap();
        assert!(
            took < Duration::from_millis(1500),
            "{reason} after {took:?}"
        );
        match reason {
            Fallback::Timeout => waited += 1,
            Fallback::Busy | Fallback::BreakerOpen => {
                at_once += 1;
                assert!(took < Duration::from_millis(500), "{reason} after {took:?}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(
        (waited, at_once),
        (CALLS_IN_FLIGHT, CROWD - CALLS_IN_FLIGHT)
    );
    assert!(fake.peak() <= CALLS_IN_FLIGHT, "{}", fake.peak());
    assert!(behind.is_open("one"));
    until("no call is left", || fake.in_flight() == 0).await;
    until("no connection is left but that of looks", || {
        fake.connections() <= 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_vanish_leave_nothing_behind() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 5).await;
    let app = behind.app().await;
    for fault in [Fault::HangBeforeHead, Fault::HangInBody] {
        fake.fail(fault);
        for _ in 0..5 {
            let mut calling = JoinSet::new();
            for _ in 0..200 {
                let app = app.clone();
                calling.spawn(async move {
                    let body = r#"{"state":"x","questions":{}}"#;
                    let request = Request::post("/v1/systemone")
                        .body(Body::from(body))
                        .unwrap();
                    let response = app.oneshot(request).await.unwrap();
                    // Only heads come; the caller goes while the body hangs.
                    let status = response.status().as_u16();
                    tokio::time::sleep(Duration::from_millis(if status == 200 {
                        20_000
                    } else {
                        0
                    }))
                    .await;
                    status
                });
            }
            until("the slots are taken", || {
                fake.in_flight() == CALLS_IN_FLIGHT
            })
            .await;
            calling.abort_all();
            while let Some(ended) = calling.join_next().await {
                if let Ok(status) = ended {
                    assert_eq!(status, 503, "told at once");
                }
            }
            until("no call is left", || fake.in_flight() == 0).await;
        }
    }
    assert!(fake.peak() <= CALLS_IN_FLIGHT);
    fake.fail(Fault::None);
    assert!(
        !behind.is_open("one"),
        "nobody said anything about the server"
    );
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert!(answered.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_end_are_not_kept() {
    let fake = FakeLaya::start(Says::relay()).await;
    // Never opens, so that every question meets the flood.
    let behind = Behind::new(vec![target("one", &fake)], 1_000_000).await;
    fake.fail(Fault::HugeChunkedBody(256 << 20));
    let ask = async |times: usize| {
        for _ in 0..times {
            let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
            assert_eq!(answered.unwrap_err(), Fallback::InvalidAnswers);
        }
    };
    ask(20).await;
    let before = resident_kib();
    ask(100).await;
    let grown = resident_kib().saturating_sub(before);
    assert!(
        grown < 16 << 10,
        "{grown} KiB more after 100 answers of 256 MiB"
    );
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
