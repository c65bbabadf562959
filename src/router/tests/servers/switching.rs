//! Another table while requests come: nobody is lost, nobody falls to the rules because of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use router::servers::Role::{Candidate, Champion};
use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::following::{followed, generation, of, report};
use crate::{Behind, until, within};

/// Longest wait for the looks at new servers.
const WAIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn the_first_request_after_a_switch_is_answered_by_the_new_server() {
    let old = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("aaaa", 0, 100, Champion, &old)], 1).await;
    for round in 0..20_i64 {
        let new = FakeLaya::start(Says::relay()).await;
        let name = format!("rev{round}");
        let table = vec![of(&name, 0, 100, Champion, &new)];
        behind
            .servers
            .switch(table, generation(2 + round), WAIT)
            .await
            .unwrap();
        let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
        assert_eq!(answered.unwrap().provenance.server, format!("{name}-0"));
    }
    assert_eq!(old.calls(), 0);
}

#[tokio::test]
async fn a_switch_does_not_wait_for_a_server_that_hangs() {
    let (old, new) = (
        FakeLaya::start(Says::relay()).await,
        tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let behind = followed(vec![of("aaaa", 0, 100, Champion, &old)], 1).await;
    let mut hangs = of("bbbb", 0, 50, Candidate, &old);
    hangs.upstream = router::servers::Upstream::Http {
        url: format!("http://{}", new.local_addr().unwrap())
            .parse()
            .unwrap(),
        key: None,
    };
    let begun = Instant::now();
    let table = vec![hangs, of("aaaa", 0, 50, Champion, &old)];
    let wait = Duration::from_millis(200);
    behind
        .servers
        .switch(table, generation(2), wait)
        .await
        .unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    // Nobody has seen it yet, so its tasks go to the other one.
    for number in 0..20 {
        let task = format!("task-{number}");
        let answered = behind.servers.ask("Fix it", &task, within(5000)).await;
        assert_eq!(answered.unwrap().provenance.server, "aaaa-0");
    }
}

#[tokio::test]
async fn requests_of_the_old_table_finish() {
    let (old, new) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let behind = followed(vec![of("aaaa", 0, 100, Champion, &old)], 1).await;
    old.fail(Fault::Latency(Duration::from_millis(300)));
    let servers = behind.servers.clone();
    let asking = tokio::spawn(async move { servers.ask("Fix it", "task", within(5000)).await });
    until("it is asked", || old.in_flight() == 1).await;
    assert_eq!(report(&behind, "aaaa").in_flight, 1);
    let table = vec![of("bbbb", 0, 100, Champion, &new)];
    behind
        .servers
        .switch(table, generation(2), WAIT)
        .await
        .unwrap();
    assert_eq!(
        report(&behind, "aaaa").in_flight,
        1,
        "the controller can wait for it"
    );
    assert_eq!(asking.await.unwrap().unwrap().provenance.server, "aaaa-0");
    assert_eq!(report(&behind, "aaaa").in_flight, 0);
}

#[tokio::test]
async fn one_that_drains_is_no_error_and_others_are_asked_at_once() {
    let (drains, other) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let table = vec![
        of("bbbb", 0, 50, Candidate, &drains),
        of("aaaa", 0, 50, Champion, &other),
    ];
    let behind = followed(table, 1).await;
    let app = behind.app().await;
    drains.fail(Fault::Draining);
    drains.say(Says::relay().not_ready("Draining"));
    for number in 0..40 {
        let task = format!("task-{number}");
        let answered = behind.servers.ask("Fix it", &task, within(5000)).await;
        assert_eq!(answered.unwrap().provenance.server, "aaaa-0", "{number}");
        let request = Request::post("/v1/systemone")
            .body(Body::from("{}"))
            .unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{number}");
    }
    assert!(!behind.is_open("bbbb-0"), "it did what it should");
    let seen = report(&behind, "bbbb");
    assert_eq!((seen.errors, seen.timeouts), (0, 0), "{seen:?}");
    assert!(
        seen.rejections >= 1 && drains.calls() <= 3,
        "{seen:?}: it is not asked again and again"
    );
}

#[tokio::test]
async fn when_all_drain_the_caller_is_told_so() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("aaaa", 0, 100, Champion, &fake)], 1).await;
    fake.fail(Fault::Draining);
    fake.say(Says::relay().not_ready("Draining"));
    let request = Request::post("/v1/systemone")
        .body(Body::from("{}"))
        .unwrap();
    let response = behind.app().await.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"detail":"server is draining"}"#);
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert_eq!(answered.unwrap_err(), Fallback::NoModel);
    assert!(!behind.is_open("aaaa-0"));
}

/// What a caller saw.
#[derive(Default)]
struct Seen {
    asked: AtomicUsize,
    lost: AtomicUsize,
    by_rules: AtomicUsize,
}

