//! `GET /openapi.json`: the document that `cargo xtask docs` wrote from the table of routes and the types. Served from the
//! committed file, so that the router needs no schemas.

use axum::response::Response;
use service::http::json_bytes;

const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

pub(crate) async fn document() -> Response {
    json_bytes(DOCUMENT.into())
}
