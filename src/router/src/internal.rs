//! `GET /v1/internal/revisions`: what this router saw of each revision of the LayaServer it follows (control-plane 10). For
//! the controller alone, with a token of its own; no part of the API that clients are promised. Takes no slot, since a
//! rollout is judged just when a router is full.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderMap;
use service::http::{TokenFile, json_response};

use crate::servers::Servers;

/// The route, for who has one of these tokens.
pub(crate) fn routes(servers: Servers, tokens: Arc<TokenFile>) -> Router {
    Router::new()
        .route("/v1/internal/revisions", get(revisions))
        .with_state((servers, tokens))
}

async fn revisions(
    State((servers, tokens)): State<(Servers, Arc<TokenFile>)>,
    headers: HeaderMap,
) -> Response {
    match tokens.authenticate(&headers) {
        Ok(_) => json_response(&servers.report()),
        Err(failure) => failure.into_response(),
    }
}
