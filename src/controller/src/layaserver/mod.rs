//! LayaServer (control-plane 3, 10): keeps a model served, replaces it without losing a request, and takes it back when it
//! is worse.

mod action;
mod available;
mod conditions;
mod cut;
mod deadline;
mod device;
mod external;
mod facts;
mod history;
mod image;
mod observation;
mod plan;
mod probed;
mod recover;
mod repair;
mod replicas;
mod requeue;
mod restarts;
mod revision;
mod rollout;
mod sweep;
mod traffic;
mod view;
mod wish;

pub use action::{Action, document_name};
pub use observation::{
    Ages, Checked, GateVerdict, GateView, ModelView, Observation, Promotion, fact_keys,
};
pub use plan::{Planned, plan};
