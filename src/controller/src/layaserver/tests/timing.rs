//! Times of control-plane 3, 7.2 and 10: what holds for how long.

use std::time::Duration;

use api::reason::Reason;
use backend::ImageState;
use serde_json::json;

use super::sim::{Behaviour, Kill, World};
use crate::reconciler::Requeue;

/// Seconds from now until something holds.
fn takes(world: &mut World, what: &str, holds: impl Fn(&World) -> bool) -> u64 {
    let from = world.boot;
    world.until(what, holds);
    (world.boot - from).as_secs()
}

#[test]
fn each_state_takes_as_long_as_the_spec_says() {
    let spec = json!({"rollout": {"minReadySeconds": 20, "rollbackWindowSeconds": 100, "drainSeconds": 15}});
    let mut world = World::serving(&spec);
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    let loading = takes(&mut world, "Probing", |world| world.state() == "Probing");
    assert!(
        (22..=25).contains(&loading),
        "3 s to load, 20 s ready: {loading}"
    );
    world.until_state("Baking");
    let baking = takes(&mut world, "Draining", |world| world.state() == "Draining");
    assert!((100..=102).contains(&baking), "{baking}");
    // Nobody reports that it has no requests any more.
    world.report = Err("no router".to_owned());
    let draining = takes(&mut world, "stop", |world| world.up("v1") == 0);
    assert!((15..=17).contains(&draining), "{draining}");
}

#[test]
fn an_old_version_without_requests_is_not_waited_for() {
    let mut world =
        World::serving(&json!({"rollout": {"drainSeconds": 3600, "rollbackWindowSeconds": 0}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Draining");
    let draining = takes(&mut world, "stop", |world| world.up("v1") == 0);
    assert!(draining <= 2, "{draining}");
}

#[test]
fn the_deadline_of_a_load_is_that_of_the_spec() {
    let mut world = World::serving(&json!({"rollout": {"progressDeadlineSeconds": 120}}));
    world.behave(
        "v2",
        Behaviour {
            loads_in: 100_000,
            ..Behaviour::default()
        },
    );
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Starting");
    let took = takes(&mut world, "rejected", |world| {
        !world.status().rejected.is_empty()
    });
    assert!((120..=122).contains(&took), "{took}");
}

#[test]
fn what_waited_for_somebody_else_has_time_afterwards() {
    let mut world = World::serving(&json!({"rollout": {"progressDeadlineSeconds": 120}}));
    // An engine that tries by itself.
    world.capabilities.pods = true;
    world.settle(60);
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    let pull = backend::Waiting {
        reason: Reason::ImagePullBusy,
        message: "the registry is busy".to_owned(),
    };
    for server in world.of("v2") {
        server.state = backend::RunState::Created;
        server.waiting = Some(pull.clone());
    }
    for _ in 0..100 {
        world.tick(10);
        world.pass(Kill::Never);
    }
    assert!(world.status().rejected.is_empty());
    let boot = world.boot;
    for server in world.of("v2") {
        server.state = backend::RunState::Running;
        server.waiting = None;
        server.started = boot;
    }
    world.until("served", |world| world.champion() == "v2");
}

#[test]
fn a_pull_that_failed_is_tried_again_later() {
    // Not before the longest pause of the back end, whatever it was.
    for (reason, wait) in [(Reason::ImagePullBusy, 300), (Reason::ImageNotFound, 300)] {
        let mut world = World::new(&json!({}));
        let at = world.now().wall;
        let failed = ImageState::Failed {
            reason,
            message: "no".to_owned(),
            at,
        };
        world.images.insert("laya:1".to_owned(), failed);
        let took = takes(&mut world, "pull", |world| {
            world.done.iter().any(|it| it.starts_with("EnsureImage"))
        });
        assert!((wait..=wait + 2).contains(&took), "{reason:?}: {took}");
    }
}

#[test]
fn it_is_looked_at_again_as_often_as_the_page_says() {
    let mut world = World::serving(&json!({"probe": {"intervalSeconds": 45}}));
    assert_eq!(
        world.plan().requeue,
        Requeue::After(Duration::from_secs(45))
    );
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    let Requeue::After(delay) = world.plan().requeue else {
        panic!("a rollout moves");
    };
    assert!((1..=5).contains(&delay.as_secs()));
    world.edit(&json!({"rollout": {"paused": true}}));
    world.until_state("Paused");
    assert_eq!(world.plan().requeue, Requeue::Waiting);
}

#[test]
fn restarts_are_counted_once_each_and_begin_anew_after_five_minutes() {
    let mut world = World::serving(&json!({}));
    let crash = |world: &mut World| {
        for server in world.of("v1") {
            server.state = backend::RunState::Restarting;
            server.exit_code = Some(1);
        }
        world.tick(1);
        for _ in 0..3 {
            world.pass(Kill::Never);
        }
    };
    crash(&mut world);
    world.tick(20);
    crash(&mut world);
    let restarts = world.status().restarts.unwrap();
    assert_eq!(
        (restarts.count, restarts.last_exit_code),
        (Some(2), Some(1))
    );
    assert_eq!(restarts.last_reason.as_deref(), Some("CrashLoop"));
    world.tick(400);
    crash(&mut world);
    assert_eq!(world.status().restarts.unwrap().count, Some(1));
    world.settle(60);
    assert_eq!(world.traffic(), "v1:100");
}
