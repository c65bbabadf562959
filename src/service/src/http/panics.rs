//! A handler that panics: counted, answered with 500 and no detail. The panic hook has logged where.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::StatusCode;
use prometheus::IntCounter;

use crate::problem::Problem;

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
            Problem::of_status(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server made a mistake; it is counted and logged",
            )
            .with_hint("report it with the request id")
            .into_response()
        }
    }
}
