//! Faults 16 and 17: the engine hangs, is not there, or tells nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::kinds::ConditionStatus;
use controller::faults::FaultPoints;
use serde_json::json;
use testkit::{Passing, SocketProxy};

use crate::backs::Watched;
use crate::instance::host;
use crate::parts::objects::{until, until_within};
use crate::parts::status::{champion, condition, serves, told};
use crate::world::World;

/// An engine that is gone is said to be within this.
const SOON: Duration = Duration::from_secs(10);
/// A full look comes each minute; what it finds is put right.
const FULL: Duration = Duration::from_secs(70);

fn proxy(socket: &Path) -> SocketProxy {
    let engine = host();
    SocketProxy::start(socket, engine.strip_prefix("unix://").unwrap().as_ref())
}

/// `Ready` becomes unknown for this reason in time, and nothing else changes; then the engine is back, and everything is
/// adopted as it is.
async fn is_unknown_and_back(world: &World, reason: &str, back: impl FnOnce()) {
    let before = world.until_serves("main", "v1").await;
    let containers = world.containers("main");
    let began = Instant::now();
    let blind = world
        .until("main", "it is not known", |status| {
            condition(status, "Ready") == Some((ConditionStatus::Unknown, reason.to_owned()))
        })
        .await;
    let took = began.elapsed();
    println!("{reason} after {took:?}");
    assert!(took < SOON, "{took:?}");
    let reachable = condition(&blind, "BackendReachable");
    assert_eq!(reachable, Some((ConditionStatus::False, reason.to_owned())));
    assert_eq!(blind.traffic, before.traffic);
    assert_eq!(blind.champion, before.champion);
    back();
    let after = world.until_serves("main", "v1").await;
    assert_eq!(after.traffic, before.traffic, "adopted as it is");
    assert_eq!(
        world.containers("main"),
        containers,
        "nothing is made twice"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_16_without_the_engine_ready_is_unknown_within_ten_seconds_and_traffic_stays() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let first = proxy(&socket);
    let world = World::at(&format!("unix://{}", socket.display())).await;
    let running = world.start();
    world.serving("main", "v1").await;
    first.pass(Passing::Hang);
    is_unknown_and_back(&world, "ObservationTimedOut", || first.pass(Passing::All)).await;
    // Nobody listens there any more, and open connections are closed.
    first.cut();
    drop(first);
    let mut second = None;
    is_unknown_and_back(&world, "EngineUnavailable", || {
        second = Some(proxy(&socket))
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_17_what_no_event_told_of_is_found_by_the_full_look() {
    let world = World::new().await;
    let backend = Arc::new(Watched::deaf(world.back_end()));
    let running = world.start_over(backend, FaultPoints::none());
    // No probe question looks before that.
    let before = world
        .serving_with("main", "v1", &json!({"probe": {"intervalSeconds": 3600}}))
        .await;
    let old = world.container("main", &champion(&before));
    until("it is at rest", || async {
        let first = world.status("main").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        if world.status("main").await == first {
            Ok(())
        } else {
            Err(told(&first))
        }
    })
    .await;
    // It answers as before, so nobody who asks it finds out.
    let more = ["update", "--memory", "96m", "--memory-swap", "96m"];
    world.on().told(&[&more[..], &[&old.id]].concat());
    let began = Instant::now();
    until_within(FULL, "another serves in its place", || async {
        let status = world.status("main").await;
        if serves(&status, "v1") && status.traffic != before.traffic {
            Ok(())
        } else {
            Err(told(&status))
        }
    })
    .await;
    println!("found after {:?}", began.elapsed());
    world
        .until_containers("main", "it is gone", |containers| {
            containers.len() == 1 && containers[0].id != old.id
        })
        .await;
    let note = world.until_told("main", "Repaired").await;
    assert!(note.contains("memory"), "{note}");
    running.end().await;
}
