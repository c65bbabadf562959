//! The engine itself restarts or is killed.

use std::time::Instant;

use api::group::Kind;
use api::reason::Reason;
use backend::{Action, Backend, Question, RunState};

use crate::engine::Engine;
use crate::harness::{PATIENCE, Run, answers, ensure, fault_image, owner, server, task};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_16_18_after_an_engine_restart_everything_is_adopted_and_nothing_made_twice() {
    let engine = Engine::start();
    let run = Run::at(&engine.host(), |options| options).await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let before = run.server(&main, 0, |server| server.url.is_some()).await;
    let long = task(1, &["--sleep", "600000"]);
    run.done(&main, Action::RunTask(Box::new(long.clone())))
        .await;
    let running = run
        .task(&main, &long.key, |task| task.state == RunState::Running)
        .await;
    assert_eq!(running.exit_code, None);
    engine.down();
    let error = run
        .docker
        .observe(&main, &Question::default())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::EngineUnavailable), "{error}");
    engine.up();
    let after = run.server(&main, 0, |server| server.url.is_some()).await;
    assert_eq!(after.hash_matches, Some(true));
    assert_eq!(
        (after.revision, after.ordinal),
        (before.revision, before.ordinal)
    );
    answers(&after.url.unwrap(), "/ready").await;
    run.done(&main, ensure(&spec, &[0])).await;
    assert_eq!(
        run.observe(&main).await.servers.len(),
        1,
        "no second container"
    );
    let ended = run
        .task(&main, &long.key, |task| task.state == RunState::Exited)
        .await;
    assert!(ended.exit_code.is_some_and(|code| code != 0), "{ended:?}");

    // One that is running when the engine and all who watch are killed ends nobody knows how.
    let second = task(2, &["--sleep", "600000"]);
    run.done(&main, Action::RunTask(Box::new(second.clone())))
        .await;
    run.task(&main, &second.key, |task| task.state == RunState::Running)
        .await;
    engine.kill();
    let started = Instant::now();
    engine.up();
    let lost = run
        .task(&main, &second.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(lost.exit_code, Some(255), "{lost:?}");
    assert!(started.elapsed() < PATIENCE);
    for action in [
        Action::DeleteTask { task: long.key },
        Action::DeleteTask { task: second.key },
    ] {
        run.done(&main, action).await;
    }
    drop(run);
    drop(engine);
}
