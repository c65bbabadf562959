//! Fault 9: the controller is killed before and after actions and status writes, and started again. For each point the
//! end is the same as without. A seeded sample here; the whole matrix is run with `--ignored`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backend::RunState;
use controller::faults::{FaultPoint, FaultPoints};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{World, targets, until};

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
    let status = world.status(name).await;
    let version = |version: Option<api::kinds::laya_server::Version>| {
        let version = version.unwrap_or_default();
        json!([version.model, version.digest])
    };
    let mut conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|it| format!("{}={} {}", it.type_, it.status.as_str(), it.reason))
        .collect();
    conditions.sort();
    let mut children: Vec<_> = children
        .iter()
        .map(|it| format!("{:?} {} {:?}", it.model, it.ordinal, it.state))
        .collect();
    children.sort();
    json!({
        "champion": version(status.champion.clone()), "previous": version(status.previous.clone()),
        "candidate": status.candidate.is_some(), "rejected": status.rejected.len(),
        "weights": targets(&status).iter().map(|(_, weight)| *weight).collect::<Vec<_>>(),
        "conditions": conditions, "children": children, "stored": world.stored(name).await.len(),
    })
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

async fn story(faults: &FaultPoints) -> Value {
    let world = World::new().await;
    let running = world.start_with(faults.clone());
    let end = tell(&world).await;
    running.end().await;
    end
}

/// The same, with a kill at the point, if the story comes there, and a start after it.
async fn kill_when_stopped(points: &Points, at: usize) -> Value {
    let world = World::new().await;
    let first = world.start_with(points.stopping(at));
    let (told, telling) = tokio::sync::oneshot::channel();
    let restart = async {
        tokio::select! {
            () = points.stopped.notified() => {
                first.kill().await;
                world.start()
            }
            _ = telling => first,
        }
    };
    let tell = async {
        let end = tell(&world).await;
        let _ = told.send(());
        end
    };
    let (last, end) = tokio::join!(restart, tell);
    last.end().await;
    end
}

async fn matrix(sample: Option<usize>) {
    let points = Points::default();
    let expected = story(&points.stopping(usize::MAX)).await;
    let count = points.passed.load(Ordering::SeqCst);
    assert!(count >= FEWEST_POINTS, "{count} points");
    let log = points.log.lock().unwrap().clone();
    for at in chosen(count, sample) {
        let points = Points::default();
        let end = kill_when_stopped(&points, at).await;
        let killed = points.log.lock().unwrap().get(at).copied();
        println!(
            "| {at} | {:?} | same end |",
            killed.or(log.get(at).copied())
        );
        assert_eq!(end, expected, "killed at point {at}: {killed:?}");
    }
}

/// All points, or a sample by a seed that is told.
fn chosen(count: usize, sample: Option<usize>) -> Vec<usize> {
    let Some(sample) = sample else {
        return (0..count).collect();
    };
    let seed = std::env::var("RELAY_TEST_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(since.subsec_nanos())
    });
    println!("RELAY_TEST_SEED={seed}");
    let mut state = seed | 1;
    let mut next = || {
        // xorshift64: good enough to choose by.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % count as u64).unwrap()
    };
    let mut chosen: Vec<_> = (0..sample).map(|_| next()).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_09_killed_before_and_after_writes_the_end_is_the_same() {
    matrix(Some(SAMPLE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the whole matrix takes minutes"]
async fn fault_09_killed_before_and_after_every_write_the_end_is_the_same() {
    matrix(None).await;
}

#[derive(Clone, Default)]
struct Points {
    passed: Arc<AtomicUsize>,
    stopped: Arc<Notify>,
    log: Arc<std::sync::Mutex<Vec<FaultPoint>>>,
}

impl Points {
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
