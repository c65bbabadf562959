//! A real API server that is killed under a running controller and a router, and comes back.

use std::path::{Path, PathBuf};
use std::process::Command;

use controller::client::{Deadlines, guarded};
use controller::faults::FaultPoints;
use controller::metrics::WatchRestart;

use crate::follow::Router;
use crate::sources;
use crate::world::{World, good, revision, until};

/// An API server of this test's own; stopped and removed with it.
struct Server {
    folder: PathBuf,
    _below: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let below = tempfile::tempdir().unwrap();
        let server = Self {
            folder: below.path().join("server"),
            _below: below,
        };
        server.again();
        server
    }

    /// Starts what does not run, as it was.
    fn again(&self) {
        let owner = std::process::id().to_string();
        self.tell(&["start"], &[&owner]);
    }

    fn tell(&self, before: &[&str], after: &[&str]) {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/kubernetes.sh");
        let mut command = Command::new(script);
        command.args(before).arg(&self.folder).args(after);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {told}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/kubernetes.sh");
        let _ = Command::new(script).arg("stop").arg(&self.folder).output();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a kube-apiserver"]
async fn fault_01_an_api_server_that_is_killed_changes_nothing_and_all_converge_when_it_is_back() {
    let server = Server::start();
    let client = sources::client(&server.folder.join("kubeconfig"), "admin").await;
    sources::with_crds(&client).await;
    let world = sources::with_namespace(World::new(client.clone(), ())).await;
    let running = world.start_with(client.clone(), FaultPoints::none(), Deadlines::default());
    let reader = guarded(client, Deadlines::default(), running.metrics.clone());
    let mut router = Router::follow(reader, &world);
    world.create("team", &good(1)).await;
    let before = world.until_in_force("team").await;
    let first = router.has(1_001).await;
    // An edit is taken, and the server dies before anybody can have acted on it.
    world.edit("team", &good(2)).await;
    server.tell(&["kill"], &["api"]);
    let metrics = running.metrics.clone();
    until("watches are cut", || async {
        let cut = metrics.watch_restarts("RoutingPolicy", WatchRestart::Error);
        if cut >= 1 { Ok(()) } else { Err(cut) }
    })
    .await;
    let away = router
        .until("the router says what it waits for", |following| {
            following.waits_for.is_some()
        })
        .await;
    let has = away.policy.expect("the last one stays");
    assert!(has == first || has.spec.deadlines.timeout_millis == 1_002);
    server.again();
    router.has(1_002).await;
    let after = world.until_in_force("team").await;
    assert_ne!(revision(&after), revision(&before));
    let documents = world.stored("team").await;
    assert_eq!(documents.len(), 2, "nothing was made twice: {documents:?}");
    world.edit("team", &good(3)).await;
    router.has(1_003).await;
    assert_eq!(metrics.process.task_panics.get(), 0);
    router.end().await;
    running.end().await;
}
