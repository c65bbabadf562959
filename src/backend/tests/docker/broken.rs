//! An engine behind a proxy that hangs, goes silent, cuts, and is not there.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use api::group::Kind;
use api::reason::Reason;
use backend::docker::{Docker, Options};
use backend::{Backend, BackendError, Hint, Question};
use futures_util::StreamExt;
use testkit::{Passing, SocketProxy};

use crate::harness::{PATIENCE, Run, ensure, fault_image, host, owner, server};

/// An engine is said to be gone within this.
const SOON: Duration = Duration::from_secs(10);

fn engine_socket() -> PathBuf {
    PathBuf::from(host().strip_prefix("unix://").unwrap())
}

async fn error_of(run: &Run) -> BackendError {
    let main = owner(Kind::LayaServer, "main");
    let looked = run.docker.observe(&main, &Question::default()).await;
    looked.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_16_an_engine_that_accepts_and_never_answers_is_unknown_within_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let proxy = SocketProxy::start(&socket, &engine_socket());
    let run = Run::at(&format!("unix://{}", socket.display()), |options| options).await;
    let main = owner(Kind::LayaServer, "main");
    run.observe(&main).await;
    let mut changes = run.docker.changes();
    for passing in [Passing::Hang, Passing::Silence] {
        proxy.pass(passing);
        let started = Instant::now();
        let error = error_of(&run).await;
        assert!(matches!(error, BackendError::TimedOut { .. }), "{error}");
        assert!(error.is_blind() && error.retryable());
        assert_eq!(error.reason(), Some(Reason::ObservationTimedOut));
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
        proxy.pass(Passing::All);
        run.observe(&main).await;
    }
    // Who only listens is told to look.
    proxy.cut();
    proxy.pass(Passing::Hang);
    let told = tokio::time::timeout(SOON, async {
        while changes.next().await != Some(Hint::Everything) {}
    });
    told.await.unwrap();
    proxy.pass(Passing::All);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_16_a_socket_that_is_missing_or_cut_says_so_and_heals() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let address = format!("unix://{}", socket.display());
    let proxy = SocketProxy::start(&socket, &engine_socket());
    let run = Run::at(&address, |options| options).await;
    drop(proxy);
    let error = error_of(&run).await;
    assert_eq!(error.reason(), Some(Reason::EngineUnavailable), "{error}");
    assert!(error.to_string().contains(&address), "{error}");

    // A file that nobody listens at.
    std::fs::write(&socket, "").unwrap();
    let error = error_of(&run).await;
    assert_eq!(error.reason(), Some(Reason::EngineUnavailable), "{error}");
    std::fs::remove_file(&socket).unwrap();

    let proxy = SocketProxy::start(&socket, &engine_socket());
    let main = owner(Kind::LayaServer, "main");
    run.observe(&main).await;
    proxy.cut();
    run.observe(&main).await;
    let nobody = Options {
        host: Some("unix:///nowhere/docker.sock".to_owned()),
        ..Options::new(run.instance.clone())
    };
    let refused = Docker::connect(nobody).await.unwrap_err();
    assert_eq!(
        refused.reason(),
        Some(Reason::EngineUnavailable),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_17_after_a_gap_in_the_events_everything_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let proxy = SocketProxy::start(&socket, &engine_socket());
    let run = Run::at(&format!("unix://{}", socket.display()), |options| options).await;
    let main = owner(Kind::LayaServer, "main");
    let direct = Run::again(&host(), &run.instance, |options| options).await;
    direct.with_models(&main).await;
    let mut changes = run.docker.changes();
    proxy.cut();
    // Made in the gap.
    direct
        .done(&main, ensure(&server(&fault_image(), "64Mi"), &[0]))
        .await;
    let told = tokio::time::timeout(PATIENCE, async {
        while changes.next().await != Some(Hint::Everything) {}
    });
    told.await.unwrap();
    assert_eq!(run.observe(&main).await.servers.len(), 1);
    // And the stream is there again: a change is told by its owner.
    let spec = server(&fault_image(), "64Mi");
    let told = tokio::time::timeout(PATIENCE, async {
        loop {
            direct.done(&main, ensure(&spec, &[1])).await;
            let hint = tokio::time::timeout(Duration::from_secs(2), changes.next()).await;
            if hint == Ok(Some(Hint::Owner(main.clone()))) {
                return;
            }
            direct.told(&["rm", "--force", &direct.name(&main, &spec, 1)]);
        }
    });
    told.await.unwrap();
}
