//! An object source with servers, and a controller over it that a test ends, kills and starts again.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::kinds::{LayaModel, LayaServer, LayaServerStatus};
use backend::Backend;
use controller::client::Deadlines;
use controller::clock::{Clock, Now, SystemClock};
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::reports::RevisionReader;
use controller::{Controller, ControllerParts, Engine, Namespaces, Tombstones, UnclaimedOwners};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use objects::{ObjectStore, ObjectStoreOptions};
use prometheus::Registry;
use serde_json::{Value, json};
use service::runtime::{Phase, Readiness, ShutdownTrigger};
use service::telemetry::trace::Traces;
use service::telemetry::{BuildInfo, ProcessMetrics};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::status::{is_at_rest, serves, told};

/// Longest wait for anything in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Where everything is.
pub(crate) const NAMESPACE: &str = "serving";

/// The machine's clocks, moved forward by a test.
#[derive(Debug, Default)]
pub(crate) struct MovedClock {
    seconds: AtomicU64,
}

impl MovedClock {
    /// Time passes: deadlines, not sleeps.
    pub(crate) fn forward(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Now {
        let moved = Duration::from_secs(self.seconds.load(Ordering::SeqCst));
        let Now { wall, boot } = SystemClock.now();
        Now {
            wall: wall + moved,
            boot: boot + moved,
        }
    }
}

/// Deleted objects as the store remembers them.
#[derive(Debug)]
struct Remembered(ObjectStore);

impl Tombstones for Remembered {
    fn sweeps(&self) -> bool {
        true
    }

    fn was_deleted<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        let asked = self.0.was_deleted(uid);
        asked
            .map(|known| known.map_err(|error| error.to_string()))
            .boxed()
    }
}

/// Objects, the clock of their controllers, and a folder that goes with them.
pub(crate) struct Objects {
    pub(crate) client: Client,
    pub(crate) clock: Arc<MovedClock>,
    pub(crate) unclaimed: UnclaimedOwners,
    store: ObjectStore,
    _folder: tempfile::TempDir,
}

