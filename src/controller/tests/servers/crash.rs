//! Faults 9 and 38: the controller ends before and after actions and status writes, and is started again. For each point the
//! end is the same as without. A seeded sample here; the whole matrix is run with `--ignored`.

use backend::RunState;
use serde_json::{Value, json};

use crate::parts::points::{How, Points, matrix};
use crate::parts::status;
use crate::world::{World, until};

/// Fewest points that the story must have: start and replacement of a server with its models.
const FEWEST_POINTS: usize = 30;
/// Points of a run in CI.
const SAMPLE: usize = 8;

/// What is left at the end of a story, but for times, addresses and uids.
pub(crate) async fn end(world: &World, name: &str) -> Value {
    let uid = world.server(name).await.metadata.uid.unwrap();
    // The last passes may still tidy up.
    let children = until("one runs and one is kept", || async {
        let (servers, _) = world.engine.children(&uid);
        let running = |server: &&backend::ServerSeen| server.state == RunState::Running;
        if servers.iter().filter(running).count() == 1 && servers.len() == 2 {
            Ok(servers)
        } else {
            Err(servers)
        }
    })
    .await;
    let children: Vec<_> = children
        .iter()
        .map(|it| format!("{:?} {} {:?}", it.model, it.ordinal, it.state))
        .collect();
    let stored = world.stored(name).await.len();
    status::end(&world.status(name).await, &children, stored)
}

/// A server starts, and another model takes over.
async fn tell(world: &World) -> Value {
    world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until_serves("main", "v2").await;
    end(world, "main").await
}

/// The story, with an end of the controller at the point, if it comes there, and a start after it.
async fn ended_at(how: How, points: &Points, at: usize) -> Value {
    let world = World::new().await;
    let first = world.start_with(points.stopping(at));
    points
        .end_when_stopped(how, first, || world.start(), tell(&world))
        .await
}

async fn the_end_is_the_same(how: How, sample: Option<usize>) {
    let ended_at = async |points: &Points, at| ended_at(how, points, at).await;
    matrix(FEWEST_POINTS, sample, 1, ended_at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_09_killed_before_and_after_writes_the_end_is_the_same() {
    Box::pin(the_end_is_the_same(How::Killed, Some(SAMPLE))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the whole matrix takes minutes"]
async fn fault_09_killed_before_and_after_every_write_the_end_is_the_same() {
    Box::pin(the_end_is_the_same(How::Killed, None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_38_told_to_end_before_and_after_writes_the_end_is_the_same() {
    Box::pin(the_end_is_the_same(How::Told, Some(SAMPLE))).await;
}
