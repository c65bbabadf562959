//! The admin port: `/metrics`, `/livez`, `/readyz`. It answers until the very end, so that a drain can be watched.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use prometheus::{Registry, TextEncoder};

use super::readiness::Readiness;

/// The routes of the admin port.
pub fn admin_routes(registry: Registry, readiness: Readiness) -> Router {
    Router::new()
        .route(
            "/metrics",
            get(move || async move { metrics_response(&registry) }),
        )
        .route("/livez", get(|| async { "ok\n" }))
        .route(
            "/readyz",
            get(move || async move { readiness_response(&readiness) }),
        )
}

/// Every metric of the registry in Prometheus' text form.
#[must_use]
pub fn metrics_response(registry: &Registry) -> Response {
    match TextEncoder::new().encode_to_string(&registry.gather()) {
        Ok(text) => {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "metrics cannot be encoded");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// 200 when ready, else 503 with the reasons.
#[must_use]
pub fn readiness_response(readiness: &Readiness) -> Response {
    let report = readiness.report();
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = serde_json::to_string(&report).unwrap_or_default();
    (
        status,
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        body,
    )
        .into_response()
}
