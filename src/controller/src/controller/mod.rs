//! All reconcilers of a process over one object source: a `kube::Client` of an API server or of the local object API. One
//! file a kind adds its caches, its triggers and its driver.

mod engine;
mod hints;
mod models;
mod policies;
mod room;
mod servers;
mod shared;
mod sweep;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api::group::Kind;
use api::kinds::LayaModel;
use futures_util::future::join_all;
use kube::Client;
use kube::runtime::watcher;
use service::runtime::{ReadyHandle, Shutdown};
use service::telemetry::causes;
use service::telemetry::trace::Traces;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::{Deadlines, guarded};
use crate::clock::Clock;
use crate::context::{Context, Namespaces};
use crate::driver::Driver;
use crate::events::Events;
use crate::faults::FaultPoints;
use crate::fence::Fence;
use crate::metrics::ControllerMetrics;
use crate::reconciler::Reconciler;
use crate::routingpolicy::ServerView;
use crate::schema::{self, Difference};
use crate::status_writer::StatusWriter;
use crate::watched::Watched;
use shared::Shared;

pub use engine::{Engine, NoTombstones, Tombstones};
pub use sweep::{Unclaimed, UnclaimedOwners};

/// How often the published schema is compared again.
const SCHEMA_EVERY: Duration = Duration::from_secs(600);
/// How often it is asked for while the API does not answer.
const SCHEMA_AGAIN: Duration = Duration::from_secs(5);

/// What a controller is made of.
pub struct ControllerParts {
    /// The object API. `Config::default_retry` must be off.
    pub client: Client,
    /// Waits of that client.
    pub deadlines: Deadlines,
    /// Which namespaces.
    pub namespaces: Namespaces,
    /// Counts.
    pub metrics: ControllerMetrics,
    /// Where the spans of passes go.
    pub traces: Traces,
    /// The right to write.
    pub fence: Fence,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Switched on once all caches are complete.
    pub ready: ReadyHandle,
    /// Where a test may stop; [`FaultPoints::none`] in programs.
    pub faults: FaultPoints,
    /// Tells several controllers apart in events: the name of the pod or of the machine.
    pub instance: Option<String>,
    /// Where models lie and servers run. Without one only policies are reconciled; the other kinds are left alone.
    pub engine: Option<Engine>,
}

