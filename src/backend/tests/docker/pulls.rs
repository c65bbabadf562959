//! Pulls from a registry on loopback that fails on demand.

use std::sync::Arc;
use std::time::Duration;

use api::group::Kind;
use api::reason::Reason;
use backend::docker::RegistryCredentials;
use backend::{Action, ImageState};
use serde_json::json;
use testkit::SiteFault;
use testkit::registry::Registry;

use crate::harness::{Run, docker_at, host, owner};
use crate::instance::Forget;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// An engine tries a layer five times again, with growing pauses, where it is not told otherwise.
const PULL_PATIENCE: Duration = Duration::from_secs(150);

/// An empty image for an architecture, under a repository that no other test has; as it is named.
fn put(registry: &Registry, run: &Run, architecture: &str) -> (String, String) {
    // An empty tar, with something in it that makes the layer another one for each test.
    let mut layer = vec![0_u8; 64 << 10];
    let name = format!("from-{}", run.instance.as_str());
    layer[..name.len()].copy_from_slice(name.as_bytes());
    layer[100..108].copy_from_slice(b"0000644\0");
    layer[108..116].copy_from_slice(b"0000000\0");
    layer[116..124].copy_from_slice(b"0000000\0");
    layer[124..136].copy_from_slice(b"00000000000\0");
    layer[136..148].copy_from_slice(b"00000000000\0");
    layer[148..156].copy_from_slice(b"        ");
    layer[156] = b'0';
    layer[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = layer[..512].iter().map(|byte| u32::from(*byte)).sum();
    layer[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let size = layer.len();
    let layer = registry.put_blob(layer);
    let config = json!({
        "architecture": architecture, "os": "linux", "config": {"Labels": {"test": run.instance.as_str()}},
        "rootfs": {"type": "layers", "diff_ids": [layer]}, "history": [{"created_by": "test"}],
    })
    .to_string();
    let config_size = config.len();
    let config = registry.put_blob(config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": config, "size": config_size},
        "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "digest": layer, "size": size}],
    });
    let repository = format!("laya-{}", run.instance.as_str());
    let digest = registry.put_manifest(&repository, Some("1"), MANIFEST, manifest.to_string());
    let name = format!("{}/{repository}", registry.address());
    (format!("{name}:1"), format!("{name}@{digest}"))
}

/// Asks for an image until its pull ended, and gives how.
async fn pulled(run: &Run, image: &str) -> ImageState {
    pulled_with(run, image, &[]).await
}

async fn pulled_with(run: &Run, image: &str, secrets: &[String]) -> ImageState {
    let main = owner(Kind::LayaServer, "main");
    let ensure = Action::EnsureImage {
        image: image.to_owned(),
        pull_secrets: secrets.to_vec(),
    };
    run.done(&main, ensure).await;
    let started = std::time::Instant::now();
    loop {
        let state = run.image(&main, image).await;
        if !matches!(state, ImageState::Pulling { .. } | ImageState::Absent) {
            return state;
        }
        assert!(started.elapsed() < PULL_PATIENCE, "{state:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn reason(state: &ImageState) -> Option<Reason> {
    match state {
        ImageState::Failed { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn an_image_is_pulled_by_tag_and_by_digest_and_known_by_its_id() {
    let run = Run::new().await;
    let registry = Registry::start();
    let (tag, digest) = put(&registry, &run, "amd64");
    let _forget = Forget(vec![tag.clone(), digest.clone()]);
    let main = owner(Kind::LayaServer, "main");
    assert_eq!(run.image(&main, &digest).await, ImageState::Absent);
    let ImageState::Present { id } = pulled(&run, &digest).await else {
        panic!("{:?}", run.image(&main, &digest).await);
    };
    assert_eq!(
        pulled(&run, &tag).await,
        ImageState::Present { id: id.clone() }
    );
    assert_eq!(run.image(&main, &id).await, ImageState::Present { id });
    let unknown = format!("sha256:{}", "0".repeat(64));
    let ensure = Action::EnsureImage {
        image: unknown,
        pull_secrets: Vec::new(),
    };
    let refused = run.act(&main, ensure).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::ImageNotFound), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_20_each_way_a_pull_fails_has_its_reason_and_the_next_one_succeeds() {
    let run = Run::new().await;
    let registry = Registry::start();
    let (tag, _) = put(&registry, &run, "amd64");
    let _forget = Forget(vec![tag.clone()]);
    let status = |status| SiteFault::Status(status, None);
    let cases = [
        ("manifests", status(401), Reason::ImagePullUnauthorized),
        ("manifests", status(404), Reason::ImageNotFound),
        ("manifests", status(429), Reason::ImagePullBusy),
        ("manifests", status(503), Reason::ImagePullBusy),
        // Both come inside an answer that began with 200.
        ("blobs", status(404), Reason::ImageNotFound),
        (
            "blobs",
            SiteFault::CutAfter(20),
            Reason::ImagePullInterrupted,
        ),
        ("manifests", SiteFault::Reset, Reason::ImagePullInterrupted),
    ];
    for (part, fault, expected) in cases {
        registry.fail(part, fault.clone());
        let state = pulled(&run, &tag).await;
        assert_eq!(
            reason(&state),
            Some(expected),
            "{part} {fault:?}: {state:?}"
        );
        registry.heal();
    }
    let state = pulled(&run, &tag).await;
    assert!(matches!(state, ImageState::Present { .. }), "{state:?}");

    let absent = tag.replace(":1", ":2");
    let state = pulled(&run, &absent).await;
    assert_eq!(reason(&state), Some(Reason::ImageNotFound), "{state:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_20_an_image_for_another_platform_is_refused() {
    let run = Run::new().await;
    let registry = Registry::start();
    let (tag, _) = put(&registry, &run, "s390x");
    let _forget = Forget(vec![tag.clone()]);
    let state = pulled(&run, &tag).await;
    assert_eq!(
        reason(&state),
        Some(Reason::ImagePlatformMismatch),
        "{state:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_20_nobody_listens_at_the_registry() {
    let run = Run::new().await;
    let registry = Registry::start();
    let (tag, _) = put(&registry, &run, "amd64");
    drop(registry);
    let state = pulled(&run, &tag).await;
    assert_eq!(
        reason(&state),
        Some(Reason::ImagePullInterrupted),
        "{state:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn credentials_come_from_options_and_from_secrets() {
    let registry = Registry::start();
    registry.demand("me", "open sesame");
    let address = registry.address().to_string();
    let anonymous = Run::new().await;
    let (tag, _) = put(&registry, &anonymous, "amd64");
    let _forget = Forget(vec![tag.clone()]);
    let state = pulled(&anonymous, &tag).await;
    assert_eq!(
        reason(&state),
        Some(Reason::ImagePullUnauthorized),
        "{state:?}"
    );

    let file =
        json!({"auths": {&address: {"username": "me", "password": "open sesame"}}}).to_string();
    let by_secret = Run::at(&host(), |options| backend::docker::Options {
        secrets: Arc::new(move |_, reference| match reference.name.as_str() {
            "registry" if reference.key == ".dockerconfigjson" => Ok(file.clone().into_bytes()),
            _ => Err("no such file".to_owned()),
        }),
        ..options
    })
    .await;
    let state = pulled_with(&by_secret, &tag, &["registry".to_owned()]).await;
    assert!(matches!(state, ImageState::Present { .. }), "{state:?}");
    docker_at(&host(), &["rmi", "--force", &tag]);

    let main = owner(Kind::LayaServer, "main");
    let ensure = Action::EnsureImage {
        image: tag.clone(),
        pull_secrets: vec!["absent".to_owned()],
    };
    let refused = by_secret.act(&main, ensure).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::SecretMissing), "{refused}");

    let by_option = Run::at(&host(), |options| backend::docker::Options {
        credentials: vec![RegistryCredentials {
            registry: address,
            username: "me".to_owned(),
            password: "open sesame".to_owned(),
        }],
        ..options
    })
    .await;
    let state = pulled(&by_option, &tag).await;
    assert!(matches!(state, ImageState::Present { .. }), "{state:?}");
}
