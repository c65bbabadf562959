//! The HTTP service that decides: `/v1/route` and the routes beside it, over one compiled policy, one store and the
//! decision models behind it (routing.md 18). It holds what a decision needs and the calls into `routing`; limits, tokens
//! and problem documents are `service`'s, listening and signals the program's.

mod beside;
mod dataset;
mod decide;
mod decisions;
mod escalate;
mod internal;
mod knowledge;
mod memory_routes;
mod metrics;
mod mirror;
mod openapi;
mod outcomes;
mod policy;
mod query;
mod read;
mod recent;
mod report;
mod route;
pub mod servers;
mod upkeep;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use prometheus::{IntCounter, Registry};
use routing::decide::Client;
use service::http::{BodyLimits, LOCAL_TENANT, Routes, Stack, TokenFile};
use service::runtime::admin::{metrics_response, readiness_response};
use service::runtime::{Readiness, Shutdown};
use service::telemetry::{RepeatedError, causes};
use store::{Store, StoreError};

pub use metrics::RouterMetrics;
pub use policy::{ActivePolicy, PolicyFileError, PolicyInForce};

use decide::Decider;
use servers::Servers;

/// Prefix of every metric of the router.
pub const METRICS_PREFIX: &str = "relay_router";

/// Longest body with learned tasks, in bytes.
const LEARN_BYTES: usize = 2 << 20;

/// What a router is made of.
#[derive(Debug)]
pub struct RouterParts {
    /// The policy in force, which may change while the router runs.
    pub policy: PolicyInForce,
    /// Whether clients own this router or share it.
    pub client: Client,
    /// Where decisions and outcomes are kept.
    pub store: Store,
    /// Whether other replicas write to the same store.
    pub shared_store: bool,
    /// The decision models behind it.
    pub servers: Servers,
    /// On a laptop: `<agent folder>/laya`, where learned tasks are mirrored and older outcomes are found.
    pub laya_files: Option<PathBuf>,
    /// Its metrics.
    pub metrics: RouterMetrics,
    /// Everything `/metrics` shows.
    pub registry: Registry,
    /// Everything `/ready` shows.
    pub readiness: Readiness,
    /// The layers around its routes.
    pub stack: Stack,
    /// Who may ask for `/v1/internal/revisions`; without it the route is not there.
    pub internal: Option<Arc<TokenFile>>,
}

/// A router: its routes, and what goes on beside them.
#[derive(Debug)]
pub struct Service {
    decider: Arc<Decider>,
    files: Option<Arc<mirror::Files>>,
    registry: Registry,
    readiness: Readiness,
    stack: Stack,
    internal: Option<Arc<TokenFile>>,
}