impl Objects {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = ObjectStore::open(
            &folder.path().join("objects.db"),
            &folder.path().join("instance"),
            ObjectStoreOptions::default(),
        )
        .unwrap();
        let client = Client::new(opened.store.service(), "default");
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
        Self {
            client,
            clock: Arc::default(),
            unclaimed: UnclaimedOwners::default(),
            store: opened.store,
            _folder: folder,
        }
    }

    pub(crate) fn servers(&self) -> Api<LayaServer> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn models(&self) -> Api<LayaModel> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// A model of this spec.
    pub(crate) async fn create_model_of(&self, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": name}, "spec": spec,
        });
        let object: LayaModel = serde_json::from_value(object).unwrap();
        self.models()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// A server of a model with short waits, and what else its spec says.
    pub(crate) async fn create(&self, name: &str, model: &str, spec: &Value) -> LayaServer {
        let mut object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {"name": name}, "spec": {"modelRef": {"name": model}, "rollout": quick()},
        });
        merge(&mut object["spec"], spec);
        let object: LayaServer = serde_json::from_value(object).unwrap();
        self.servers()
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    pub(crate) async fn edit(&self, name: &str, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.servers()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn server(&self, name: &str) -> LayaServer {
        self.servers().get(name).await.unwrap()
    }

    pub(crate) async fn status(&self, name: &str) -> LayaServerStatus {
        self.server(name).await.status.unwrap_or_default()
    }

    /// Waits until a server is so.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&LayaServerStatus) -> bool,
    ) -> LayaServerStatus {
        until(what, || async {
            let server = self.server(name).await;
            let generation = server.metadata.generation;
            let status = server.status.unwrap_or_default();
            if status.observed_generation == generation && is(&status) {
                Ok(status)
            } else {
                Err(told(&status))
            }
        })
        .await
    }

    /// Waits until a model serves with all traffic and no rollout is under way.
    pub(crate) async fn until_serves(&self, name: &str, model: &str) -> LayaServerStatus {
        let what = format!("{model} serves and nothing is under way");
        self.until(name, &what, |status| {
            serves(status, model) && is_at_rest(status)
        })
        .await
    }

    /// Reasons and notes of the events about a server, in order.
    pub(crate) async fn notes(&self, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut events = events.list(&ListParams::default()).await.unwrap().items;
        events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
        let about = |event: &Event| event.regarding.as_ref()?.name.clone();
        let of = events
            .into_iter()
            .filter(|event| about(event).as_deref() == Some(name));
        let said = of.map(|event| {
            (
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default(),
            )
        });
        said.collect()
    }

    /// Waits until an event of this reason tells of a server, and gives its last note.
    pub(crate) async fn until_told(&self, name: &str, reason: &str) -> String {
        until(&format!("event {reason}"), || async {
            let notes = self.notes(name).await;
            let found = notes.iter().rev().find(|(of, _)| of == reason);
            found.map(|(_, note)| note.clone()).ok_or(notes)
        })
        .await
    }

    /// Names of the stored revisions of a server, in order.
    pub(crate) async fn stored(&self, name: &str) -> Vec<String> {
        let revisions: Api<ControllerRevision> = Api::namespaced(self.client.clone(), NAMESPACE);
        let list = revisions.list(&ListParams::default()).await.unwrap();
        let prefix = format!("ls-{name}-");
        let names = list.items.iter().map(ResourceExt::name_any);
        let mut names: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
        names.sort();
        names
    }

    /// Starts a controller over an engine.
    pub(crate) fn run(
        &self,
        backend: Arc<dyn Backend>,
        laya_image: &str,
        reports: Arc<dyn RevisionReader>,
        faults: FaultPoints,
    ) -> Running {
        let build = BuildInfo {
            component: "controller",
            version: "test",
            commit: "unknown",
        };
        let process = ProcessMetrics::register(Registry::new(), build).unwrap();
        let metrics = ControllerMetrics::register(&process).unwrap();
        let readiness = Readiness::default();
        let controller = Controller::new(ControllerParts {
            client: self.client.clone(),
            deadlines: Deadlines::default(),
            namespaces: Namespaces::Only(vec![NAMESPACE.to_owned()]),
            metrics: metrics.clone(),
            traces: Traces::off(),
            fence: Fence::only_instance(),
            clock: self.clock.clone(),
            ready: readiness.check("objects"),
            faults,
            instance: None,
            engine: Some(Engine {
                backend,
                laya_image: laya_image.to_owned(),
                keep_trained: 3,
                tombstones: Arc::new(Remembered(self.store.clone())),
                unclaimed: self.unclaimed.clone(),
                reports,
                own_addresses: controller::OwnAddresses::default(),
                doomed: controller::Doomed::default(),
            }),
        });
        let (trigger, shutdown) = ShutdownTrigger::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(controller.run(shutdown));
        Running {
            trigger,
            metrics,
            tasks,
        }
    }
}

/// A controller that runs. Dropped, it is killed: a test that fails leaves nobody who goes on.
pub(crate) struct Running {
    trigger: ShutdownTrigger,
    pub(crate) metrics: ControllerMetrics,
    tasks: JoinSet<()>,
}

impl Running {
    /// Ends it as SIGTERM does.
    pub(crate) async fn end(mut self) {
        self.trigger.advance(Phase::Draining);
        let ended = timeout(PATIENCE, self.tasks.join_next()).await;
        ended.expect("it drains").unwrap().unwrap();
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}

/// A rollout without long waits.
pub(crate) fn quick() -> Value {
    json!({"minReadySeconds": 0, "drainSeconds": 0, "rollbackWindowSeconds": 1, "progressDeadlineSeconds": 60})
}

/// Puts the members of one tree into another.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Waits for a condition, and tells what was last seen when it does not come.
pub(crate) async fn until<T, E: Debug, F>(what: &str, look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    until_within(PATIENCE, what, look).await
}

/// The same with another patience.
pub(crate) async fn until_within<T, E: Debug, F>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + patience;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() > deadline => panic!("{what}: last seen {seen:#?}"),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}
