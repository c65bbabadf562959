//! An object source, an engine, replicas that answer as a test says, and a controller over them. Engine and replicas
//! outlive a controller that is killed.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::kinds::{ConditionStatus, LayaModel, LayaServer, LayaServerStatus};
use api::revisions::{RevisionReport, RevisionReports};
use backend::Hint;
use controller::client::Deadlines;
use controller::clock::{Clock, Now, SystemClock};
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::reports::InProcessReports;
use controller::{Controller, ControllerParts, Engine, Namespaces, NoTombstones, UnclaimedOwners};
use decision::contract::Digest;
use decision::relay_contract;
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
use testkit::backend::FakeBackend;
use testkit::{FakeLaya, Fault, Says};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Longest wait for anything in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Where everything is.
pub(crate) const NAMESPACE: &str = "serving";

/// What replicas with a checkpoint do.
#[derive(Debug, Clone)]
pub(crate) struct Plays {
    pub(crate) says: Says,
    pub(crate) fault: Fault,
}

/// The machine's clocks, moved forward by a test.
#[derive(Debug, Default)]
pub(crate) struct MovedClock {
    seconds: AtomicU64,
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

/// Replicas by uid of the server, revision and number.
type Fleet = HashMap<(String, String, u32), FakeLaya>;

/// Everything but a controller.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) engine: Arc<FakeBackend>,
    pub(crate) clock: Arc<MovedClock>,
    fleet: Arc<Mutex<Fleet>>,
    plays: Arc<Mutex<HashMap<String, Plays>>>,
    report: Arc<Mutex<RevisionReports>>,
    _store: (ObjectStore, tempfile::TempDir),
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(FakeBackend::docker()).await
    }

    pub(crate) async fn with(engine: Arc<FakeBackend>) -> Self {
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
        let fleet = Arc::new(Mutex::new(Fleet::new()));
        let plays = Arc::new(Mutex::new(HashMap::<String, Plays>::new()));
        let (replicas, roles) = (fleet.clone(), plays.clone());
        engine.addresses(move |owner, spec, ordinal| {
            let digest = &spec.inputs.digest;
            let plays = roles.lock().unwrap().get(digest).cloned();
            let plays = plays.unwrap_or_else(|| good(digest));
            let fake = FakeLaya::start_now(plays.says);
            fake.fail(plays.fault);
            let url = fake.url();
            let key = (owner.uid.clone(), spec.revision.clone(), ordinal);
            // One that ran there before ends.
            replicas.lock().unwrap().insert(key, fake);
            Some(url)
        });
        let clock = Arc::new(MovedClock::default());
        let engine_clock = clock.clone();
        engine.time(move || engine_clock.now().wall);
        Self {
            client,
            engine,
            clock,
            fleet,
            plays,
            report: Arc::default(),
            _store: (opened.store, folder),
        }
    }

    /// From now on replicas with the checkpoint of this model are made so.
    pub(crate) fn play(&self, model: &str, says: Says, fault: Fault) {
        let mut plays = self.plays.lock().unwrap();
        plays.insert(digest(model), Plays { says, fault });
    }

    /// Does something with the replica of a revision that was made last.
    pub(crate) fn replica<T>(&self, revision: &str, act: impl FnOnce(&FakeLaya) -> T) -> T {
        let fleet = self.fleet.lock().unwrap();
        let mut of = fleet.iter().filter(|((_, of, _), _)| of == revision);
        act(of.next().expect("a replica of the revision").1)
    }

    /// Time passes: deadlines, not sleeps.
    pub(crate) fn forward(&self, seconds: u64) {
        self.clock.seconds.fetch_add(seconds, Ordering::SeqCst);
        self.engine.hint(Hint::Everything);
    }

    /// The router has seen this many requests of each revision.
    pub(crate) fn report(&self, server: &str, revisions: &[(&str, u64, u64)]) {
        let revisions = revisions
            .iter()
            .map(|(revision, requests, errors)| RevisionReport {
                revision: (*revision).to_owned(),
                requests: *requests,
                errors: *errors,
                p50_millis: Some(5),
                p95_millis: Some(9),
                ..RevisionReport::default()
            });
        *self.report.lock().unwrap() = RevisionReports {
            instance: "router".to_owned(),
            server: format!("{NAMESPACE}/{server}"),
            // Of a router that has every change at once.
            traffic_generation: i64::MAX,
            revisions: revisions.collect(),
        };
    }

    pub(crate) fn servers(&self) -> Api<LayaServer> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn models(&self) -> Api<LayaModel> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// A model whose checkpoint has the digest [`digest`] gives its name.
    pub(crate) async fn create_model(&self, name: &str) {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel",
            "metadata": {"name": name},
            "spec": {
                "contract": relay_contract().digest().to_string(), "manifestDigest": digest(name),
                "source": {"oci": {"reference": format!("registry.example/{name}@{}", digest(name))}},
            },
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

    /// A server that serves a model.
    pub(crate) async fn serving(&self, name: &str, model: &str) -> LayaServerStatus {
        self.create_model(model).await;
        self.create(name, model, &json!({})).await;
        self.until_serves(name, model).await
    }

    /// Reasons of the events about a server, in order.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut events = events.list(&ListParams::default()).await.unwrap().items;
        events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
        let about = |event: &Event| event.regarding.as_ref()?.name.clone();
        let of = events
            .into_iter()
            .filter(|event| about(event).as_deref() == Some(name));
        of.map(|event| event.reason.unwrap_or_default()).collect()
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
        let report = self.report.clone();
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
                laya_image: "laya:test".to_owned(),
                keep_trained: 3,
                tombstones: Arc::new(NoTombstones),
                unclaimed: UnclaimedOwners::default(),
                reports: Arc::new(InProcessReports(move || report.lock().unwrap().clone())),
                own_addresses: controller::OwnAddresses::default(),
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

/// A controller that runs.
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
}

