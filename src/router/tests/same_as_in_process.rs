//! The router and `relay route` in process decide alike: every labelled request goes through both.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use api::{Decision, RouteRequest};
use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use router::ActivePolicy;
use routing::decide::{Client, Explain, Moment, NO_MODEL, NothingKnown, decide, prepare};
use serde_json::Value;
use tower::ServiceExt;

async fn by_router(app: &axum::Router, request: &RouteRequest) -> Decision {
    let body = serde_json::to_vec(request).unwrap();
    let post = Request::post("/v1/route")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body));
    let response = app.clone().oneshot(post.unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

fn in_process(policy: &ActivePolicy, request: &RouteRequest) -> Decision {
    let now = Timestamp::now();
    let prepared = prepare(request, &policy.policy, Client::Own, None, now).unwrap();
    let moment = Moment::new(now, [7; 28], &|| 0.0, Explain::No);
    decide(&prepared, NO_MODEL, &NothingKnown, moment)
        .unwrap()
        .decision
}

/// What two decisions of one request cannot share.
fn comparable(mut decision: Decision) -> Decision {
    decision.id = uuid::Uuid::nil();
    decision.task_id = uuid::Uuid::nil();
    decision.created = Timestamp::UNIX_EPOCH;
    decision.provenance.timings_ms = routing::record::Timings::default();
    decision
}

#[tokio::test]
async fn every_labelled_request_is_decided_alike() {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let policy = Arc::new(ActivePolicy::built_in(today).unwrap());
    let router = support::TestRouter::start(&policy).await;
    let app = router.app.clone();
    let text = include_str!("../../../tests/data/requests.jsonl");
    let mut compared = 0;
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row["request"].as_str().unwrap();
        for profile in [None, Some("economy"), Some("critical")] {
            let profile = profile.map(str::to_owned);
            let request = RouteRequest {
                profile,
                dry_run: true,
                ..RouteRequest::new(text)
            };
            let (router, process) = (
                by_router(&app, &request).await,
                in_process(&policy, &request),
            );
            assert_eq!(comparable(router), comparable(process), "{text}");
            compared += 1;
        }
    }
    assert!(compared >= 1200, "{compared} requests are not all of them");
}
