//! Fault 27: slow, malformed, lying and dying answers. Each has its reason, in time, and opens the breaker.

use std::time::{Duration, Instant};

use routing::assessment::Source;
use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};

use crate::{Behind, target, until, within};

/// What a request is given; the model has until 350 ms.
const MILLIS: u64 = 600;

#[tokio::test]
async fn an_answer_is_an_assessment_with_its_grounds() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    let text = format!("Fix the pager. {}", "😀".repeat(1000));
    let answered = behind
        .servers
        .ask(&text, "task", within(5000))
        .await
        .unwrap();
    assert_eq!(answered.assessment.source, Source::Model);
    assert_eq!(answered.assessment.confidences.len(), 18);
    assert!((answered.assessment.confidence - 0.9125).abs() < 1e-9);
    let provenance = answered.provenance;
    assert_eq!((&*provenance.version, &*provenance.server), ("one", "one"));
    assert_eq!(Some(provenance.checkpoint), Says::relay().checkpoint);
    assert!(answered.truncated.request);

    let seen = fake.last().unwrap();
    assert_eq!(seen.line, "POST /v1/systemone HTTP/1.1");
    assert_eq!(
        seen.header("x-laya-contract"),
        Says::relay().contract.as_deref()
    );
    let millis: u64 = seen.header("x-laya-deadline-ms").unwrap().parse().unwrap();
    assert!((4000..=4750).contains(&millis), "{millis}");
    let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    let state = body["state"]["request"].as_str().unwrap();
    assert!(state.starts_with("Fix the pager.") && state.ends_with("😀…"));
    assert!(state.encode_utf16().count() <= 2001);
    assert_eq!(body["questions"].as_object().unwrap().len(), 18);
    assert_eq!(body.as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn every_failure_has_its_reason_within_the_deadline_and_opens_the_breaker() {
    let millis = Duration::from_millis;
    for (fault, reason, opens) in [
        (Fault::Latency(millis(20_000)), Fallback::Timeout, true),
        (Fault::HangBeforeHead, Fallback::Timeout, true),
        (Fault::HangInBody, Fallback::Timeout, true),
        (Fault::Trickle(millis(5)), Fallback::Timeout, true),
        (Fault::HugeBody(64 << 20), Fallback::InvalidAnswers, true),
        (
            Fault::HugeChunkedBody(64 << 20),
            Fallback::InvalidAnswers,
            true,
        ),
        (Fault::EndlessHead, Fallback::Unreachable, true),
        (Fault::MalformedJson, Fallback::InvalidAnswers, true),
        (Fault::NotANumber, Fallback::InvalidAnswers, true),
        (
            Fault::MissingId("risk".to_owned()),
            Fallback::InvalidAnswers,
            true,
        ),
        (Fault::UnknownChoice, Fallback::InvalidAnswers, true),
        (Fault::WrongKind, Fallback::InvalidAnswers, true),
        (Fault::Status(500, None), Fallback::Unreachable, true),
        (Fault::Status(503, None), Fallback::Unreachable, true),
        (Fault::Status(504, None), Fallback::Timeout, true),
        (Fault::Status(422, None), Fallback::InvalidAnswers, true),
        (Fault::Status(307, None), Fallback::InvalidAnswers, true),
        (Fault::Status(503, Some(1)), Fallback::Busy, false),
        (Fault::Status(429, Some(1)), Fallback::Busy, false),
        (Fault::Reset, Fallback::Unreachable, true),
        (Fault::AcceptThenClose, Fallback::Unreachable, true),
    ] {
        let fake = FakeLaya::start(Says::relay()).await;
        let behind = Behind::new(vec![target("one", &fake)], 1).await;
        fake.fail(fault.clone());
        let begun = Instant::now();
        let answered = behind.servers.ask("Fix it", "task", within(MILLIS)).await;
        let took = begun.elapsed();
        assert_eq!(answered.unwrap_err(), reason, "{fault:?}");
        assert!(took < millis(MILLIS), "{fault:?} took {took:?}");
        assert_eq!(behind.is_open("one"), opens, "{fault:?}");
        if opens {
            // An open breaker costs nothing.
            let begun = Instant::now();
            let calls = fake.calls();
            let again = behind.servers.ask("Fix it", "task", within(MILLIS)).await;
            assert_eq!(again.unwrap_err(), Fallback::BreakerOpen, "{fault:?}");
            assert!(begun.elapsed() < millis(50), "{fault:?}");
            assert_eq!(fake.calls(), calls, "{fault:?}");
        }
        until("the call is gone", || fake.in_flight() == 0).await;
    }
}

#[tokio::test]
async fn two_halves_are_a_failure_and_five_in_a_row_open_a_shared_breaker() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 5).await;
    let ask = async || behind.servers.ask("Fix it", "task", within(MILLIS)).await;
    fake.fail(Fault::Status(500, None));
    for _ in 0..4 {
        assert!(ask().await.is_err());
    }
    fake.fail(Fault::None);
    assert!(
        ask().await.is_ok(),
        "one answer in between, and it counts anew"
    );
    fake.fail(Fault::Status(500, None));
    for _ in 0..4 {
        assert!(ask().await.is_err());
    }
    fake.fail(Fault::Status(503, Some(1)));
    assert!(ask().await.is_err());
    assert!(!behind.is_open("one"), "four and a half");
    assert!(ask().await.is_err());
    assert!(behind.is_open("one"), "five");
}

#[tokio::test]
async fn a_dropped_question_frees_its_slot_and_says_nothing_about_the_server() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    fake.fail(Fault::HangBeforeHead);
    let servers = behind.servers.clone();
    let asking = tokio::spawn(async move { servers.ask("Fix it", "task", within(20_000)).await });
    until("it is asked", || fake.in_flight() == 1).await;
    asking.abort();
    until("the server knows", || fake.in_flight() == 0).await;
    fake.fail(Fault::None);
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert!(answered.is_ok() && !behind.is_open("one"));
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_costs_nothing() {
    let fake = FakeLaya::start(Says::relay()).await;
    let address = fake.address();
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    let ask = async || behind.servers.ask("Fix it", "task", within(5000)).await;
    assert!(ask().await.is_ok());
    assert_eq!(fake.connections(), 1, "looks and questions share it");
    fake.stop().await;
    let fake = FakeLaya::start_at(address, Says::relay()).await;
    assert!(ask().await.is_ok(), "restarted between two questions");
    assert_eq!(fake.calls(), 1);
}
