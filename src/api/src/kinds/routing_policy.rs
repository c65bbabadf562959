//! Status of a `RoutingPolicy` (control-plane 6). Its spec is [`crate::routing_policy::RoutingPolicySpec`], the same
//! type that reads files.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;

/// What the controller found and did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingPolicyStatus {
    /// Generation that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What is observed, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Revision that routers use: ten hex digits of the digest of the accepted spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub accepted_revision: Option<String>,
    /// Generation that was accepted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub accepted_generation: Option<i64>,
    /// What is wrong with the spec, or should be known; the first 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub problems: Vec<PolicyProblem>,
    /// Counts of the accepted revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PolicySummary")]
    pub summary: Option<PolicySummary>,
}

/// Whether a problem keeps a policy from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ProblemSeverity {
    /// The policy is refused.
    Error,
    /// It is used, and somebody should know.
    Warning,
    /// A word of a newer program.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl From<routing::policy::Severity> for ProblemSeverity {
    fn from(severity: routing::policy::Severity) -> Self {
        match severity {
            routing::policy::Severity::Error => Self::Error,
            routing::policy::Severity::Warning => Self::Warning,
        }
    }
}

/// Something in the spec that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyProblem {
    /// How bad it is.
    #[serde(default)]
    pub severity: ProblemSeverity,
    /// Field, for example spec.rules[0].patterns[1].
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub path: String,
    /// What is wrong and what to do.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Counts of an accepted revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySummary {
    /// Tiers that have models.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub tiers: i32,
    /// Models in them.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub models: i32,
    /// Rules beside the built-in ones.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub rules: i32,
}
