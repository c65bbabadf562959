//! Wires one kind: watches fill its cache, changes ask for passes, `applier` runs them. No decisions.

mod feed;
mod fresh;
mod pass;
mod report;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::condition::ConditionType;
use futures_util::{FutureExt, StreamExt, stream};
use kube::Resource;
use kube::runtime::controller::{self, ReconcileRequest, applier};
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use service::runtime::Shutdown;
use service::telemetry::RepeatedError;
use tokio::sync::watch;

pub use feed::Feed;

use crate::backoff::Backoff;
use crate::context::Context;
use crate::merge::Change;
use crate::queue::{Key, Queue};
use crate::reconciler::Reconciler;
use crate::schema::Difference;
use crate::watched::Watched;
use fresh::Fresh;

/// Passes of one kind at once.
pub const CONCURRENCY: u16 = 4;
/// From a change to its pass; further changes do not push it away.
pub const DEBOUNCE: Duration = Duration::from_millis(50);
/// For a whole pass.
pub const PASS_DEADLINE: Duration = Duration::from_secs(30);
/// For the passes under way when the process drains: below the deadline of the drain, of which what comes after has the
/// rest. A pass that is cut then is harmless (7.1).
pub const END_DEADLINE: Duration = Duration::from_secs(15);
/// For one action.
pub const ACTION_DEADLINE: Duration = Duration::from_secs(5);
/// For one action on an engine that makes, starts or removes something (7.2).
pub const ENGINE_DEADLINE: Duration = Duration::from_secs(30);
/// Prefix of annotations that ask something of us.
const OUR_ANNOTATIONS: &str = "relay.dev/";

/// Drives one kind.
#[derive(Debug)]
pub struct Driver<R: Reconciler> {
    reconciler: R,
    context: Arc<Context>,
    queue: Queue,
    store: Store<Watched<R::Object>>,
    backoff: Backoff,
    fresh: Fresh<R::Object>,
    schema: watch::Receiver<Arc<Difference>>,
    /// What of each object asks for a pass, by key: the hash of its predicate.
    known: Mutex<std::collections::HashMap<Key, u64>>,
    errors: RepeatedError,
}

impl<R: Reconciler> Driver<R> {
    /// A driver and the watches of its own kind. What else changes its objects pushes into `queue`.
    #[must_use]
    pub fn new(
        reconciler: R,
        context: Arc<Context>,
        queue: Queue,
        schema: watch::Receiver<Arc<Difference>>,
    ) -> (Arc<Self>, Feed<Watched<R::Object>>) {
        let feed = Feed::new(&context, &watcher::Config::default(), |_| {});
        Self::with_feed(reconciler, context, queue, schema, feed)
    }

    /// The same around watches that the caller made, because the reconciler reads their cache too.
    #[must_use]
    pub fn with_feed(
        reconciler: R,
        context: Arc<Context>,
        queue: Queue,
        schema: watch::Receiver<Arc<Difference>>,
        feed: Feed<Watched<R::Object>>,
    ) -> (Arc<Self>, Feed<Watched<R::Object>>) {
        let store = feed.store();
        let counted = store.clone();
        context
            .metrics
            .count_objects(move |count| count_conditions::<R>(&counted, count));
        let driver = Self {
            reconciler,
            backoff: Backoff::new(context.seed),
            errors: RepeatedError::new(context.metrics.process.log_suppressed.clone()),
            context,
            queue,
            store,
            fresh: Fresh::default(),
            schema,
            known: Mutex::default(),
        };
        (Arc::new(driver), feed)
    }

    /// Takes a change of an object of the kind: asks for a pass unless it is one that passes make themselves.
    pub fn changed(&self, change: Change<Watched<R::Object>>) {
        match change {
            Change::Applied(object) => {
                let key = Key::of(object.as_ref());
                let wish = wish_hash(object.as_ref());
                let before = self.known().insert(key.clone(), wish);
                if before != Some(wish) {
                    self.queue.push(key);
                }
            }
            Change::Deleted(object) => {
                let key = Key::of(object.as_ref());
                self.known().remove(&key);
                self.fresh.forget(&key);
                if let Some(uid) = &object.meta().uid {
                    self.backoff.cleared(uid);
                    self.reconciler.forget(uid);
                }
            }
        }
    }