/// A named task that runs until the process drains.
pub type Task = (&'static str, Pin<Box<dyn Future<Output = ()> + Send>>);

impl Service {
    /// Puts a router together. It knows nothing of the store's content before [`Self::warm_up`].
    #[must_use]
    pub fn new(parts: RouterParts) -> Self {
        let decider = Decider::new(&parts);
        let RouterParts {
            laya_files,
            registry,
            readiness,
            stack,
            internal,
            ..
        } = parts;
        Self {
            decider: Arc::new(decider),
            files: laya_files.map(|folder| Arc::new(mirror::Files::below(&folder))),
            registry,
            readiness,
            stack,
            internal,
        }
    }

    /// Reads what the store knows: history, quota, learned tasks. Done before the first request, so that no decision is
    /// made as if nothing were known.
    ///
    /// # Errors
    /// When the store does not answer; the router then learns it as soon as it does.
    pub async fn warm_up(&self) -> Result<(), StoreError> {
        let knowledge = &self.decider.knowledge;
        // Whoever needs no token is there before anything was read of others.
        let own = LOCAL_TENANT.into();
        let (history, memory) = tokio::join!(knowledge.catch_up(), knowledge.rebuild_memory(&own));
        history?;
        memory?;
        knowledge.refresh_memory().await?;
        let Some(files) = &self.files else {
            return Ok(());
        };
        match self.decider.sync(files).await {
            Err(mirror::MirrorError::Store(error)) => Err(error),
            // The store is the truth; decisions do not wait for a copy of it.
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    "the copy of learned tasks is not current"
                );
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Everything that goes on beside requests.
    #[must_use]
    pub fn tasks(&self, suppressed: &IntCounter, shutdown: &Shutdown) -> Vec<Task> {
        let decider = || self.decider.clone();
        let errors = RepeatedError::new(suppressed.clone());
        let knowledge = self.decider.knowledge.clone();
        let follow = knowledge.follow(errors, shutdown.clone());
        let errors = RepeatedError::new(suppressed.clone());
        let prune = upkeep::prune(decider(), errors, shutdown.clone());
        let ready = self.readiness.check("store");
        let watch = upkeep::watch_store(decider(), ready, shutdown.clone());
        let show = upkeep::show_availability(decider(), shutdown.clone());
        let servers = self.decider.servers.clone();
        let models_shutdown = shutdown.clone();
        let models = async move { servers.follow(&models_shutdown).await };
        let servers = self.decider.servers.clone();
        let shadows_shutdown = shutdown.clone();
        let shadows = async move { servers.compare_shadows(&shadows_shutdown).await };
        let mut tasks: Vec<Task> = vec![
            ("decision models", Box::pin(models)),
            ("copies for shadows", Box::pin(shadows)),
            ("changes of the store", Box::pin(follow)),
            ("retention", Box::pin(prune)),
            ("state of the store", Box::pin(watch)),
            ("availability of providers", Box::pin(show)),
        ];
        if let Some(files) = &self.files {
            let follow = mirror::follow(decider(), files.clone(), shutdown.clone());
            tasks.push(("files of learned tasks", Box::pin(follow)));
        }
        tasks
    }

    /// The routes.
    pub fn app(&self) -> Router {
        let Self {
            decider,
            registry,
            readiness,
            stack,
            internal,
            ..
        } = self;
        let learn_limits = BodyLimits {
            bytes: LEARN_BYTES,
            ..BodyLimits::default()
        };
        let guarded = Router::new()
            .route("/v1/route", post(route::route))
            .route("/v1/escalate", post(escalate::route))
            .route("/v1/outcomes", post(outcomes::route))
            .route(
                "/v1/learn",
                post(dataset::learn_route).layer(Extension(learn_limits)),
            )
            .route("/v1/decisions", get(decisions::list))
            .route("/v1/decisions/{id}", get(decisions::one))
            .route(
                "/v1/memory",
                get(memory_routes::list).delete(memory_routes::remove_many),
            )
            .route("/v1/memory/search", get(memory_routes::search))
            .route(
                "/v1/memory/{id}",
                get(memory_routes::show)
                    .patch(memory_routes::edit)
                    .merge(delete(memory_routes::remove)),
            )
            .route("/v1/dataset/snapshots", post(dataset::freeze))
            .route("/v1/dataset/snapshots/{digest}", get(dataset::frozen))
            .route("/v1/report", get(report::route))
            .route("/v1/policy", get(read::policy))
            .route("/v1/models", get(read::models))
            .route("/v1/contract", get(read::contract))
            .with_state(decider.clone());
        let readiness = readiness.clone();
        let open = Router::new()
            .route("/health", get(read::health))
            .with_state(decider.clone())
            .route("/openapi.json", get(openapi::document))
            .route(
                "/ready",
                get(move || async move { readiness_response(&readiness) }),
            );
        let open = match internal {
            Some(tokens) => open.merge(internal::routes(decider.servers.clone(), tokens.clone())),
            None => open,
        };
        let registry = registry.clone();
        let unqueued = Router::new().route(
            "/metrics",
            get(move || async move { metrics_response(&registry) }),
        );
        stack.layered(Routes {
            open,
            unqueued,
            guarded,
            detail: servers::routes(decider.servers.clone()),
        })
    }
}
