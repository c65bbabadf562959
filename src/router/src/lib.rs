//! The HTTP service that decides: `/v1/route` and the read routes beside it, over one compiled policy (routing.md 18).
//! It holds what a decision needs and the calls into `routing`; limits, tokens and problem documents are `service`'s,
//! listening and signals the program's.

mod decide;
mod metrics;
mod policy;
mod read;
mod recent;
mod route;
pub mod servers;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use prometheus::Registry;
use routing::decide::Client;
use service::http::{Routes, Stack};
use service::runtime::Readiness;
use service::runtime::admin::{metrics_response, readiness_response};

pub use metrics::RouterMetrics;
pub use policy::{ActivePolicy, PolicyFileError};

use decide::Decider;
use servers::Servers;

/// Prefix of every metric of the router.
pub const METRICS_PREFIX: &str = "relay_router";

/// What a router is made of.
#[derive(Debug)]
pub struct RouterParts {
    /// The policy in force.
    pub policy: Arc<ActivePolicy>,
    /// Whether clients own this router or share it.
    pub client: Client,
    /// The decision models behind it.
    pub servers: Servers,
    /// Its metrics.
    pub metrics: RouterMetrics,
    /// Everything `/metrics` shows.
    pub registry: Registry,
    /// Everything `/ready` shows.
    pub readiness: Readiness,
    /// The layers around its routes.
    pub stack: Stack,
}

/// The router as one service.
pub fn app(parts: RouterParts) -> Router {
    let RouterParts {
        policy,
        client,
        servers,
        metrics,
        registry,
        readiness,
        stack,
    } = parts;
    let decider = Arc::new(Decider::new(policy.clone(), client, metrics));
    let reads = Router::new()
        .route("/v1/policy", get(read::policy))
        .route("/v1/models", get(read::models))
        .with_state(policy)
        .route("/v1/contract", get(read::contract));
    let guarded = Router::new()
        .route("/v1/route", post(route::route))
        .with_state(decider)
        .merge(reads);
    let open = Router::new().route("/health", get(read::health)).route(
        "/ready",
        get(move || async move { readiness_response(&readiness) }),
    );
    let unqueued = Router::new().route(
        "/metrics",
        get(move || async move { metrics_response(&registry) }),
    );
    stack.layered(Routes {
        open,
        unqueued,
        guarded,
        detail: servers::routes(servers),
    })
}
