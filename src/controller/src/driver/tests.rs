//! What a pass does with a kind that misbehaves.

use std::sync::atomic::{AtomicUsize, Ordering};

use api::group::Kind;
use api::kinds::{Condition, RoutingPolicy, RoutingPolicyStatus};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::Body;
use kube::runtime::controller::Action;
use serde_json::{Value, json};
use service::telemetry::trace::Traces;
use tower::{BoxError, service_fn};

use super::*;
use crate::clock::{Now, SystemClock};
use crate::context::Namespaces;
use crate::events::Events;
use crate::failure::Failure;
use crate::faults::FaultPoints;
use crate::fence::Fence;
use crate::metrics::tests::metrics;
use crate::metrics::{PassResult, WriteResult};
use crate::reconciler::{Destroys, Effect, Evidence, Observed, Plan, Requeue, Seen};
use crate::status_writer::StatusWriter;

/// What its objects make it do, by their name.
#[derive(Debug, Default)]
struct Odd {
    destroyed: AtomicUsize,
}

#[derive(Debug)]
struct Destroy;

struct Looked;

impl Evidence for Looked {}

impl Effect for Destroy {
    fn backend(&self) -> &'static str {
        "test"
    }

    fn name(&self) -> &'static str {
        "Destroy"
    }

    fn destroys(&self) -> Destroys {
        Destroys::Something
    }

    fn target(&self) -> String {
        "everything".to_owned()
    }
}

impl Reconciler for Odd {
    const KIND: Kind = Kind::RoutingPolicy;
    type Object = RoutingPolicy;
    type Status = RoutingPolicyStatus;
    type Checked = ();
    type Observation = Looked;
    type Action = Destroy;

    fn status(object: &RoutingPolicy) -> Option<&RoutingPolicyStatus> {
        object.status.as_ref()
    }

    fn conditions(status: &RoutingPolicyStatus) -> &[Condition] {
        &status.conditions
    }

    fn check(&self, object: &RoutingPolicy, _: &Now) {
        assert_ne!(
            object.metadata.name.as_deref(),
            Some("panics"),
            "on purpose"
        );
    }

    async fn observe(&self, object: &RoutingPolicy, (): &()) -> Result<Looked, Failure> {
        if object.metadata.name.as_deref() == Some("hangs") {
            std::future::pending::<()>().await;
        }
        Ok(Looked)
    }

    fn plan(object: &RoutingPolicy, (): &(), seen: &Seen<Looked>, _: &Now) -> Plan<Self> {
        let destroys = object.metadata.name.as_deref() == Some("destroys");
        let status = RoutingPolicyStatus {
            observed_generation: object.metadata.generation,
            ..RoutingPolicyStatus::default()
        };
        Plan {
            actions: if destroys {
                vec![Destroy, Destroy, Destroy]
            } else {
                Vec::new()
            },
            status: seen.status(status),
            events: Vec::new(),
            requeue: Requeue::Steady,
        }
    }

