//! One pass over one object: check, observe, plan, act, write status, tell. Whatever happens in it ends in a result and a
//! time to look again; nothing in it can end the driver.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde_json::Value;
use service::telemetry::trace::{self, Pass, Subject};

use super::{Driver, PASS_DEADLINE};
use crate::backoff::jitter;
use crate::clock::Now;
use crate::failure::{Failure, Remedy};
use crate::faults::FaultPoint;
use crate::metrics::PassResult;
use crate::queue::Key;
use crate::reconciler::{Destroys, Effect, EventDraft, Observed, Plan, Reconciler, Requeue, Seen};
use crate::status_writer::{Wish, WriteError};
use crate::watched::Watched;

/// How a pass that did not fail ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) result: PassResult,
    pub(super) requeue: Requeue,
}

/// Whether a status write changed the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrote {
    /// It is other than before.
    Something,
    /// It was right already, or the server dropped all that differed.
    Nothing,
}

/// After what was done its effect is looked at as soon as the debounce allows.
const AT_ONCE: Requeue = Requeue::After(Duration::ZERO);

pub(super) async fn pass<R: Reconciler>(
    cached: Arc<Watched<R::Object>>,
    driver: Arc<Driver<R>>,
) -> Result<Action, Infallible> {
    let metrics = &driver.context.metrics;
    let kind = R::KIND.as_str();
    let key = Key::of(cached.as_ref());
    if let Some(wait) = driver.queue.begun(&key) {
        metrics.waited(kind, wait);
    }
    let object = driver.fresh.newest(cached);
    let uid = object.uid().unwrap_or_default();
    let began = Instant::now();
    let span = driver.context.traces.pass(&Subject {
        kind,
        namespace: &key.namespace,
        name: &key.name,
        generation: object.meta().generation,
    });
    let run = AssertUnwindSafe(driver.step(&object, &key, &span)).catch_unwind();
    let ended = match tokio::time::timeout(PASS_DEADLINE, run).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(_panic)) => {
            metrics.process.task_panics.inc();
            Err(Failure::Panicked)
        }
        Err(_elapsed) => Err(Failure::TimedOut {
            after: PASS_DEADLINE,
        }),
    };
    let error = ended.as_ref().err().map(Failure::word);
    let (result, delay) = match ended {
        Ok(Ended { result, requeue }) => {
            driver.backoff.cleared(&uid);
            // While another one fails, one that works tells nothing new.
            if driver.backoff.is_empty()
                && let Some(count) = driver.errors.recovered()
            {
                tracing::info!(kind, failures = count, "passes work again");
            }
            let spread = jitter(driver.context.seed, &uid, 0);
            (result, requeue.delay(spread))
        }
        Err(failure) => driver.failed(&key, &uid, &failure),
    };
    metrics.passed(kind, result, began.elapsed());
    span.ended(result.as_str(), error);
    tracing::debug!(
        kind,
        namespace = key.namespace,
        name = key.name,
        generation = object.meta().generation,
        result = result.as_str(),
        "passed"
    );
    Ok(delay.map_or_else(Action::await_change, Action::requeue))
}

impl<R: Reconciler> Driver<R> {
    /// When to look again after a failure.
    fn failed(&self, key: &Key, uid: &str, failure: &Failure) -> (PassResult, Option<Duration>) {
        let kind = R::KIND.as_str();
        let log = || {
            if let Some(count) = self.errors.occurred() {
                let Key { namespace, name } = key;
                tracing::warn!(kind, namespace, name, count, error = %failure, "the pass failed");
            }
        };
        match failure.remedy() {
            Remedy::BackOff => {
                log();
                (PassResult::Error, Some(self.backoff.failed(uid)))
            }
            // Somebody else writes; a tenth of the back-off keeps two writers from racing for ever.
            Remedy::FreshRead => (PassResult::Error, Some(self.backoff.failed(uid) / 10)),
            Remedy::Change => {
                self.backoff.stalled(uid);
                log();
                let spread = jitter(self.context.seed, uid, 0);
                (PassResult::Stalled, Requeue::Stalled.delay(spread))
            }
            Remedy::Nothing => (PassResult::Unchanged, None),
        }
    }

    async fn step(
        &self,
        object: &Watched<R::Object>,
        key: &Key,
        span: &Pass,
    ) -> Result<Ended, Failure> {
        let known = match object {
            Watched::Parsed(known) => known,
            Watched::Unparsed(unparsed) => return self.report_unparsed(key, unparsed, span).await,
        };
        if let Some(ended) = self.report_mismatch(key, known, span).await? {
            return Ok(ended);
        }
        let now = self.context.clock.now();
        match self.run_plan(known, key, &now, span).await {
            Err(failure) if failure.reason().is_some() => {
                let failure = Seen::of(failure);
                let status = R::failed(known, &failure, &now);
                self.write(known, key, &status, span).await?;
                self.tell(known, R::failed_events(known, failure.get()), &now);
                Err(failure.get().clone())
            }
            ended => ended,
        }
    }

