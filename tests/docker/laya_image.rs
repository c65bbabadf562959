//! `images/laya`: serves a verified checkpoint on a read-only root, refuses another, stops cleanly.

use serde_json::json;

use crate::engine::{Container, checkpoint, image, told};

const QUESTION: &str = r#"{"state": "The page is white after login.", "questions": {
    "kind": {"type": "choice", "instructions": "Which kind?", "criteria": {"bug": "a fault", "wish": "a wish"}}}}"#;

#[test]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
fn answers_on_a_read_only_root_and_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let (path, digest) = checkpoint(folder.path());
    let container = Container::start(&path, &["--expect-digest", &digest, "--verify", "full"]);
    container.wait_ready();
    let (status, answer) = container.ask("/v1/systemone", Some(QUESTION)).unwrap();
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["model"], "laya-rl-agent");
    let choice = answer["answers"]["kind"]["choice"].as_str().unwrap();
    assert!(["bug", "wish"].contains(&choice), "{answer}");
    assert_eq!(
        container.exec(&["/laya", "probe", "--ready"]),
        0,
        "the image's own health command"
    );
    container.stop();
    assert_eq!(container.exit_code(), 0, "{}", container.logs());
}

#[test]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
fn refuses_a_checkpoint_with_another_digest() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = checkpoint(folder.path());
    let other = format!("sha256:{}", "0".repeat(64));
    let container = Container::start(&path, &["--expect-digest", &other]);
    assert_eq!(container.exit_code(), 3, "{}", container.logs());
    assert!(container.logs().contains(&other), "{}", container.logs());
}

#[test]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
fn the_image_is_small_and_says_what_it_is() {
    let image = image();
    let inspected: serde_json::Value =
        serde_json::from_str(&told(&["image", "inspect", &image])).unwrap();
    let size = inspected[0]["Size"].as_u64().unwrap();
    assert!(size <= 25 << 20, "{size} bytes");
    let config = &inspected[0]["Config"];
    assert_eq!(config["User"], "10001:10001");
    assert_eq!(config["Entrypoint"], json!(["/laya"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.title"], "laya");
    assert!(
        config["Healthcheck"]["Test"]
            .as_array()
            .unwrap()
            .contains(&json!("probe"))
    );
}
