//! Decisions, reports and tenants to store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use routing::decide::{Client, Explain, Moment, NO_MODEL, NothingKnown, decide, prepare};
use routing::outcome::OutcomeReport;
use routing::policy::{Policy, PolicySource};
use routing::record::Decision;
use routing::request::RouteRequest;
use uuid::Uuid;

/// The moment tests begin at.
pub(crate) fn start() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

/// Minutes after [`start`].
pub(crate) fn minute(minutes: i64) -> Timestamp {
    start() + SignedDuration::from_mins(minutes)
}

/// A name no other test uses, so that tests share a database.
pub(crate) fn tenant(name: &str) -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{number}", std::process::id()).into()
}

/// A decision made at a moment.
pub(crate) fn decision_at(text: &str, at: Timestamp) -> Decision {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let today = "2026-11-30".parse().unwrap();
    let policy = Policy::compile("test", "", PolicySource::default(), today).unwrap();
    let request = RouteRequest::new(text);
    let prepared = prepare(&request, &policy, Client::Own, None, at).unwrap();
    let mut seed = [0; 28];
    seed[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let moment = Moment::new(at, seed, &|| 0.0, Explain::No);
    decide(&prepared, NO_MODEL, &NothingKnown, moment)
        .unwrap()
        .decision
}

/// A decision whose checks matter.
pub(crate) fn decision() -> Decision {
    decision_at("Fix the pager", start())
}

/// The same in a conversation.
pub(crate) fn in_conversation(conversation: &str, at: Timestamp) -> Decision {
    Decision {
        conversation_id: Some(conversation.to_owned()),
        ..decision_at("Fix the pager", at)
    }
}

/// A final report of attempt 1; `body` holds more of its JSON.
pub(crate) fn report(decision: Uuid, body: &str) -> OutcomeReport {
    report_of(decision, 1, body)
}

/// A final report of an attempt.
pub(crate) fn report_of(decision: Uuid, attempt: u32, body: &str) -> OutcomeReport {
    let text = format!(r#"{{"decision_id":"{decision}","attempt":{attempt},"final":true,{body}}}"#);
    serde_json::from_str(&text).unwrap()
}

/// Checks passed.
pub(crate) const PASSED: &str = r#""result":"success","tests_passed":true"#;