    /// Asks for a pass of every object.
    pub fn push_all(&self) {
        for object in self.store.state() {
            self.queue.push(Key::of(object.as_ref()));
        }
    }

    /// Runs passes until the process drains, then ends those under way. `ready` is when every cache that decisions rest
    /// on is complete: before, “not in the cache” means nothing.
    pub async fn run(
        self: Arc<Self>,
        ready: impl Future<Output = ()> + Send + 'static,
        shutdown: Shutdown,
    ) {
        let keys = self.queue.clone();
        let draining = shutdown.clone();
        let ready = ready.shared();
        let requests = stream::once(ready.clone())
            .flat_map(move |()| keys.keys())
            .take_until(async move { draining.draining().await })
            .map(|key| {
                Ok::<_, Infallible>(ReconcileRequest::from(
                    key.object_ref::<Watched<R::Object>>(),
                ))
            });
        let config = controller::Config::default()
            .concurrency(CONCURRENCY)
            .debounce(DEBOUNCE);
        let passes = applier(
            |object, driver: Arc<Self>| pass::pass(object, driver).boxed(),
            |_, never: &Infallible, _| match *never {},
            self.clone(),
            self.store.clone(),
            requests,
            config,
        );
        let end = async {
            shutdown.draining().await;
            if ready.now_or_never().is_some() {
                tokio::time::sleep(END_DEADLINE).await;
            }
        };
        tokio::select! {
            () = passes.for_each(|passed| {
                self.passed(passed);
                std::future::ready(())
            }) => {}
            () = end => {}
        }
    }

    fn passed<T, E: std::error::Error>(&self, passed: Result<T, controller::Error<E, Infallible>>) {
        if let Err(controller::Error::ObjectNotFound(object)) = passed {
            // It was deleted between its change and its pass, which will not begin.
            let _ = self.queue.begun(&Key {
                namespace: object.namespace.clone().unwrap_or_default(),
                name: object.name.clone(),
            });
        }
        let kind = R::KIND.as_str();
        let gauge = |gauge: &prometheus::IntGaugeVec, value: usize| {
            gauge
                .with_label_values(&[kind])
                .set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        gauge(&self.context.metrics.queue_depth, self.queue.depth());
        gauge(&self.context.metrics.backoff_objects, self.backoff.len());
    }

    fn known(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<Key, u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What of an object asks for a pass: who it is, its spec (by generation), finalizers, deletion, our annotations; not
/// its status, which passes write themselves.
fn wish_hash<K: Resource>(object: &K) -> u64 {
    let metadata = object.meta();
    let mut hasher = DefaultHasher::new();
    (&metadata.uid, metadata.generation, &metadata.finalizers).hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    let annotations = metadata.annotations.iter().flatten();
    for annotation in annotations.filter(|(key, _)| key.starts_with(OUR_ANNOTATIONS)) {
        annotation.hash(&mut hasher);
    }
    hasher.finish()
}

fn count_conditions<R: Reconciler>(
    store: &Store<Watched<R::Object>>,
    count: &mut dyn FnMut(&str, &str, &str),
) {
    for object in store.state() {
        let Watched::Parsed(object) = object.as_ref() else {
            count(R::KIND.as_str(), ConditionType::Ready.as_str(), "False");
            continue;
        };
        let conditions = R::status(object).map(R::conditions).unwrap_or_default();
        for condition in conditions {
            // A newer program may have written others; labels come from a closed set.
            if let Some(known) = ConditionType::by_word(&condition.type_) {
                count(R::KIND.as_str(), known.as_str(), condition.status.as_str());
            }
        }
    }
}