    async fn run_plan(
        &self,
        known: &R::Object,
        key: &Key,
        now: &Now,
        span: &Pass,
    ) -> Result<Ended, Failure> {
        let checked = self.reconciler.check(known, now);
        let look = self.reconciler.observe(known, &checked);
        let seen = Seen::of(trace::within(span, "observe", Failure::word, look).await?);
        let plan = async { Ok(R::plan(known, &checked, &seen, now)) };
        let Plan {
            actions,
            status,
            events,
            requeue,
        } = trace::within(span, "plan", Failure::word, plan).await?;
        let mut acted = false;
        let mut destroyed = false;
        for action in &actions {
            let destroys = action.destroys() == Destroys::Something;
            if destroys && destroyed {
                continue;
            }
            destroyed |= destroys;
            let act = self.act(known, action);
            trace::within(span, action.name(), Failure::word, act).await?;
            acted = true;
        }
        let wrote = self.write(known, key, &status, span).await?;
        self.tell(known, events, now);
        let changed = acted || wrote == Wrote::Something;
        let stalled = R::conditions(status.get())
            .iter()
            .any(|condition| condition.type_ == "Stalled");
        let result = match requeue {
            _ if changed => PassResult::Changed,
            _ if stalled => PassResult::Stalled,
            Requeue::Waiting => PassResult::Waiting,
            _ => PassResult::Unchanged,
        };
        let requeue = if changed { AT_ONCE } else { requeue };
        Ok(Ended { result, requeue })
    }

    async fn act(&self, known: &R::Object, action: &R::Action) -> Result<(), Failure> {
        let name = action.name();
        let faults = &self.context.faults;
        faults.reach(FaultPoint::BeforeAction(name)).await;
        self.context
            .fence
            .check()
            .map_err(|source| Failure::Fenced {
                verb: name,
                resource: action.target(),
                source,
            })?;
        let began = Instant::now();
        let act = self.reconciler.act(known, action);
        let done = within(action.deadline(), name, || action.target(), act).await;
        let result = if done.is_ok() { "done" } else { "failed" };
        let took = began.elapsed();
        self.context
            .metrics
            .acted(action.backend(), name, result, took);
        if done.is_ok() {
            faults.reach(FaultPoint::AfterAction(name)).await;
        }
        done
    }

    /// Writes a status if it differs from the one there is.
    async fn write(
        &self,
        known: &R::Object,
        key: &Key,
        status: &Observed<R::Status>,
        span: &Pass,
    ) -> Result<Wrote, Failure> {
        if R::status(known) == Some(status.get()) {
            return Ok(Wrote::Nothing);
        }
        // Cannot fail: a status holds strings, numbers, lists and structs only.
        let tree = serde_json::to_value(status.get()).unwrap_or(Value::Null);
        self.write_tree(known.meta(), key, tree, span).await
    }

    pub(super) async fn write_tree(
        &self,
        metadata: &kube::core::ObjectMeta,
        key: &Key,
        status: Value,
        span: &Pass,
    ) -> Result<Wrote, Failure> {
        let write = self.put_status(metadata, key, status);
        trace::within(span, "status", Failure::word, write).await
    }

    async fn put_status(
        &self,
        metadata: &kube::core::ObjectMeta,
        key: &Key,
        status: Value,
    ) -> Result<Wrote, Failure> {
        let resource_version = metadata.resource_version.clone().unwrap_or_default();
        let wish = Wish {
            kind: R::KIND,
            key: key.clone(),
            resource_version: resource_version.clone(),
            status,
        };
        match self.context.writer.write(wish).await {
            Ok(object) => {
                let version = &object["metadata"]["resourceVersion"];
                let wrote = if version == resource_version.as_str() {
                    Wrote::Nothing
                } else {
                    Wrote::Something
                };
                self.put_fresh(&object);
                Ok(wrote)
            }
            Err(WriteError::Api(failure)) => {
                if failure.remedy() == Remedy::FreshRead {
                    let object = self.read(key).await?;
                    self.put_fresh(&object);
                }
                Err(failure)
            }
            Err(WriteError::Fenced(source)) => Err(Failure::Fenced {
                verb: "apply",
                resource: format!("status of {} {}", R::KIND, key.name),
                source,
            }),
            Err(error) => Err(Failure::Unavailable {
                verb: "apply",
                resource: format!("status of {} {}", R::KIND, key.name),
                message: error.to_string(),
            }),
        }
    }

    /// The object as it is now, untyped.
    pub(super) async fn read(&self, key: &Key) -> Result<Value, Failure> {
        let what = || format!("{} {}/{}", R::KIND, key.namespace, key.name);
        let url = R::Object::url_path(&(), Some(&key.namespace));
        let request = kube::api::Request::new(url)
            .get(&key.name, &kube::api::GetParams::default())
            .map_err(|error| Failure::Unavailable {
                verb: "get",
                resource: what(),
                message: error.to_string(),
            })?;
        let read = self.context.client.request::<Value>(request).await;
        read.map_err(|error| Failure::of("get", what(), &error))
    }

    fn put_fresh(&self, object: &Value) {
        // An answer that is no object at all is no better than the cache.
        if let Ok(object) = Watched::deserialize(object) {
            self.fresh.put(object);
        }
    }

    fn tell(&self, known: &R::Object, events: Vec<EventDraft>, now: &Now) {
        // As it stood: an event that repeats one about another version of the object would be shown with the first one's
        // note.
        let regarding = ObjectReference {
            resource_version: known.meta().resource_version.clone(),
            ..known.object_ref(&())
        };
        for event in events {
            self.context.events.publish(&regarding, event, now);
        }
    }
}

/// The answer of an action, or that there was none in time.
async fn within(
    deadline: Duration,
    verb: &'static str,
    resource: impl Fn() -> String,
    act: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let done = tokio::time::timeout(deadline, act).await;
    done.unwrap_or_else(|_| {
        Err(Failure::Unavailable {
            verb,
            resource: resource(),
            message: format!("no answer within {} s", deadline.as_secs()),
        })
    })
}
