//! LayaServer (control-plane 3, 10): keeps a model served, replaces it without losing a request, and takes it back when it
//! is worse.

mod action;
mod advice;
mod available;
mod conditions;
mod cut;
mod deadline;
mod device;
mod documents;
mod external;
mod facts;
mod failed;
mod history;
mod image;
mod inputs;
mod kept_log;
mod numbers;
mod observation;
mod observe;
mod plan;
mod probed;
mod reconciler;
mod recover;
mod repair;
mod replicas;
mod requeue;
mod restarts;
mod revision;
mod rollout;
mod sweep;
#[cfg(test)]
mod tests;
mod traffic;
mod view;
mod wish;

pub use action::{Action, document_name};
pub use documents::{Concerns, Holds, Revisions, ServerDocuments, StoredDocument};
pub use inputs::names_model;
pub use numbers::{Endings, gauges_of};
pub use observation::{
    Ages, Checked, GateVerdict, GateView, ModelView, Observation, Promotion, fact_keys,
};
pub use plan::{Planned, plan};
pub use reconciler::{LayaServers, ServerParts};
