//! Bars of control-plane 19 on the engine, measured: the controller's own time from the end of the look that decides to the
//! end of the status write that tells of it. Run with `--ignored --nocapture bars::`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::kinds::LayaServer;
use controller::faults::{FaultPoint, FaultPoints};
use futures_util::FutureExt;
use kube::Api;
use serde_json::json;

use crate::backs::Watched;
use crate::instance::fault_image;
use crate::parts::objects::until;
use crate::parts::status::{champion, is_at_rest, is_reason, targets, told};
use crate::world::World;

/// Replacements, and as many ways back.
const ROLLOUTS: usize = 20;
/// From a look to what is decided by it.
const BAR: Duration = Duration::from_millis(100);

/// Own times of passes that gave another revision all traffic.
#[derive(Clone, Default)]
struct Switches {
    last: Arc<Mutex<String>>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl Switches {
    /// Looks at each status once it is written.
    fn measured(&self, servers: Api<LayaServer>, backend: Arc<Watched>) -> FaultPoints {
        let this = self.clone();
        FaultPoints::hooked(move |point| {
            let (this, servers, backend) = (this.clone(), servers.clone(), backend.clone());
            let now = Instant::now();
            async move {
                if point != FaultPoint::AfterStatus("LayaServer") {
                    return;
                }
                let Ok(server) = servers.get("main").await else {
                    return;
                };
                let status = server.status.unwrap_or_default();
                let [(revision, 100)] = &targets(&status)[..] else {
                    return;
                };
                let mut last = this.last.lock().unwrap();
                if *last != *revision {
                    last.clone_from(revision);
                    let looked = backend.looked().unwrap();
                    this.took.lock().unwrap().push(now - looked);
                }
            }
            .boxed()
        })
    }

    /// Prints what was measured so far, and begins anew.
    fn tell(&self, what: &str) {
        let mut took = std::mem::take(&mut *self.took.lock().unwrap());
        took.sort();
        let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)];
        println!(
            "{what}: {} times, p50 {:?}, p99 {:?}, max {:?}, bar {BAR:?}",
            took.len(),
            at(50),
            at(99),
            at(100)
        );
        // Loosely: it is a build without optimisation, and others run beside it.
        assert!(at(50) < 4 * BAR, "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bar; needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn own_time_of_promotions_and_of_ways_back() {
    let mut world = World::new().await;
    let weak = world.weak();
    let backend = Arc::new(Watched::new(world.back_end()));
    let switches = Switches::default();
    let faults = switches.measured(world.servers(), backend.clone());
    let running = world.start_over(backend, faults);
    world.create_model("v2").await;
    world.serving("main", "v1").await;
    for number in 0..ROLLOUTS {
        let model = if number % 2 == 0 { "v2" } else { "v1" };
        world
            .edit("main", &json!({"modelRef": {"name": model}}))
            .await;
        world.until_serves("main", model).await;
    }
    switches.tell("promotions");
    let old = champion(&world.status("main").await);
    for number in 0..ROLLOUTS {
        // Each is another revision, so that it is tried at all.
        let serving = json!({"maxConcurrent": 17 + number});
        let wish = json!({
            "image": weak, "serving": serving, "rollout": {"rollbackWindowSeconds": 600},
        });
        world.edit("main", &wish).await;
        let baking = world
            .until("main", "it is watched", is_reason("Baking"))
            .await;
        switches.took.lock().unwrap().pop();
        let new = champion(&baking);
        until("it is taken back", || async {
            if let Some(url) = world.url("main", &new) {
                crate::world::ask_often(&url).await;
            }
            let status = world.status("main").await;
            if champion(&status) == old && is_at_rest(&status) {
                Ok(())
            } else {
                Err(told(&status))
            }
        })
        .await;
    }
    switches.tell("ways back");
    world.edit("main", &json!({"image": fault_image()})).await;
    running.end().await;
}
