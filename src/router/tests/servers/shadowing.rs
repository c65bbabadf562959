//! Copies for a version that wants to serve: after the answer, compared, and never in anybody's way.

use std::time::{Duration, Instant};

use router::servers::Role::{Champion, Shadow};
use router::servers::{COPIES_QUEUED, Traffic};
use testkit::{FakeLaya, Fault, Says};

use crate::following::{followed, generation, of, report};
use crate::{Behind, until, within};

/// What became of copies so far.
fn copies(behind: &Behind, comparison: &str) -> usize {
    let families = behind.registry.gather();
    let family = families
        .iter()
        .find(|family| family.name() == "relay_router_shadow_copies_total")
        .expect("the metric");
    let metric = family
        .get_metric()
        .iter()
        .find(|metric| metric.get_label()[0].value() == comparison)
        .expect("the word");
    metric.get_counter().get_value() as usize
}

async fn pair() -> (FakeLaya, FakeLaya, Behind) {
    let (champion, shadow) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let table = vec![
        of("aaaa", 0, 100, Champion, &champion),
        of("bbbb", 0, 0, Shadow, &shadow),
    ];
    let behind = followed(table, 1_000).await;
    (champion, shadow, behind)
}

async fn ask(behind: &Behind, tasks: std::ops::Range<usize>) {
    for number in tasks {
        let task = format!("task-{number}");
        let answered = behind.servers.ask("Fix it", &task, within(5000)).await;
        assert_eq!(answered.unwrap().provenance.server, "aaaa-0");
    }
}

#[tokio::test]
async fn copies_are_compared_label_by_label() {
    let (champion, shadow, behind) = pair().await;
    ask(&behind, 0..10).await;
    until("all agree", || copies(&behind, "agrees") == 10).await;
    shadow.fail(Fault::LastOption);
    ask(&behind, 10..15).await;
    until("five differ", || copies(&behind, "differs") == 5).await;
    let seen = report(&behind, "bbbb");
    assert_eq!((seen.comparisons, seen.disagreements), (15, 5));
    assert_eq!(
        (seen.requests, seen.errors, seen.in_flight),
        (0, 0, 0),
        "nobody waited for it"
    );
    assert_eq!(champion.calls(), 15);
    // The same text in the same words.
    let (one, other) = (champion.last().unwrap(), shadow.last().unwrap());
    assert_eq!(one.body, other.body);
    shadow.fail(Fault::MalformedJson);
    ask(&behind, 15..18).await;
    until("three failed", || copies(&behind, "failed") == 3).await;
    assert_eq!(report(&behind, "bbbb").comparisons, 15);
}

#[tokio::test]
async fn only_the_share_that_spec_asks_for_is_copied() {
    let (champion, shadow, behind) = pair().await;
    let table = vec![
        of("aaaa", 0, 100, Champion, &champion),
        of("bbbb", 0, 0, Shadow, &shadow),
    ];
    let tenth = Traffic {
        copied_millionths: 100_000,
        ..generation(2)
    };
    let wait = Duration::from_secs(5);
    behind.servers.switch(table, tenth, wait).await.unwrap();
    // One after the other, so that the queue is never full.
    for at in (0..500).step_by(20) {
        ask(&behind, at..at + 20).await;
        let copied = shadow.calls();
        until("they are compared", || copies(&behind, "agrees") >= copied).await;
    }
    let copied = copies(&behind, "agrees") + copies(&behind, "dropped");
    assert!((25..=80).contains(&copied), "{copied} of 500");
    let before = shadow.calls();
    let none = Traffic {
        copied_millionths: 0,
        ..generation(3)
    };
    let table = vec![
        of("aaaa", 0, 100, Champion, &champion),
        of("bbbb", 0, 0, Shadow, &shadow),
    ];
    behind.servers.switch(table, none, wait).await.unwrap();
    ask(&behind, 0..50).await;
    assert_eq!(shadow.calls(), before);
}

/// A shadow that hangs: the queue fills and drops, a few copies are under way, and no answer is later for it.
#[tokio::test]
async fn a_full_queue_drops_and_delays_nobody() {
    let (_champion, shadow, behind) = pair().await;
    shadow.fail(Fault::HangBeforeHead);
    let begun = Instant::now();
    ask(&behind, 0..200).await;
    let took = begun.elapsed();
    let dropped = copies(&behind, "dropped");
    let kept = 200 - dropped;
    assert!(
        (COPIES_QUEUED..=COPIES_QUEUED + 8).contains(&kept),
        "{kept} kept of 200"
    );
    assert!(shadow.peak() <= 4, "{} at once", shadow.peak());
    assert!(took < Duration::from_secs(8), "200 answers took {took:?}");
    assert_eq!(report(&behind, "bbbb").comparisons, 0);
}

#[tokio::test]
async fn a_shadow_answers_nobody() {
    let (champion, shadow, behind) = pair().await;
    champion.stop().await;
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert!(answered.is_err());
    assert_eq!(shadow.calls(), 0);
    let app = behind.app().await;
    let request = http::Request::post("/v1/systemone")
        .body(axum::body::Body::from("{}"))
        .unwrap();
    let response = tower::ServiceExt::oneshot(app, request).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(shadow.calls(), 0);
    let serving = behind.servers.serving();
    assert_eq!(
        (serving.candidate, serving.champion),
        (None, Some("model-aaaa".to_owned()))
    );
}
