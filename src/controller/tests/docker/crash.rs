//! Faults 9 and 38 on the engine: the controller ends before and after actions and status writes, and another one with a
//! back end of its own goes on. For each point the end is the same as without. A seeded sample here (`RELAY_TEST_SEED`); the
//! whole matrices are the tests whose names begin with `whole_`.

use serde_json::{Value, json};

use crate::parts::points::{How, Points, matrix};
use crate::parts::status::{champion, condition, end, is_at_rest, is_reason, serves};
use crate::world::World;

/// Fewest points that a story must have.
const FEWEST_POINTS: usize = 30;
/// Points of a run in CI.
const SAMPLE: usize = 4;
/// Worlds at a time.
const AT_ONCE: usize = 4;

/// What is left, once so many containers are there and one of them runs.
async fn left(world: &World, containers: usize) -> Value {
    let found = world
        .until_containers("main", "what is not needed has gone", |found| {
            found.len() == containers && found.iter().filter(|it| it.runs()).count() == 1
        })
        .await;
    let found: Vec<_> = found
        .iter()
        .map(|it| format!("{} {} {}", it.model, it.ordinal, it.state))
        .collect();
    let stored = world.stored("main").await.len();
    end(&world.status("main").await, &found, stored)
}

/// A server starts, and another model takes over.
async fn replaced(world: &World) -> Value {
    world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until_serves("main", "v2").await;
    left(world, 2).await
}

async fn replaced_with_an_end(how: How, points: &Points, at: usize) -> Value {
    let world = World::new().await;
    let first = world.start_with(points.stopping(at));
    points
        .end_when_stopped(how, first, || world.start(), Box::pin(replaced(&world)))
        .await
}

/// A server starts, another model takes over and dies of its first requests, and the first one is back.
async fn taken_back(world: &World, weak: &str) -> Value {
    let before = world.serving("main", "v1").await;
    world.create_model("v2").await;
    let spec = json!({
        "modelRef": {"name": "v2"}, "image": weak, "rollout": {"rollbackWindowSeconds": 600},
    });
    world.edit("main", &spec).await;
    let baking = world
        .until("main", "the new one is watched", is_reason("Baking"))
        .await;
    let weak = champion(&baking);
    assert_ne!(weak, champion(&before));
    world.wear_out("main", &weak).await;
    world
        .until("main", "the old one has all traffic", |status| {
            serves(status, "v1")
                && is_at_rest(status)
                && condition(status, "Stalled").is_some_and(|(_, reason)| reason == "Rejected")
        })
        .await;
    left(world, 1).await
}

async fn taken_back_with_an_end(how: How, points: &Points, at: usize) -> Value {
    let mut world = World::new().await;
    let weak = world.weak();
    let world = &world;
    let first = world.start_with(points.stopping(at));
    points
        .end_when_stopped(
            how,
            first,
            || world.start(),
            Box::pin(taken_back(world, &weak)),
        )
        .await
}

async fn replaced_with_ends(how: How, sample: Option<usize>) {
    let story = async |points: &Points, at| Box::pin(replaced_with_an_end(how, points, at)).await;
    matrix(FEWEST_POINTS, sample, AT_ONCE, story).await;
}

async fn taken_back_with_ends(how: How, sample: Option<usize>) {
    let story = async |points: &Points, at| Box::pin(taken_back_with_an_end(how, points, at)).await;
    matrix(FEWEST_POINTS, sample, AT_ONCE, story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_09_killed_while_a_model_is_replaced_the_end_is_the_same() {
    replaced_with_ends(How::Killed, Some(SAMPLE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_09_killed_while_a_model_is_taken_back_the_end_is_the_same() {
    taken_back_with_ends(How::Killed, Some(SAMPLE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_38_told_to_end_while_a_model_is_replaced_the_end_is_the_same() {
    replaced_with_ends(How::Told, Some(SAMPLE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes; takes minutes"]
async fn whole_fault_09_killed_at_every_write_while_a_model_is_replaced() {
    replaced_with_ends(How::Killed, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes; takes minutes"]
async fn whole_fault_09_killed_at_every_write_while_a_model_is_taken_back() {
    taken_back_with_ends(How::Killed, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes; takes minutes"]
async fn whole_fault_38_told_to_end_at_every_write_while_a_model_is_taken_back() {
    taken_back_with_ends(How::Told, None).await;
}
