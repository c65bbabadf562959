//! A handler that panics: counted, answered with 500 and no detail. The panic hook has logged where.

use std::panic::AssertUnwindSafe;

use api::problem::Slug;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use prometheus::IntCounter;

use crate::problem::Failure;

pub(super) async fn catch(
    State(panics): State<IntCounter>,
    request: Request,
    next: Next,
) -> Response {
    // The request is gone after a panic, and handlers share only what survives one (atomics, locks that recover).
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            panics.inc();
            Failure::new(
                Slug::Internal,
                "the server made a mistake; it is counted and logged",
            )
            .hint("report it with the request id")
            .into_response()
        }
    }
}
