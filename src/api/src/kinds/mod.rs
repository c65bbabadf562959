//! The five kinds as types of kube (control-plane 2–6), each with its spec and status, and the CRDs made from them.
//! Specs are strict: an unknown field or value is refused. Statuses are read leniently, since a newer program may have
//! written them: every field is optional and every enum has a catch-all.

// `KubeSchema` copies each struct, with its `pub`, into a function.
#![allow(unreachable_pub)]

mod condition;
pub mod crd;
pub mod evaluation_gate;
pub mod laya_model;
pub mod laya_server;
pub mod page;
mod routing_policy;
pub mod shared;
pub mod training_run;
pub mod yaml;

pub use condition::{Condition, ConditionStatus, MAX_CONDITIONS, MAX_MESSAGE};
pub use evaluation_gate::{EvaluationGate, EvaluationGateSpec, EvaluationGateStatus};
pub use laya_model::{LayaModel, LayaModelSpec, LayaModelStatus};
pub use laya_server::{LayaServer, LayaServerSpec, LayaServerStatus};
pub use routing_policy::{PolicyProblem, PolicySummary, ProblemSeverity, RoutingPolicyStatus};
pub use training_run::{TrainingRun, TrainingRunSpec, TrainingRunStatus};

pub use crate::routing_policy::{
    Reference, RoutingPolicyResource as RoutingPolicy, RoutingPolicySpec,
};
