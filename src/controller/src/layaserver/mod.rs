//! LayaServer (control-plane 3, 10): keeps a model served, replaces it without losing a request, and takes it back when it
//! is worse.

mod action;
mod documents;
mod failed;
mod inputs;
mod numbers;
mod observation;
mod observe;
mod plan;
mod reconciler;

pub use action::{Action, document_name};
pub use documents::{Concerns, Holds, Revisions, ServerDocuments, StoredDocument};
pub use inputs::names_model;
pub use numbers::{Endings, gauges_of};
pub use observation::{
    Ages, Checked, GateVerdict, GateView, ModelView, Observation, Promotion, fact_keys,
};
pub use plan::{Planned, plan};
pub use reconciler::{LayaServers, ServerParts};
