//! A store, an engine that outlives controllers, and what people do to models.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::kinds::{ConditionStatus, LayaModel, LayaServer};
use controller::client::Deadlines;
use controller::clock::{Clock, Now, SystemClock};
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::{
    Controller, ControllerParts, Doomed, Engine, Namespaces, Tombstones, UnclaimedOwners,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use objects::{ObjectStore, ObjectStoreOptions};
use prometheus::Registry;
use serde_json::{Value, json};
use service::runtime::{Phase, Readiness, ShutdownTrigger};
use service::telemetry::trace::Traces;
use service::telemetry::{BuildInfo, ProcessMetrics};
use testkit::backend::FakeBackend;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Longest wait for anything in a test.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const NAMESPACE: &str = "models";

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) engine: Arc<FakeBackend>,
    pub(crate) clock: Arc<Jumping>,
    pub(crate) unclaimed: UnclaimedOwners,
    pub(crate) doomed: Doomed,
    store: ObjectStore,
    _folder: tempfile::TempDir,
}

/// The clocks of this machine, and what a test adds to them.
#[derive(Debug, Default)]
pub(crate) struct Jumping(Mutex<Duration>);

impl Jumping {
    pub(crate) fn jump(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for Jumping {
    fn now(&self) -> Now {
        let ahead = *self.0.lock().unwrap();
        let Now { wall, boot } = SystemClock.now();
        Now {
            wall: wall
                .checked_add(jiff::SignedDuration::try_from(ahead).unwrap())
                .unwrap(),
            boot: boot + ahead,
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
        async move {
            self.0
                .was_deleted(uid)
                .await
                .map_err(|error| error.to_string())
        }
        .boxed()
    }
}

impl World {
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
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
        Self {
            client,
            engine: FakeBackend::docker(),
            clock: Arc::default(),
            unclaimed: UnclaimedOwners::default(),
            doomed: Doomed::default(),
            store: opened.store,
            _folder: folder,
        }
    }

    pub(crate) fn models(&self) -> Api<LayaModel> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create(&self, name: &str, spec: &Value) -> LayaModel {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        let object: LayaModel = serde_json::from_value(object).unwrap();
        self.models()
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    /// A server that has a model as its champion, as its own reconciler would say.
    pub(crate) async fn serve(&self, server: &str, model: &LayaModel) {
        let servers: Api<LayaServer> = Api::namespaced(self.client.clone(), NAMESPACE);
        if servers.get_opt(server).await.unwrap().is_none() {
            let object = json!({
                "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
                "metadata": {"name": server, "namespace": NAMESPACE},
                "spec": {"modelRef": {"name": model.name_any()}},
            });
            let object: LayaServer = serde_json::from_value(object).unwrap();
            servers
                .create(&PostParams::default(), &object)
                .await
                .unwrap();
        }
        let digest = model
            .status
            .as_ref()
            .and_then(|status| status.digest.clone());
        let champion =
            json!({"model": model.name_any(), "digest": digest, "revision": "0123456789"});
        let patch = Patch::Merge(json!({"status": {"champion": champion}}));
        servers
            .patch_status(server, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn remove_server(&self, server: &str) {
        let servers: Api<LayaServer> = Api::namespaced(self.client.clone(), NAMESPACE);
        servers
            .delete(server, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&LayaModel) -> bool,
    ) -> LayaModel {
        until(what, || async {
            let model = self.models().get(name).await.unwrap();
            if is(&model) {
                Ok(model)
            } else {
                Err(model.status)
            }
        })
        .await
    }

    pub(crate) async fn until_ready(&self, name: &str) -> LayaModel {
        self.until(name, "the model is Ready", |model| {
            says(model, "Ready") == Some((ConditionStatus::True, "Reconciled".to_owned()))
        })
        .await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        until("the model is gone", || async {
            let found = self.models().get_opt(name).await.unwrap();
            found.map_or(Ok(()), |model| Err(Box::new(model.status)))
        })
        .await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.models()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Reasons of all events, as a set.
    pub(crate) async fn events(&self) -> BTreeSet<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let events = events.list(&ListParams::default()).await.unwrap();
        events
            .items
            .into_iter()
            .filter_map(|event| event.reason)
            .collect()
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(FaultPoints::none())
    }

    pub(crate) fn start_with(&self, faults: FaultPoints) -> Running {
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
                backend: self.engine.clone(),
                laya_image: "laya@sha256:1".to_owned(),
                keep_trained: 3,
                tombstones: Arc::new(Remembered(self.store.clone())),
                unclaimed: self.unclaimed.clone(),
                reports: Arc::new(controller::reports::NoReports),
                own_addresses: controller::OwnAddresses::default(),
                doomed: self.doomed.clone(),
            }),
        });
        let (trigger, shutdown) = ShutdownTrigger::new();
        Running {
            trigger,
            metrics,
            task: tokio::spawn(controller.run(shutdown)),
        }
    }
}

pub(crate) struct Running {
    trigger: ShutdownTrigger,
    pub(crate) metrics: ControllerMetrics,
    task: JoinHandle<()>,
}

impl Running {
    /// Ends it as SIGTERM does.
    pub(crate) async fn end(self) {
        self.trigger.advance(Phase::Draining);
        timeout(PATIENCE, self.task)
            .await
            .expect("it drains")
            .unwrap();
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// The registry as text.
    pub(crate) fn exposition(&self) -> String {
        let encoder = prometheus::TextEncoder::new();
        encoder
            .encode_to_string(&self.metrics.process.registry.gather())
            .unwrap()
    }
}

/// Waits for a condition, and tells what was last seen when it does not come.
pub(crate) async fn until<T, E: Debug, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() > deadline => panic!("{what}: last seen {seen:#?}"),
            Err(_) => sleep(Duration::from_millis(15)).await,
        }
    }
}

/// Status and reason of a condition.
pub(crate) fn says(model: &LayaModel, kind: &str) -> Option<(ConditionStatus, String)> {
    let conditions = &model.status.as_ref()?.conditions;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == kind)?;
    Some((found.status, found.reason.clone()))
}

/// A source; each number is another checkpoint.
pub(crate) fn source(number: u8) -> Value {
    let sha = format!("{number:02x}").repeat(32);
    json!({"source": {"http": {"baseUrl": "https://example.org/v1/", "files": [
        {"path": "model.safetensors", "size": 700, "sha256": sha},
    ]}}})
}

/// Its checkpoint digest.
pub(crate) fn digest(model: &LayaModel) -> String {
    let http = model.spec.source.http.as_ref().unwrap();
    controller::layamodel::manifest_digest(&http.files)
}