/// 200 requests a second, half of them decisions and half passed through, until told to stop.
async fn load(app: axum::Router, seen: Arc<Seen>, until: Instant) {
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    let mut calling = JoinSet::new();
    let mut number = 0_u64;
    while Instant::now() < until {
        tick.tick().await;
        number += 1;
        let (app, seen) = (app.clone(), seen.clone());
        calling.spawn(async move {
            seen.asked.fetch_add(1, Ordering::Relaxed);
            let (path, body) = match number % 2 {
                0 => ("/v1/route", r#"{"request":"Fix the pager"}"#),
                _ => ("/v1/systemone", r#"{"state":"x","questions":{}}"#),
            };
            let request = Request::post(path)
                .header("content-type", "application/json")
                .body(Body::from(body))
                .unwrap();
            let asked = async {
                let response = app.oneshot(request).await.unwrap();
                let status = response.status();
                (
                    status,
                    response.into_body().collect().await.unwrap().to_bytes(),
                )
            };
            match tokio::time::timeout(Duration::from_secs(5), asked).await {
                Ok((status, body)) if status == 200 => {
                    let text = String::from_utf8_lossy(&body);
                    if text.contains("\"fallback\":\"") {
                        seen.by_rules.fetch_add(1, Ordering::Relaxed);
                    }
                }
                _ => {
                    seen.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        while calling.try_join_next().is_some() {}
    }
    while calling.join_next().await.is_some() {}
}

/// A rollout after the other: a canary, all of it, the old one drained and stopped.
async fn roll_out(behind: &Behind, until: Instant) -> usize {
    let mut old = FakeLaya::start(Says::relay()).await;
    let mut rollouts = 0;
    let mut number = 1;
    let mut switch = async |table| {
        number += 1;
        behind
            .servers
            .switch(table, generation(number), WAIT)
            .await
            .unwrap();
    };
    let name = |number: usize| format!("rev{number}");
    switch(vec![of(&name(0), 0, 100, Champion, &old)]).await;
    while Instant::now() < until {
        let new = FakeLaya::start(Says::relay()).await;
        for weight in [5, 50] {
            switch(vec![
                of(&name(rollouts + 1), 0, weight, Candidate, &new),
                of(&name(rollouts), 0, 100 - weight, Champion, &old),
            ])
            .await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        switch(vec![of(&name(rollouts + 1), 0, 100, Champion, &new)]).await;
        crate::until("the old one has no requests", || {
            report(behind, &name(rollouts)).in_flight == 0
        })
        .await;
        // Requests that took the table just before may still come.
        old.fail(Fault::Draining);
        tokio::time::sleep(Duration::from_millis(100)).await;
        old.stop().await;
        old = new;
        rollouts += 1;
    }
    rollouts
}

#[tokio::test]
async fn a_call_whose_servers_all_drain_by_then_goes_to_those_of_now() {
    let (old, new) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let behind = followed(vec![of("old", 0, 100, Champion, &old)], 5).await;
    let app = behind.app().await;
    // It takes the table of its beginning, and waits for a server that says only later that it drains.
    old.fail(Fault::DrainingAfter(Duration::from_millis(300)));
    let asking = tokio::spawn(async move {
        let request = Request::post("/v1/systemone")
            .header("content-type", "application/json")
            .body(Body::from(r#"{"state":"x","questions":{}}"#))
            .unwrap();
        app.oneshot(request).await.unwrap()
    });
    crate::until("it was asked", || old.calls() > 0).await;
    let table = vec![of("new", 0, 100, Champion, &new)];
    behind
        .servers
        .switch(table, generation(2), WAIT)
        .await
        .unwrap();
    let response = asking.await.unwrap();
    assert_eq!(response.status(), 200);
    let version = &response.headers()["x-relay-model-version"];
    assert_eq!(version, "model-new");
}

/// The bar of control-plane 19, for as long as there is time in CI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollouts_under_load_lose_nothing() {
    swap_under_load(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the whole minute of the bar"]
async fn rollouts_under_load_for_a_minute_lose_nothing() {
    swap_under_load(Duration::from_secs(60)).await;
}

async fn swap_under_load(time: Duration) {
    let first = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("first", 0, 100, Champion, &first)], 5).await;
    let app = behind.app().await;
    let seen = Arc::new(Seen::default());
    let until = Instant::now() + time;
    let loading = tokio::spawn(load(app, seen.clone(), until));
    let rollouts = roll_out(&behind, until).await;
    // The last ones are on their way.
    loading.await.unwrap();
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (asked, lost, by_rules) = (count(&seen.asked), count(&seen.lost), count(&seen.by_rules));
    println!(
        "{asked} requests over {rollouts} rollouts: {lost} lost, {by_rules} answered by rules"
    );
    assert_eq!(lost, 0, "of {asked} over {rollouts} rollouts");
    assert!(rollouts > 3, "{rollouts}");
    // A busy machine may miss a deadline; a rollout alone costs no answer of the model.
    assert!(by_rules * 100 <= asked, "{by_rules} of {asked} by rules");
}