    async fn act(&self, _: &RoutingPolicy, _: &Destroy) -> Result<(), Failure> {
        self.destroyed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn failed(
        _: &RoutingPolicy,
        failure: &Seen<Failure>,
        _: &Now,
    ) -> Observed<RoutingPolicyStatus> {
        failure.status(RoutingPolicyStatus::default())
    }

    fn forget(&self, _: &str) {}
}

/// A driver whose server answers a write with what it was sent, one version on.
fn driver(fence: Fence) -> Arc<Driver<Odd>> {
    let server = service_fn(|request: Request<Body>| async {
        let body = request.into_body().collect().await?.to_bytes();
        let mut object: Value = serde_json::from_slice(&body)?;
        object["metadata"]["resourceVersion"] = json!("42");
        object["metadata"]["uid"] = object["metadata"]["name"].clone();
        object["metadata"]["generation"] = json!(3);
        object["spec"] = json!({});
        Ok::<_, BoxError>(Response::new(Full::new(bytes::Bytes::from(
            object.to_string(),
        ))))
    });
    let client = Client::new(server, "space");
    let metrics = metrics();
    let (events, _) = Events::new(client.clone(), None, &metrics);
    let (writer, writing) = StatusWriter::new(
        client.clone(),
        fence.clone(),
        FaultPoints::none(),
        metrics.clone(),
    );
    tokio::spawn(writing.run());
    let context = Context {
        client,
        namespaces: Namespaces::All,
        clock: Arc::new(SystemClock),
        fence,
        faults: FaultPoints::none(),
        writer,
        events,
        metrics,
        traces: Traces::off(),
        seed: 1,
    };
    let (_, schema) = watch::channel(Arc::default());
    Driver::new(Odd::default(), Arc::new(context), Queue::default(), schema).0
}

fn object(name: &str, status: &Value) -> Arc<Watched<RoutingPolicy>> {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": name, "namespace": "space", "uid": name, "generation": 3, "resourceVersion": "41"},
        "spec": {}, "status": status,
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

async fn pass_over(driver: &Arc<Driver<Odd>>, name: &str) -> Action {
    let passed = pass::pass(object(name, &json!({})), driver.clone()).await;
    passed.unwrap_or_else(|never| match never {})
}

fn passes(driver: &Driver<Odd>, result: PassResult) -> u64 {
    driver.context.metrics.passes("RoutingPolicy", result)
}

#[tokio::test]
async fn a_pass_that_panics_costs_its_object_a_wait_and_nobody_else_anything() {
    let driver = driver(Fence::only_instance());
    let action = pass_over(&driver, "panics").await;
    assert_ne!(action, Action::await_change());
    assert_eq!(driver.context.metrics.process.task_panics.get(), 1);
    assert_eq!(
        (passes(&driver, PassResult::Error), driver.backoff.len()),
        (1, 1)
    );
    let _ = pass_over(&driver, "fine").await;
    assert_eq!(passes(&driver, PassResult::Changed), 1);
}

#[tokio::test]
async fn fault_39_an_object_that_keeps_failing_is_one_series_of_errors_whatever_others_do() {
    let driver = driver(Fence::only_instance());
    for _ in 0..5 {
        let _ = pass_over(&driver, "panics").await;
        let _ = pass_over(&driver, "fine").await;
    }
    let suppressed = &driver.context.metrics.process.log_suppressed;
    assert_eq!(suppressed.get(), 4, "only the first was logged");
    let _ = pass::pass(object("panics", &json!({})), driver.clone()).await;
    assert_eq!(suppressed.get(), 5);
    // It is deleted: from now on passes work, and a later failure is news.
    driver.changed(Change::Deleted(object("panics", &json!({}))));
    let _ = pass_over(&driver, "fine").await;
    assert_eq!(driver.errors.occurred(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_ends_at_its_deadline() {
    let driver = driver(Fence::only_instance());
    let began = tokio::time::Instant::now();
    let _ = pass_over(&driver, "hangs").await;
    assert_eq!(began.elapsed(), PASS_DEADLINE);
    assert_eq!(
        (passes(&driver, PassResult::Error), driver.backoff.len()),
        (1, 1)
    );
}

#[tokio::test]
async fn at_most_one_thing_is_destroyed_in_a_pass() {
    let driver = driver(Fence::only_instance());
    let action = pass_over(&driver, "destroys").await;
    assert_eq!(driver.reconciler.destroyed.load(Ordering::SeqCst), 1);
    assert_eq!(
        action,
        Action::requeue(Duration::ZERO),
        "its effect is looked at by the next pass"
    );
}

#[tokio::test]
async fn fault_10_without_the_right_nothing_is_done_or_written() {
    let (fence, _keeper) = Fence::lease(Arc::new(SystemClock));
    let driver = driver(fence);
    for name in ["destroys", "fine"] {
        let _ = pass_over(&driver, name).await;
    }
    assert_eq!(driver.reconciler.destroyed.load(Ordering::SeqCst), 0);
    assert_eq!(
        driver
            .context
            .metrics
            .status_writes("RoutingPolicy", WriteResult::Written),
        0
    );
    assert_eq!(passes(&driver, PassResult::Error), 2);
}

#[tokio::test]
async fn a_status_that_is_right_is_not_written_and_one_that_was_written_is_known() {
    let driver = driver(Fence::only_instance());
    let right = object("fine", &json!({"observedGeneration": 3}));
    let action = pass::pass(right, driver.clone())
        .await
        .unwrap_or_else(|never| match never {});
    assert_ne!(action, Action::requeue(Duration::ZERO));
    assert_eq!(
        driver
            .context
            .metrics
            .status_writes("RoutingPolicy", WriteResult::Written),
        0
    );
    for _ in 0..2 {
        // The cache is behind in both passes; the second knows what the first one wrote.
        let _ = pass_over(&driver, "other").await;
    }
    assert_eq!(
        driver
            .context
            .metrics
            .status_writes("RoutingPolicy", WriteResult::Written),
        1
    );
}

#[tokio::test]
async fn only_what_people_wish_asks_for_a_pass() {
    let driver = driver(Fence::only_instance());
    let asks = |change: &Value| {
        let mut tree = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
            "metadata": {"name": "team", "namespace": "space", "uid": "u1", "generation": 3, "resourceVersion": "41"},
            "spec": {},
        });
        for (key, value) in change.as_object().unwrap() {
            tree["metadata"][key] = value.clone();
        }
        let object: Watched<RoutingPolicy> = serde_json::from_value(tree).unwrap();
        let key = Key::of(&object);
        driver.changed(Change::Applied(Arc::new(object)));
        driver.queue.begun(&key).is_some()
    };
    assert!(asks(&json!({})), "it is new");
    for (name, change, asked) in [
        ("a status write", json!({"resourceVersion": "42"}), false),
        ("an edit", json!({"generation": 4}), true),
        (
            "a finalizer",
            json!({"generation": 4, "finalizers": ["example.com/hold"]}),
            true,
        ),
        (
            "a deletion",
            json!({"generation": 4, "finalizers": ["example.com/hold"], "deletionTimestamp": "2026-11-30T10:00:00Z"}),
            true,
        ),
        ("back again", json!({"generation": 4}), true),
        (
            "an annotation of somebody",
            json!({"generation": 4, "annotations": {"example.com/a": "b"}}),
            false,
        ),
        (
            "an annotation of ours",
            json!({"generation": 4, "annotations": {"relay.dev/verify": "n1"}}),
            true,
        ),
        (
            "another object of the name",
            json!({"generation": 4, "uid": "u2"}),
            true,
        ),
    ] {
        assert_eq!(asks(&change), asked, "{name}");
    }
}