/// Digest of the checkpoint of a model.
pub(crate) fn digest(model: &str) -> String {
    Digest::of(model.as_bytes()).to_string()
}

/// A replica that works.
pub(crate) fn good(digest: &str) -> Plays {
    Plays {
        says: Says::relay().serving(digest),
        fault: Fault::None,
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

/// Status and reason of a condition.
pub(crate) fn condition(
    status: &LayaServerStatus,
    kind: &str,
) -> Option<(ConditionStatus, String)> {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind)?;
    Some((found.status, found.reason.clone()))
}

/// Message of a condition.
pub(crate) fn message(status: &LayaServerStatus, kind: &str) -> String {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    found.map_or_else(String::new, |condition| condition.message.clone())
}

/// Whether a condition holds.
pub(crate) fn holds(status: &LayaServerStatus, kind: &str) -> bool {
    condition(status, kind).is_some_and(|(status, _)| status == ConditionStatus::True)
}

/// Revisions and weights of the targets.
pub(crate) fn targets(status: &LayaServerStatus) -> Vec<(String, i32)> {
    let traffic = status.traffic.clone().unwrap_or_default();
    let target = |target: api::kinds::laya_server::Target| {
        (
            target.revision.unwrap_or_default(),
            target.weight.unwrap_or(0),
        )
    };
    traffic.targets.into_iter().map(target).collect()
}

/// The revision of the champion.
pub(crate) fn champion(status: &LayaServerStatus) -> String {
    let champion = status.champion.clone().unwrap_or_default();
    champion.revision.unwrap_or_default()
}

/// Whether a model has all traffic.
pub(crate) fn serves(status: &LayaServerStatus, model: &str) -> bool {
    let named = status.champion.as_ref().and_then(|it| it.model.as_deref());
    named == Some(model) && targets(status) == [(champion(status), 100)] && holds(status, "Ready")
}

/// Whether no rollout is under way.
pub(crate) fn is_at_rest(status: &LayaServerStatus) -> bool {
    let state = status.rollout.as_ref().and_then(|rollout| rollout.state);
    state.is_none_or(|state| state.as_str() == "Done") && status.candidate.is_none()
}

/// What a failed wait shows of a server.
pub(crate) fn told(status: &LayaServerStatus) -> Value {
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|it| {
            format!(
                "{}={} {}: {}",
                it.type_,
                it.status.as_str(),
                it.reason,
                it.message
            )
        })
        .collect();
    json!({
        "conditions": conditions, "rollout": status.rollout, "traffic": status.traffic,
        "champion": status.champion, "candidate": status.candidate, "previous": status.previous,
        "rejected": status.rejected, "history": status.history, "wish": status.wish,
    })
}
