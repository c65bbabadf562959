//! Fault 20: the image of a candidate comes from a registry that fails.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::SiteFault;
use testkit::registry::Registry;

use crate::instance::{Forget, fault_image};
use crate::parts::status::{champion, condition, message};
use crate::world::World;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Seconds until a pull that failed is asked for again.
const AGAIN: u64 = 301;

/// The fault image, in a repository that no other test has, under these tags; the repository.
fn put(registry: &Registry, world: &World, tags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("image.tar");
    let file = archive.to_str().unwrap();
    world.on().told(&["save", "--output", file, &fault_image()]);
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(folder.path());
    assert!(tar.status().unwrap().success());
    let read = |path: &str| std::fs::read(Path::new(folder.path()).join(path)).unwrap();
    let saved: Value = serde_json::from_slice(&read("manifest.json")).unwrap();
    let blob = |path: &Value| {
        let content = read(path.as_str().unwrap());
        let size = content.len();
        (registry.put_blob(content), size)
    };
    let (config, config_size) = blob(&saved[0]["Config"]);
    let layers: Vec<_> = saved[0]["Layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| {
            let (digest, size) = blob(path);
            json!({"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "digest": digest, "size": size})
        })
        .collect();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "layers": layers,
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": config, "size": config_size},
    });
    let repository = format!("laya-{}", world.on().instance.as_str());
    for tag in tags {
        registry.put_manifest(&repository, Some(tag), MANIFEST, manifest.to_string());
    }
    format!("{}/{repository}", registry.address())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_20_each_way_a_pull_fails_is_said_while_the_champion_serves_on() {
    let world = World::new().await;
    let registry = Registry::start();
    let status = |status| SiteFault::Status(status, None);
    // Each has a tag of its own: the same image is asked for again only after minutes.
    let cases = [
        ("401", status(401), "ImagePullUnauthorized"),
        ("404", status(404), "ImageNotFound"),
        ("429", status(429), "ImagePullBusy"),
        ("cut", SiteFault::Reset, "ImagePullInterrupted"),
    ];
    let repository = put(&registry, &world, &cases.each_ref().map(|(tag, ..)| *tag));
    let image = |tag: &str| format!("{repository}:{tag}");
    let _forget = Forget(cases.iter().map(|(tag, ..)| image(tag)).collect());
    let running = world.start();
    let before = world.serving("main", "v1").await;
    world.create_model("v2").await;
    let seen = world.watch("main");
    for (tag, fault, reason) in cases {
        registry.heal();
        registry.fail("manifests", fault);
        let wish = json!({"modelRef": {"name": "v2"}, "image": image(tag)});
        world.edit("main", &wish).await;
        let said = world
            .until("main", reason, |status| {
                condition(status, "RolledOut").is_some_and(|(_, said)| said == reason)
            })
            .await;
        println!("{tag} -> {reason}: {}", message(&said, "RolledOut"));
    }
    seen.assert_untouched(&champion(&before));
    registry.heal();
    world.forward("main", AGAIN).await;
    let after = world.until_serves("main", "v2").await;
    assert!(after.rejected.is_empty());
    running.end().await;
}
