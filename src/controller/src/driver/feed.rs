//! Fills a cache from watches, for as long as the process runs: kube's watcher lists again where it must, waits longer
//! after each error, and resumes where it stood.

use std::fmt::Debug;

use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use service::telemetry::{RepeatedError, causes};
use tokio::sync::watch;

use crate::context::Context;
use crate::merge::{Change, Merge};
use crate::metrics::{ControllerMetrics, WatchRestart};

/// The watches of one kind.
pub struct Feed<K: Resource<DynamicType = ()> + Clone + Debug + 'static> {
    kind: String,
    merge: Merge<K>,
    complete: watch::Sender<bool>,
    events: SelectAll<BoxStream<'static, (usize, watcher::Result<Event<K>>)>>,
    metrics: ControllerMetrics,
    errors: RepeatedError,
}

impl<K> Feed<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    /// Watches a kind in the namespaces of the context; `slim` takes away what nobody reads. Nothing happens before
    /// [`Self::run`].
    #[must_use]
    pub fn new(context: &Context, config: &watcher::Config, slim: fn(&mut K)) -> Self {
        let watches = context.namespaces.watches();
        let mut events = SelectAll::new();
        for (at, namespace) in watches.iter().enumerate() {
            let client = context.client.clone();
            let api = match namespace {
                None => Api::<K>::all(client),
                Some(namespace) => Api::<K>::namespaced(client, namespace),
            };
            let stream = watcher(api, config.clone())
                .modify(slim)
                .default_backoff()
                .map(move |event| (at, event));
            events.push(stream.boxed());
        }
        Self {
            kind: K::kind(&()).into_owned(),
            merge: Merge::new(watches),
            complete: watch::Sender::new(false),
            events,
            metrics: context.metrics.clone(),
            errors: RepeatedError::new(context.metrics.process.log_suppressed.clone()),
        }
    }

    /// The cache.
    #[must_use]
    pub fn store(&self) -> Store<K> {
        self.merge.store()
    }

    /// Becomes true once the cache is complete. `Store::wait_until_ready` may be used by one task only: it keeps the waker
    /// of the last one that asked, and `applier` is one (kube-runtime 5.0.0, `DelayedInit`).
    #[must_use]
    pub fn complete(&self) -> watch::Receiver<bool> {
        self.complete.subscribe()
    }

    /// Watches and tells each change. Never returns; cancel safe.
    pub async fn run(mut self, mut changed: impl FnMut(Change<K>) + Send) {
        while let Some((at, event)) = self.events.next().await {
            match event {
                Ok(event) => {
                    // kube says that a list begins before it asks for it.
                    if !matches!(event, Event::Init)
                        && let Some(count) = self.errors.recovered()
                    {
                        tracing::info!(kind = self.kind, failures = count, "the watch works again");
                    }
                    self.merge
                        .take(at, event)
                        .into_iter()
                        .for_each(&mut changed);
                    if self.merge.is_complete() {
                        self.complete
                            .send_if_modified(|complete| !std::mem::replace(complete, true));
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
    }

    fn failed(&self, error: &watcher::Error) {
        self.metrics.watch_restarted(&self.kind, cause(error));
        if let Some(count) = self.errors.occurred() {
            tracing::warn!(
                kind = self.kind,
                count,
                error = causes(error),
                "the watch failed and begins anew"
            );
        }
    }
}

fn cause(error: &watcher::Error) -> WatchRestart {
    let code = match error {
        watcher::Error::WatchError(status) => status.code,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        _ => 0,
    };
    match code {
        410 => WatchRestart::Expired,
        403 => WatchRestart::Forbidden,
        _ => WatchRestart::Error,
    }
}
