//! Faults 7, 12 and 13: objects are deleted while their containers are made, while no controller runs, and made again under
//! the same name. Nobody adopts what is of another uid, and it goes.

use kube::api::DeleteParams;
use serde_json::json;
use testkit::SocketProxy;

use crate::instance::host;
use crate::parts::objects::until;
use crate::parts::status::{champion, is_reason};
use crate::world::{Contained, World};

/// A world whose connection to the engine can be cut, after which everything is looked at.
struct Cut {
    world: World,
    proxy: SocketProxy,
    _folder: tempfile::TempDir,
}

impl Cut {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let engine = host();
        let engine = engine.strip_prefix("unix://").unwrap();
        let proxy = SocketProxy::start(&socket, engine.as_ref());
        Self {
            world: World::at(&format!("unix://{}", socket.display())).await,
            proxy,
            _folder: folder,
        }
    }

    async fn delete(&self, name: &str) {
        let by = DeleteParams::default();
        self.world.servers().delete(name, &by).await.unwrap();
    }

    /// Waits until the containers of this uid have gone, a minute from look to look.
    async fn until_swept(&self, name: &str, uid: &str) {
        let is_of = |it: &Contained| it.uid == uid;
        for _ in 0..10 {
            if !self.world.containers(name).iter().any(is_of) {
                return;
            }
            self.world.clock.forward(61);
            self.proxy.cut();
            let looks = tokio::time::Duration::from_secs(3);
            tokio::time::sleep(looks).await;
        }
        panic!("not swept: {:#?}", self.world.containers(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_13_the_same_name_again_adopts_nothing_and_the_old_ones_go() {
    let cut = Cut::new().await;
    let world = &cut.world;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let old = world.container("main", &champion(&before));
    cut.delete("main").await;
    world.create_server("main", "v1", &json!({})).await;
    let after = world.until_serves("main", "v1").await;
    assert_ne!(champion(&after), champion(&before));
    let new = world.container("main", &champion(&after));
    assert_ne!((&new.id, &new.name), (&old.id, &old.name));
    assert_ne!(new.uid, old.uid);
    cut.until_swept("main", &old.uid).await;
    assert_eq!(world.containers("main"), [new]);
    world.until_serves("main", "v1").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_12_deleted_in_its_first_rollout_everything_goes_and_nothing_is_made_again() {
    let mut cut = Cut::new().await;
    let stuck = cut.world.faulty("never-ready");
    let world = &cut.world;
    let running = world.start();
    world.create_model("v1").await;
    let made = world
        .create_server("main", "v1", &json!({"image": stuck}))
        .await;
    world
        .until("main", "its first version loads", is_reason("Loading"))
        .await;
    cut.delete("main").await;
    cut.until_swept("main", &made.metadata.uid.unwrap()).await;
    until("its documents go with it", || async {
        let stored = world.stored("main").await;
        if stored.is_empty() {
            Ok(())
        } else {
            Err(stored)
        }
    })
    .await;
    // Another look, and still nothing.
    cut.proxy.cut();
    let looks = tokio::time::Duration::from_secs(3);
    tokio::time::sleep(looks).await;
    assert_eq!(world.containers("main"), []);
    world.on().assert_nothing_runs();
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_07_deleted_while_no_controller_runs_its_containers_are_swept() {
    let cut = Cut::new().await;
    let world = &cut.world;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let container = world.container("main", &champion(&before));
    running.end().await;
    cut.delete("main").await;
    let running = world.start();
    until("it was looked at once", || async {
        let passes = running
            .metrics
            .passes("LayaModel", controller::metrics::PassResult::Unchanged);
        if passes > 0 { Ok(()) } else { Err(passes) }
    })
    .await;
    assert_eq!(
        world.containers("main"),
        std::slice::from_ref(&container),
        "one look is not enough"
    );
    cut.until_swept("main", &container.uid).await;
    let note = world.until_told("main", "OrphanRemoved").await;
    assert!(note.contains(&container.revision), "{note}");
    world.on().assert_nothing_runs();
    running.end().await;
}
