//! The HTTP stack every server of ours shares. [`Stack`] puts the layers around a program's routes in one order:
//! request id, trace, metrics, panics, origin, and for guarded routes the bearer token and the bound on requests in flight.
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
mod tls_or_plain;
mod trace;
mod unix_socket;

use std::sync::Arc;

use api::problem::Slug;
use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, header};
use prometheus::IntCounter;
use serde::Serialize;

pub use admission::{Admission, AdmissionLimits};
pub use auth::{Authority, LOCAL_TENANT, Tenant, TokenError, TokenFile};
pub use body::{BodyLimits, JsonBody, parse_json, read_body};
pub use observe::HttpMetrics;
pub use origin::{HostRule, Origin, OriginError, Origins};
pub use request_id::RequestId;
pub use tls_or_plain::TlsOrPlain;
pub use unix_socket::{OwnSocket, SocketError};

use crate::problem::{self, Failure};
use crate::telemetry::trace::Traces;

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
    /// Where the spans of requests go.
    pub traces: Traces,
}

/// A program's routes by what they ask of a caller.
#[derive(Debug, Default)]
pub struct Routes {
    /// Nothing: health and readiness.
    pub open: Router,
    /// The token, but no slot: metrics must be readable when the server is full.
    pub unqueued: Router,
    /// The token and a slot: everything that works.
    pub guarded: Router,
    /// The same, with errors in Laya's form `{"detail": …}` instead of problem documents.
    pub detail: Router,
}

impl Stack {
    /// Wraps a program's routes. Unknown paths and methods are answered as problems.
    pub fn layered(&self, routes: Routes) -> Router {
        let Routes {
            open,
            unqueued,
            guarded,
            detail,
        } = routes;
        let known = self.known(unqueued.merge(self.admitted(guarded)));
        let ours = open
            .merge(known)
            .fallback(|| async { Failure::new(Slug::NotFound, "there is no such path") })
            .method_not_allowed_fallback(method_not_allowed);
        let detail = self
            .known(self.admitted(detail))
            .method_not_allowed_fallback(method_not_allowed);
        self.checked(ours)
            .merge(self.checked(detail).layer(map_response(problem::as_detail)))
            .layer(from_fn_with_state(self.metrics.clone(), observe::observe))
            .layer(from_fn_with_state(self.traces.clone(), trace::follow))
            .layer(axum::middleware::from_fn(request_id::stamp))
    }

    fn admitted(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.admission.clone(), admission::admit))
    }

    fn known(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(
            self.authority.clone(),
            auth::authenticate,
        ))
    }

    fn checked(&self, routes: Router) -> Router {
        routes
            .layer(from_fn_with_state(self.origins.clone(), origin::check))
            .layer(from_fn_with_state(self.task_panics.clone(), panics::catch))
    }
}

/// 200 with a value as compact JSON.
pub fn json_response<T: Serialize>(value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => json_bytes(body),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Failure::new(Slug::Internal, "the answer cannot be written as JSON").into_response()
        }
    }
}

/// 200 with JSON that is written already.
#[must_use]
pub fn json_bytes(body: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

async fn method_not_allowed(method: Method) -> Failure {
    Failure::new(
        Slug::MethodNotAllowed,
        format!("this path does not answer {method}"),
    )
    .hint("the methods it answers are in the `allow` header")
}

#[cfg(test)]
mod tests;
