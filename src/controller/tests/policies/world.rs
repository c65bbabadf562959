//! An object source with a namespace of its own, what people do to policies in it, and a controller over it.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use api::kinds::{ConditionStatus, RoutingPolicy};
use controller::client::Deadlines;
use controller::clock::SystemClock;
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::{Controller, ControllerParts, Namespaces};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use prometheus::Registry;
use serde_json::{Value, json};
use service::runtime::{Phase, Readiness, ShutdownTrigger};
use service::telemetry::trace::Traces;
use service::telemetry::{BuildInfo, ProcessMetrics};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Longest wait for anything in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An object source, and where in it a test works.
pub(crate) struct World {
    /// Straight to the source.
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// What must live as long.
    _source: Box<dyn Send + Sync>,
}

impl World {
    /// A namespace that no other test has.
    pub(crate) fn new(client: Client, source: impl Send + Sync + 'static) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            client,
            namespace: format!("policies-{}-{number}", std::process::id()),
            _source: Box::new(source),
        }
    }

    pub(crate) fn policies(&self) -> Api<RoutingPolicy> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn revisions(&self) -> Api<ControllerRevision> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn create(&self, name: &str, spec: &Value) -> RoutingPolicy {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        });
        let object: RoutingPolicy = serde_json::from_value(object).unwrap();
        self.policies()
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    /// Changes fields of a spec; the generation it has then.
    pub(crate) async fn edit(&self, name: &str, spec: &Value) -> i64 {
        let patch = Patch::Merge(json!({"spec": spec}));
        let edited = self
            .policies()
            .patch(name, &PatchParams::default(), &patch)
            .await;
        edited.unwrap().metadata.generation.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.policies()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        until("the policy is gone", || async {
            let found = self.policies().get_opt(name).await.unwrap();
            found.is_none().then_some(()).ok_or(found)
        })
        .await;
    }

    pub(crate) async fn policy(&self, name: &str) -> RoutingPolicy {
        self.policies().get(name).await.unwrap()
    }

    /// Waits until a policy is so.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&RoutingPolicy) -> bool,
    ) -> RoutingPolicy {
        until(what, || async {
            let policy = self.policy(name).await;
            if is(&policy) {
                Ok(policy)
            } else {
                Err(policy.status)
            }
        })
        .await
    }

    /// Waits until the spec as it is now is in force.
    pub(crate) async fn until_in_force(&self, name: &str) -> RoutingPolicy {
        self.until(name, "the policy is in force", in_force).await
    }

    /// Names of the stored revisions of a policy, in order.
    pub(crate) async fn stored(&self, name: &str) -> Vec<String> {
        let list = self.revisions().list(&ListParams::default()).await.unwrap();
        let prefix = format!("rp-{name}-");
        let names = list.items.iter().map(ResourceExt::name_any);
        let mut names: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
        names.sort();
        names
    }

    /// Reasons of the events about a policy.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut events = events.list(&ListParams::default()).await.unwrap().items;
        events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
        let about = |event: &Event| {
            event
                .regarding
                .as_ref()
                .and_then(|object| object.name.clone())
        };
        events
            .into_iter()
            .filter(|event| about(event).as_deref() == Some(name))
            .map(|event| {
                (
                    event.reason.unwrap_or_default(),
                    event.note.unwrap_or_default(),
                )
            })
            .collect()
    }

    /// A controller straight over the source.
    pub(crate) fn start(&self) -> Running {
        self.start_with(
            self.client.clone(),
            FaultPoints::none(),
            Deadlines::default(),
        )
    }

    pub(crate) fn start_with(
        &self,
        client: Client,
        faults: FaultPoints,
        deadlines: Deadlines,
    ) -> Running {
        self.start_traced(client, faults, deadlines, Traces::off())
    }

    pub(crate) fn start_traced(
        &self,
        client: Client,
        faults: FaultPoints,
        deadlines: Deadlines,
        traces: Traces,
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
            client,
            deadlines,
            namespaces: Namespaces::Only(vec![self.namespace.clone()]),
            metrics: metrics.clone(),
            traces,
            fence: Fence::only_instance(),
            clock: Arc::new(SystemClock),
            ready: readiness.check("objects"),
            faults,
            instance: None,
            engine: None,
        });
        let (trigger, shutdown) = ShutdownTrigger::new();
        Running {
            trigger,
            metrics,
            readiness,
            task: tokio::spawn(controller.run(shutdown)),
        }
    }
}

/// A controller that runs.
pub(crate) struct Running {
    trigger: ShutdownTrigger,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) readiness: Readiness,
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
            Err(_) => sleep(Duration::from_millis(15)).await,
        }
    }
}

/// Status and reason of a condition.
pub(crate) fn condition(policy: &RoutingPolicy, kind: &str) -> Option<(ConditionStatus, String)> {
    let conditions = &policy.status.as_ref()?.conditions;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == kind)?;
    Some((found.status, found.reason.clone()))
}

/// Message of a condition.
pub(crate) fn message(policy: &RoutingPolicy, kind: &str) -> String {
    let conditions = policy
        .status
        .as_ref()
        .map(|status| status.conditions.clone());
    let mut conditions = conditions.unwrap_or_default().into_iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    found.map(|condition| condition.message).unwrap_or_default()
}

pub(crate) fn revision(policy: &RoutingPolicy) -> Option<String> {
    policy.status.as_ref()?.accepted_revision.clone()
}

/// Whether the spec as it is now is in force.
pub(crate) fn in_force(policy: &RoutingPolicy) -> bool {
    let generation = policy.metadata.generation;
    let status = policy.status.clone().unwrap_or_default();
    status.accepted_generation == generation
        && status.observed_generation == generation
        && condition(policy, "Ready") == Some((ConditionStatus::True, "Reconciled".to_owned()))
}

/// A spec that compiles; each number is another one.
pub(crate) fn good(number: u32) -> Value {
    json!({"deadlines": {"timeoutMillis": 1_000 + number}})
}

/// A spec that an API server takes and that does not compile.
pub(crate) fn bad() -> Value {
    json!({"models": [{"ref": "acme/small"}], "tiers": [{"name": "fast", "models": ["acme/small", "acme/other"]}]})
}
