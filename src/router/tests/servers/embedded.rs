//! The model inside the process: the same path and the same bytes as over HTTP, and no checkpoint is no end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::responses::ServingState;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use router::servers::{Embedded, EmbeddedOptions};
use routing::assessment::Source;
use routing::reason::Fallback;
use service::runtime::ShutdownTrigger;
use tower::ServiceExt;

use crate::{Behind, within};

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tiny-laya")
}

fn embedded(folder: &Path) -> (Arc<Embedded>, ShutdownTrigger) {
    let options = EmbeddedOptions { threads: Some(1) };
    let embedded = Arc::new(Embedded::new(folder, options).unwrap());
    let (trigger, shutdown) = ShutdownTrigger::new();
    let running = embedded.clone();
    tokio::spawn(async move { running.run(&shutdown).await });
    (embedded, trigger)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_answers_and_passes_through() {
    let (embedded, _running) = embedded(&tiny());
    let behind = Behind::new(vec![embedded.target("embedded")], 1).await;
    assert_eq!(embedded.problem(), None);
    let answered = behind
        .servers
        .ask("Fix the pager", "task", within(60_000))
        .await
        .unwrap();
    assert_eq!(answered.assessment.source, Source::Model);
    assert_eq!(answered.provenance.server, "embedded");
    assert!(answered.provenance.checkpoint.starts_with("sha256:"));

    let body = r#"{"state":"It is broken","questions":{"urgent":{"type":"noul","instructions":"Is it urgent?"}}}"#;
    let request = Request::post("/v1/systemone")
        .body(Body::from(body))
        .unwrap();
    let response = behind.app().await.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("x-inference-time-ms"));
    assert_eq!(response.headers()["x-relay-model-version"], "embedded");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["answers"]["urgent"]["type"], "noul");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_cannot_be_loaded_leaves_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("model.safetensors"), "no weights").unwrap();
    for path in [broken, folder.path().join("none")] {
        let (embedded, _running) = embedded(&path);
        let behind = Behind::unready(vec![embedded.target("embedded")], 1);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
        assert_eq!(
            answered.unwrap_err(),
            Fallback::NoModel,
            "{}",
            path.display()
        );
        assert!(embedded.problem().is_some(), "{}", path.display());
        assert_eq!(behind.state(), ServingState::RulesOnly);
    }
}
