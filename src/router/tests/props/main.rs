//! Any bytes as a body: an answer with a documented status, never a panic.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

use std::sync::{Arc, LazyLock};

use api::problem::Problem;
use axum::Router;
use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use jiff::civil::date;
use proptest::collection::vec;
use proptest::prelude::*;
use router::ActivePolicy;
use tower::ServiceExt;

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let policy = Arc::new(ActivePolicy::built_in(date(2026, 11, 30)).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let router = runtime.block_on(support::TestRouter::start(&policy));
    let app = router.app.clone();
    // Its store's folder and threads live as long as the test.
    std::mem::forget((router, runtime));
    app
});

/// A request that uses every field.
const FULL: &str = r#"{"request":"Fix the login token expiry","kind":"user","profile":"economy","conversation_id":"c",
"previous_decision_id":"0193d2b1-7c00-7000-8000-000000000000","providers":["anthropic"],"models":[{"ref":"anthropic/b","tier":"strong",
"efforts":["low"]}],"quota":{"anthropic":0.5},"settings":{"min_confidence":0.4,"exploration":0},"constraints":{"tier":"strong",
"exclude":["a/b"],"capabilities":["tools"]},"context":{"tokens":10,"cached_tokens":5},"tools":["bash"],
"skills":[{"name":"n","description":"d"}],"dry_run":true}"#;

/// Status and body of an answer.
fn answer(query: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let app = ROUTER.clone();
    runtime.block_on(async {
        let request = Request::post(format!("/v1/route{query}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_vec()))
            .unwrap();
        let response = app.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        (
            status,
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .to_vec(),
        )
    })
}

/// A decision, or a problem that says the same status.
fn check(query: &str, body: &[u8]) -> Result<u16, TestCaseError> {
    let (status, answered) = answer(query, body);
    prop_assert!(
        [200, 400, 422].contains(&status),
        "{status}: {}",
        String::from_utf8_lossy(&answered)
    );
    if status != 200 {
        let problem: Problem = serde_json::from_slice(&answered).unwrap();
        prop_assert_eq!(problem.status, status);
        prop_assert!(
            answered.len() < 100_000,
            "an answer of {} bytes",
            answered.len()
        );
    }
    Ok(status)
}

#[test]
fn the_full_request_is_a_request() {
    assert_eq!(
        answer("", FULL.as_bytes()).0,
        200,
        "{}",
        String::from_utf8_lossy(&answer("", FULL.as_bytes()).1)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_answered(body in vec(any::<u8>(), 0..400)) {
        check("", &body)?;
    }

    #[test]
    fn any_text_is_decided_or_refused(text in any::<String>()) {
        let body = serde_json::json!({ "request": text }).to_string();
        let status = check("", body.as_bytes())?;
        prop_assert_eq!(status == 200, !text.trim().is_empty());
    }

    #[test]
    fn a_request_with_damage_is_answered(at in 0..FULL.len(), len in 0..20_usize, put in vec(any::<u8>(), 0..20)) {
        let mut body = FULL.as_bytes().to_vec();
        let end = (at + len).min(body.len());
        body.splice(at..end, put);
        check("", &body)?;
    }

    #[test]
    fn a_request_with_another_value_in_one_place_is_answered(
        at in 0..13_usize,
        value in prop::sample::select(vec!["null", "-1", "1e308", "true", "\"\"", "[]", "{}", "[[]]", "[null]", "{\"a\":1}"]),
    ) {
        let mut tree: serde_json::Value = serde_json::from_str(FULL).unwrap();
        let object = tree.as_object_mut().unwrap();
        let key = object.keys().nth(at % object.len()).unwrap().clone();
        object.insert(key, serde_json::from_str(value).unwrap());
        check("", tree.to_string().as_bytes())?;
    }

    #[test]
    fn any_query_is_answered(query in "[a-zA-Z0-9=&%+._~!$'()*,;:@/?-]{0,30}") {
        check(&format!("?{query}"), FULL.as_bytes())?;
    }
}
