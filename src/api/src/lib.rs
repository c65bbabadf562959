//! Types of every HTTP API and of the custom resources, and how their text is read: strict YAML and JSON with the path
//! of what was refused. No I/O, no decisions.

pub mod condition;
pub mod crds;
pub mod document;
pub mod event;
pub mod exchange;
pub mod exit;
pub mod field_manager;
pub mod finalizer;
pub mod group;
pub mod kept_log;
#[cfg(feature = "kinds")]
pub mod kinds;
pub mod label;
#[cfg(feature = "schema")]
pub mod openapi;
pub mod problem;
pub mod reason;
pub mod responses;
pub mod revisions;
pub mod routes;
pub mod routing_policy;
mod tree;
pub mod troubleshooting;
mod unique;

/// Body of the answer to `POST /v1/route`.
pub use routing::record::Decision;
/// Body of `POST /v1/route` and what is refused in it.
pub use routing::request::{FieldError, RouteRequest};
