use std::time::Duration;

use prometheus::Registry;
use tokio::sync::mpsc;

use super::*;
use crate::telemetry::{BuildInfo, ProcessMetrics};

fn process() -> (RuntimeBuilder, mpsc::Sender<Signal>) {
    let (send, signals) = mpsc::channel(2);
    let build = BuildInfo {
        component: "test",
        version: "0.0.0",
        commit: "none",
    };
    let metrics = ProcessMetrics::register(Registry::new(), build).unwrap();
    (
        RuntimeBuilder::new(metrics, Signals::from_channel(signals)),
        send,
    )
}

#[tokio::test(start_paused = true)]
async fn the_first_signal_drains_and_is_a_success() {
    let (builder, signals) = process();
    let mut runtime = builder.start();
    let (shutdown, readiness) = (runtime.shutdown(), runtime.readiness());
    let seen = readiness.clone();
    runtime.spawn("worker", async move {
        shutdown.draining().await;
        assert!(!seen.report().ready, "not ready comes before the drain");
        tokio::time::sleep(Duration::from_secs(3)).await;
    });
    let run = tokio::spawn(runtime.run());
    tokio::task::yield_now().await;
    assert!(readiness.report().ready);
    signals.send(Signal::Terminate).await.unwrap();
    assert_eq!(run.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_deadline_and_names_what_is_open() {
    let (builder, signals) = process();
    let mut runtime = builder.drain_deadline(Duration::from_secs(7)).start();
    runtime.spawn("stuck", std::future::pending());
    signals.send(Signal::Terminate).await.unwrap();
    let start = tokio::time::Instant::now();
    let error = runtime.run().await.unwrap_err();
    assert_eq!(
        error,
        RuntimeError::DrainTimedOut {
            tasks: vec!["stuck".to_owned()],
            seconds: 7
        }
    );
    assert_eq!(
        (start.elapsed(), error.exit_code()),
        (Duration::from_secs(7), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_second_signal_stops_at_once_with_its_own_code() {
    let (builder, signals) = process();
    let mut runtime = builder.start();
    runtime.spawn("stuck", std::future::pending());
    signals.send(Signal::Terminate).await.unwrap();
    signals.send(Signal::Interrupt).await.unwrap();
    let start = tokio::time::Instant::now();
    let error = runtime.run().await.unwrap_err();
    assert_eq!((error.exit_code(), start.elapsed()), (130, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_early_ends_the_process_with_its_name() {
    let (builder, _signals) = process();
    let mut runtime = builder.start();
    runtime.spawn("other", std::future::pending());
    runtime.spawn("tokens", async {
        tokio::time::sleep(Duration::from_secs(1)).await
    });
    let error = runtime.run().await.unwrap_err();
    assert_eq!(error.to_string(), "task `tokens` ended early");
    assert_eq!(error.exit_code(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_ends_the_process_and_is_counted() {
    let (builder, _signals) = process();
    let panics = builder.metrics.task_panics.clone();
    let mut runtime = builder.start();
    runtime.spawn("broken", async { panic!("on purpose") });
    assert_eq!(
        runtime.run().await.unwrap_err().to_string(),
        "task `broken` panicked"
    );
    assert_eq!(panics.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lingering_process_accepts_while_not_ready() {
    let (builder, signals) = process();
    let mut runtime = builder.linger(Duration::from_secs(5)).start();
    let (shutdown, readiness) = (runtime.shutdown(), runtime.readiness());
    runtime.spawn("worker", async move { shutdown.draining().await });
    let shutdown = runtime.shutdown();
    signals.send(Signal::Terminate).await.unwrap();
    let run = tokio::spawn(runtime.run());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(
        (shutdown.phase(), readiness.report().ready),
        (Phase::Running, false)
    );
    assert_eq!(run.await.unwrap(), Ok(()));
}
