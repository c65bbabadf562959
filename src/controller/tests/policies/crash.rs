//! Fault 9: the controller is killed before and after every action and status write, and started again. For each point
//! the end is the same as without.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use controller::client::Deadlines;
use controller::faults::{FaultPoint, FaultPoints};
use controller::routingpolicy::revision_of;
use futures_util::FutureExt;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::on_both;
use crate::world::{World, bad, condition, good, in_force, revision, until};

on_both! {
    fault_09_killed_before_and_after_every_write_the_end_is_the_same;
}

/// Fewest points that the story must have: two of each of StoreRevision, DeleteRevision and the status writes.
const FEWEST_POINTS: usize = 14;

async fn fault_09_killed_before_and_after_every_write_the_end_is_the_same(world: World) {
    let points = Points::default();
    let expected = story(&world, "whole", &points.counting()).await;
    let count = points.passed.load(Ordering::SeqCst);
    assert!(count >= FEWEST_POINTS, "{count} points");
    for at in 0..count {
        let points = Points::default();
        let faults = points.stopping(at);
        let name = format!("killed-{at}");
        let end = kill_when_stopped(&world, &name, &points, &faults).await;
        assert_eq!(
            end,
            expected,
            "killed at point {at}: {:?}",
            points.log.lock().unwrap().get(at)
        );
    }
}

/// What happens to a policy, waiting for each step to be in force.
async fn story(world: &World, name: &str, faults: &FaultPoints) -> Value {
    prepare(world, name).await;
    let running = world.start_with(world.client.clone(), faults.clone(), Deadlines::default());
    let end = tell(world, name).await;
    running.end().await;
    end
}

/// The same, with a kill at the point and a start after it.
async fn kill_when_stopped(
    world: &World,
    name: &str,
    points: &Points,
    faults: &FaultPoints,
) -> Value {
    prepare(world, name).await;
    let first = world.start_with(world.client.clone(), faults.clone(), Deadlines::default());
    let restart = async {
        points.stopped.notified().await;
        first.kill().await;
        world.start()
    };
    let (second, end) = tokio::join!(restart, tell(world, name));
    second.end().await;
    end
}

/// A policy with more stored revisions than are kept.
async fn prepare(world: &World, name: &str) {
    let policy = world.create(name, &good(0)).await;
    for number in 100..111 {
        let mut older = policy.clone();
        older.spec.deadlines.timeout_millis = 1_000 + number;
        let revision = revision_of(&older.spec);
        let document = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": format!("rp-{name}-{revision}"),
                "labels": {
                    "app.kubernetes.io/managed-by": "relay-controller", "relay.dev/kind": "RoutingPolicy",
                    "relay.dev/name": name, "relay.dev/uid": policy.uid().unwrap(),
                },
            },
            "data": older.spec.tree(), "revision": 1,
        });
        let document: ControllerRevision = serde_json::from_value(document).unwrap();
        world
            .revisions()
            .create(&PostParams::default(), &document)
            .await
            .unwrap();
    }
}

async fn tell(world: &World, name: &str) -> Value {
    world.until_in_force(name).await;
    left(world, name, 11).await;
    let generation = world.edit(name, &bad()).await;
    world
        .until(name, "the edit is refused", |policy| {
            let status = policy.status.clone().unwrap_or_default();
            condition(policy, "Stalled").is_some() && status.observed_generation == Some(generation)
        })
        .await;
    world
        .edit(
            name,
            &json!({"models": null, "tiers": null, "deadlines": {"timeoutMillis": 1_001}}),
        )
        .await;
    world
        .until(name, "the last edit is in force", in_force)
        .await;
    left(world, name, 10).await;
    let policy = world.policy(name).await;
    let mut status = serde_json::to_value(policy.status.as_ref().unwrap()).unwrap();
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"].take();
    }
    let mut stored = world.stored(name).await;
    stored
        .iter_mut()
        .for_each(|document| *document = document.replace(name, "NAME"));
    json!({"revision": revision(&policy), "status": status, "stored": stored})
}

/// Waits until as many documents as are kept are left.
async fn left(world: &World, name: &str, most: usize) {
    until("old revisions are removed", || async {
        let stored = world.stored(name).await;
        if stored.len() <= most {
            Ok(())
        } else {
            Err(stored)
        }
    })
    .await;
}

#[derive(Clone, Default)]
struct Points {
    passed: Arc<AtomicUsize>,
    stopped: Arc<Notify>,
    log: Arc<std::sync::Mutex<Vec<FaultPoint>>>,
}

impl Points {
    fn counting(&self) -> FaultPoints {
        self.stopping(usize::MAX)
    }

    /// Stops for good at one point.
    fn stopping(&self, at: usize) -> FaultPoints {
        let this = self.clone();
        FaultPoints::hooked(move |point| {
            let number = this.passed.fetch_add(1, Ordering::SeqCst);
            this.log.lock().unwrap().push(point);
            let stopped = this.stopped.clone();
            async move {
                if number == at {
                    stopped.notify_one();
                    std::future::pending::<()>().await;
                }
            }
            .boxed()
        })
    }
}