/// All reconcilers of a process.
pub struct Controller {
    context: Arc<Context>,
    ready: ReadyHandle,
    tasks: JoinSet<()>,
    /// Resolve when a cache is complete, with its kind.
    caches: Vec<(&'static str, Cache)>,
    drivers: Vec<Start>,
    /// LayaServers as policies and models see them.
    servers: Shared<ServerView>,
    /// LayaModels, with an engine.
    models: Option<Shared<Watched<LayaModel>>>,
    /// Who hears the hints of the engine.
    hints: hints::Listeners,
}

type Cache = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
type Start = Box<dyn FnOnce(watch::Receiver<bool>, Shutdown) -> Cache + Send>;

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl Controller {
    /// Puts the reconcilers together and begins to fill their caches. Must be called inside a tokio runtime.
    #[must_use]
    pub fn new(parts: ControllerParts) -> Self {
        let ControllerParts {
            client,
            deadlines,
            namespaces,
            metrics,
            traces,
            fence,
            clock,
            ready,
            faults,
            instance,
            engine,
        } = parts;
        let client = guarded(client, deadlines, metrics.clone());
        let (events, publishing) = Events::new(client.clone(), instance, &metrics);
        let (writer, writing) = StatusWriter::new(
            client.clone(),
            fence.clone(),
            faults.clone(),
            metrics.clone(),
        );
        let seed = u64::from(clock.now().boot.subsec_nanos()) ^ u64::from(std::process::id());
        let mut tasks = JoinSet::new();
        tasks.spawn(publishing.run());
        tasks.spawn(writing.run());
        let context = Arc::new(Context {
            client,
            namespaces,
            clock,
            fence,
            faults,
            writer,
            events,
            metrics,
            traces,
            seed,
        });
        let servers = Shared::new(&context, &watcher::Config::default(), ServerView::slim);
        let mut controller = Self {
            context,
            ready,
            tasks,
            caches: Vec::new(),
            drivers: Vec::new(),
            servers,
            models: None,
            hints: hints::Listeners::default(),
        };
        controller.cache("LayaServer", controller.servers.complete());
        controller.add_policies();
        if let Some(engine) = engine {
            controller.add_models(&engine);
            controller.add_servers(&engine);
            controller.add_sweep(&engine);
            let hear = std::mem::take(&mut controller.hints);
            controller.tasks.spawn(hear.run(engine.backend.changes()));
            let metrics = controller.context.metrics.clone();
            controller
                .tasks
                .spawn(room::watch(engine.backend.clone(), metrics));
        }
        controller
    }

    /// Passes of a kind begin once all caches are complete.
    fn drive<R: Reconciler>(&mut self, driver: Arc<Driver<R>>) {
        self.drivers.push(Box::new(move |synced, shutdown| {
            let ready = async move {
                let mut synced = synced;
                // The sender lives as long as the controller runs.
                let _ = synced.wait_for(|synced| *synced).await;
            };
            Box::pin(driver.run(ready, shutdown))
        }));
    }

    fn cache(&mut self, kind: &'static str, mut complete: watch::Receiver<bool>) {
        let complete = async move {
            // Fails only when the feed is gone, that is when everything ends.
            let _ = complete.wait_for(|complete| *complete).await;
        };
        self.caches.push((kind, Box::pin(complete)));
    }

    /// Compares the published schema of a kind with ours, now and from time to time.
    fn compare_schema<R: Reconciler>(
        &mut self,
        kind: Kind,
        found: watch::Sender<Arc<Difference>>,
        driver: Arc<Driver<R>>,
    ) {
        let context = self.context.clone();
        let crd = api::kinds::crd::crd(kind);
        let ours = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        drop(crd);
        self.tasks.spawn(async move {
            loop {
                let published = schema::published(&context.client).await;
                let pause = match &published {
                    Ok(published) => {
                        let difference = schema::difference(kind, &ours, published);
                        if *found.borrow().as_ref() != difference {
                            say(kind, &difference);
                            found.send_replace(Arc::new(difference));
                            driver.push_all();
                        }
                        SCHEMA_EVERY
                    }
                    Err(kube::Error::Api(status)) if status.code < 500 => {
                        tracing::debug!(%kind, code = status.code, "no schema is published");
                        SCHEMA_EVERY
                    }
                    Err(error) => {
                        tracing::debug!(%kind, error = causes(error), "cannot read the published schema");
                        SCHEMA_AGAIN
                    }
                };
                tokio::time::sleep(pause).await;
            }
        });
    }

    /// Reconciles until the process drains and the passes under way have ended. Not cancel safe: dropping it stops
    /// everything where it stands, which is harmless to the objects.
    pub async fn run(self, shutdown: Shutdown) {
        let Self {
            context,
            ready,
            mut tasks,
            caches,
            drivers,
            servers,
            models,
            hints: _,
        } = self;
        tasks.spawn(servers.run());
        if let Some(models) = models {
            tasks.spawn(models.run());
        }
        let (synced, wait) = watch::channel(false);
        let mut passes = JoinSet::new();
        for start in drivers {
            passes.spawn(start(wait.clone(), shutdown.clone()));
        }
        context.metrics.holds(context.fence.check().ok());
        let complete = async {
            let kinds: Vec<_> = caches.iter().map(|(kind, _)| *kind).collect();
            ready.not_ready(format!(
                "waiting for the first list of {}",
                kinds.join(", ")
            ));
            join_all(caches.into_iter().map(|(_, complete)| complete)).await;
            tracing::info!(kinds = kinds.join(", "), "caches are complete");
            ready.ready();
            synced.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = complete => {}
            () = async { while passes.join_next().await.is_some() {} } => {}
            // None of them ends while anything may still use it: a panic, which the caller turns into its own end.
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a task of the controller ended");
                }
            }
        }
        ready.not_ready("draining");
        context.writer.close();
    }
}

fn say(kind: Kind, difference: &Difference) {
    let list = |paths: &std::collections::BTreeSet<String>| {
        paths
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if difference.is_none() {
        return tracing::info!(%kind, "the server knows this kind as this program does");
    }
    let version = env!("CARGO_PKG_VERSION");
    if !difference.missing.is_empty() {
        let fields = list(&difference.missing);
        tracing::warn!(%kind, fields, "the server drops fields of this program: install the CRDs of relay {version}");
    }
    if !difference.unknown.is_empty() {
        let fields = list(&difference.unknown);
        tracing::warn!(%kind, fields, "the CRD is newer than this program: update relay from {version}");
    }
}
