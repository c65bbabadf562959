//! The five kinds as types of kube (control-plane 2–6), each with its spec and status, and the CRDs made from them.
//! Specs are strict: an unknown field or value is refused. Statuses are read leniently, since a newer program may have
//! written them: every field is optional and every enum has a catch-all.

mod condition;
pub mod crd;
mod routing_policy;
pub mod yaml;

pub use condition::{Condition, ConditionStatus, MAX_CONDITIONS, MAX_MESSAGE};
pub use routing_policy::{PolicyProblem, PolicySummary, ProblemSeverity, RoutingPolicyStatus};

pub use crate::routing_policy::{
    Reference, RoutingPolicyResource as RoutingPolicy, RoutingPolicySpec,
};
