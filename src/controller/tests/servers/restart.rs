//! The controller is killed in every state of a rollout and started again: the end is the same.

use std::sync::Arc;

use controller::faults::{FaultPoint, FaultPoints};
use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::Notify;

use crate::crash::end;
use crate::world::World;

/// Stops for good after the status write that brings a server into this state.
fn stopping_in(world: &World, state: &'static str, stopped: Arc<Notify>) -> FaultPoints {
    let servers = world.servers();
    FaultPoints::hooked(move |point| {
        let (servers, stopped) = (servers.clone(), stopped.clone());
        async move {
            if point != FaultPoint::AfterStatus("LayaServer") {
                return;
            }
            let Ok(server) = servers.get("main").await else {
                return;
            };
            let rollout = server.status.and_then(|status| status.rollout);
            let now = rollout.and_then(|rollout| rollout.state);
            if now.is_some_and(|now| now.as_str() == state) {
                stopped.notify_one();
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    })
}

/// The champion `v1` serves, and the wish becomes `v2`.
async fn wish_for_another(world: &World) {
    let running = world.start();
    world.serving("main", "v1").await;
    running.end().await;
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
}

async fn killed_in(state: &'static str) -> serde_json::Value {
    let world = World::new().await;
    wish_for_another(&world).await;
    let stopped = Arc::new(Notify::new());
    let first = world.start_with(stopping_in(&world, state, stopped.clone()));
    tokio::time::timeout(crate::world::PATIENCE, stopped.notified())
        .await
        .unwrap_or_else(|_| panic!("no status write brought it into {state}"));
    first.kill().await;
    let second = world.start();
    world.until_serves("main", "v2").await;
    let end = end(&world, "main").await;
    second.end().await;
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_38_killed_in_every_state_of_a_rollout_the_end_is_the_same() {
    let whole = {
        let world = World::new().await;
        wish_for_another(&world).await;
        let running = world.start();
        world.until_serves("main", "v2").await;
        let end = end(&world, "main").await;
        running.end().await;
        end
    };
    let states = ["Starting", "Loading", "Probing", "Baking", "Draining"];
    let ends = states.map(|state| async move { (state, killed_in(state).await) });
    for (state, end) in futures_util::future::join_all(ends).await {
        assert_eq!(end, whole, "killed in {state}");
    }
}
