//! Fault 9: the controller is killed before and after actions and status writes of a model's life, and started again. The
//! end is the same as without. A sample of the points by default; all of them with `RELAY_TEST_ALL_POINTS`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use controller::faults::{FaultPoint, FaultPoints};
use futures_util::FutureExt;
use kube::ResourceExt;
use serde_json::{Value, json};
use testkit::backend::{Script, fetched};
use tokio::sync::Notify;

use crate::world::{World, digest, source};

/// Fewest points of the story: two of each of AddFinalizer, EnsureVolume, two RunTask, two DeleteTask, RemoveFinalizer, a
/// stored wording, stored probes, and the status writes between.
const FEWEST_POINTS: usize = 24;
/// Points that are tried by default.
const SAMPLE: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_09_killed_before_and_after_every_write_the_end_is_the_same() {
    let points = Points::default();
    let expected = story(&points.stopping(usize::MAX), None).await;
    let count = points.passed.load(Ordering::SeqCst);
    assert!(
        count >= FEWEST_POINTS,
        "{count} points: {:?}",
        points.log.lock().unwrap()
    );
    let all = std::env::var_os("RELAY_TEST_ALL_POINTS").is_some();
    let step = if all { 1 } else { count.div_ceil(SAMPLE) };
    for at in (0..count).step_by(step) {
        let points = Points::default();
        let end = story(&points.stopping(at), Some(points.stopped.clone())).await;
        let killed = points.log.lock().unwrap().get(at).copied();
        assert_eq!(end, expected, "killed at point {at}: {killed:?}");
    }
}

/// A model is applied, becomes ready and is deleted; what it was and what is left.
async fn story(faults: &FaultPoints, stopped: Option<Arc<Notify>>) -> Value {
    let world = World::new().await;
    world.engine.script(|_, spec| {
        let found = testkit::backend::argument(spec, "--digest");
        match (spec.arguments.0[0].as_str(), found) {
            ("fetch", Some(digest)) => {
                let mut result = fetched(&digest);
                result["decisionsText"] = json!(decision::RELAY_DECISIONS_JSON);
                result["probes"] = json!([{
                    "state": "x", "answers": {"risk": {"label": "true", "probability": 0.5}},
                }]);
                Script::Ends {
                    code: 0,
                    result: Some(result),
                }
            }
            _ => Script::Obeys,
        }
    });
    let first = world.start_with(faults.clone());
    let told = Notify::new();
    let restart = async {
        let stopped = stopped.unwrap_or_default();
        tokio::select! {
            () = stopped.notified() => {
                first.kill().await;
                world.start()
            }
            // Nothing stopped it.
            () = told.notified() => first,
        }
    };
    let tell = async {
        let end = tell(&world).await;
        told.notify_one();
        end
    };
    let (running, end) = tokio::join!(restart, tell);
    running.end().await;
    end
}

async fn tell(world: &World) -> Value {
    world.create("v1", &source(1)).await;
    let model = world.until_ready("v1").await;
    let published = world.engine.published();
    assert!(published.contains(&digest(&model)));
    let status = model.status.clone().unwrap();
    world.delete("v1").await;
    world.until_gone("v1").await;
    let documents: kube::Api<k8s_openapi::api::apps::v1::ControllerRevision> =
        kube::Api::namespaced(world.client.clone(), crate::world::NAMESPACE);
    let documents = documents
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    let documents: Vec<_> = documents.items.iter().map(ResourceExt::name_any).collect();
    json!({
        "digest": status.digest, "contract": status.contract, "path": status.location.unwrap().path,
        "published": world.engine.published(), "children": world.engine.children(&model.uid().unwrap()).1.len(),
        "documents": documents,
    })
}

#[derive(Clone, Default)]
struct Points {
    passed: Arc<AtomicUsize>,
    stopped: Arc<Notify>,
    log: Arc<Mutex<Vec<FaultPoint>>>,
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
