//! The HTTP stack every server of ours shares. [`Stack`] puts the layers around a program's routes in one order:
//! request id, metrics, panics, origin, and for guarded routes the bearer token and the bound on requests in flight.
//! Bodies are read by [`JsonBody`]; connections are accepted by [`accept::serve`].

pub mod accept;
mod admission;
mod auth;
mod body;
mod head_wait;
mod json_depth;
mod observe;
mod origin;
mod panics;
mod request_id;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use http::{Method, StatusCode};
use prometheus::IntCounter;

pub use admission::{Admission, AdmissionLimits};
pub use auth::{Authority, LOCAL_TENANT, Tenant, TokenError, TokenFile};
pub use body::{BodyLimits, JsonBody, parse_json};
pub use observe::HttpMetrics;
pub use origin::{HostRule, Origin, OriginError, Origins};
pub use request_id::RequestId;

use crate::problem::{Problem, Slug};

/// The layers of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stack {
    /// Counts and times every request.
    pub metrics: HttpMetrics,
    /// `relay_task_panics_total`.
    pub task_panics: IntCounter,
    /// Which browser origins and hosts may call.
    pub origins: Arc<Origins>,
    /// Who may call guarded routes.
    pub authority: Arc<Authority>,
    /// How many guarded requests may be open.
    pub admission: Arc<Admission>,
}

impl Stack {
    /// Wraps a program's routes. `open` routes (health) need no token and take no slot; `guarded` ones do. Unknown paths
    /// and methods are answered as problems.
    pub fn layered(&self, open: Router, guarded: Router) -> Router {
        let guarded = guarded
            .route_layer(from_fn_with_state(self.admission.clone(), admission::admit))
            .route_layer(from_fn_with_state(
                self.authority.clone(),
                auth::authenticate,
            ));
        open.merge(guarded)
            .fallback(|| async { Problem::new(Slug::NotFound, "there is no such path") })
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(self.origins.clone(), origin::check))
            .layer(from_fn_with_state(self.task_panics.clone(), panics::catch))
            .layer(from_fn_with_state(self.metrics.clone(), observe::observe))
            .layer(axum::middleware::from_fn(request_id::stamp))
    }
}

async fn method_not_allowed(method: Method) -> Problem {
    Problem::of_status(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("this path does not answer {method}"),
    )
    .with_hint("the methods it answers are in the `allow` header")
}

#[cfg(test)]
mod tests;
