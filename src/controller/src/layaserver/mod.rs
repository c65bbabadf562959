//! LayaServer (control-plane 3, 10): keeps a model served, replaces it without losing a request, and takes it back when it
//! is worse.

mod action;
mod observation;
mod plan;

pub use action::{Action, document_name};
pub use observation::{
    Ages, Checked, GateVerdict, GateView, ModelView, Observation, Promotion, fact_keys,
};
pub use plan::{Planned, plan};
