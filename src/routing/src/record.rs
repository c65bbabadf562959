//! The decision record: what was chosen, why, what else was possible and on what grounds (routing.md 17). Immutable
//! once made; field order here is the order in JSON.

use decision::vocabulary::{Agent, Effort, Tier};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::assessment::Assessment;
use crate::estimate::{Counterfactual, Estimate};
use crate::follow_up::FollowUp;
use crate::reason::{Exclusion, Fallback, Reason, Warning};
use crate::registry::ModelRef;
use crate::requirement::{Raise, ValidationRequirement};
use crate::tool_routing::ToolPlan;

/// What made a decision necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecisionKind {
    /// A message of the user.
    User,
    /// Failures inside a task.
    Escalation,
    /// A provider error inside a task.
    Provider,
    /// A side request.
    Direct,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// UUIDv7.
    pub id: Uuid,
    /// Shared by the escalations of one task.
    pub task_id: Uuid,
    /// The decision this one replaces or follows.
    pub parent_id: Option<Uuid>,
    /// As the client named it.
    pub conversation_id: Option<String>,
    /// When it was made.
    #[serde(with = "crate::timestamp")]
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub created: Timestamp,
    /// Cost profile in force.
    pub profile: String,
    /// What made it necessary.
    pub kind: DecisionKind,
    /// How the text relates to the one before.
    pub follow_up: FollowUp,
    /// SHA-256 of the request text, hex; empty where the policy keeps nothing of it.
    pub request_digest: String,
    /// Length of the request, in UTF-16 units; 0 where the policy keeps nothing of it.
    pub request_chars: usize,
    /// The text, only where recording is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What the request was taken for.
    pub assessment: Assessment,
    /// What follows from it.
    pub policy: PolicyResult,
    /// What runs the request.
    pub selected: Selected,
    /// The next three of other references.
    pub alternatives: Vec<Selected>,
    /// At most 20 that were not considered.
    pub excluded: Vec<Excluded>,
    /// Every raise of the tier: the policy's first, then those during the task.
    pub escalations: Vec<Raise>,
    /// Role.
    pub agent: Agent,
    /// Names of skills worth loading.
    pub skills: Vec<String>,
    /// Tools of this request.
    pub tools: ToolPlan,
    /// What the baseline would have cost.
    pub counterfactual: Option<Counterfactual>,
    /// What moving away from the current model costs.
    pub switch: Option<SwitchPrice>,
    /// What a person should know.
    pub warnings: Vec<Warning>,
    /// Hidden message for the agent.
    pub plan: Option<String>,
    /// Hidden message with lessons, where the user chose the model.
    pub lessons: Option<String>,
    /// On what grounds.
    pub provenance: Provenance,
}

/// What the policy made of the assessment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyResult {
    /// What the source would choose.
    pub recommended_tier: Tier,
    /// What selection aimed at.
    pub required_tier: Tier,
    /// The floor.
    pub min_tier: Tier,
    /// Thinking.
    pub effort: Effort,
    /// The same, as clients of models name it.
    pub thinking_level: String,
    /// Check.
    pub validation: ValidationRequirement,
    /// Rules that fired.
    pub rules: Vec<String>,
    /// Why the required tier is above the recommended one.
    pub notes: Vec<Reason>,
}

/// A model with what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Selected {
    /// `provider/model`.
    pub model: ModelRef,
    /// What precedes its first slash.
    pub provider: String,
    /// What follows its first slash.
    pub id: String,
    /// Capability.
    pub tier: Tier,
    /// Thinking, after clamping.
    pub effort: Effort,
    /// The same, as clients of models name it.
    pub thinking_level: String,
    /// Whether the model does not support the wanted effort.
    pub effort_clamped: bool,
    /// Estimated probability of success, 0..=1.
    pub success: f64,
    /// Utility under the profile.
    pub utility: f64,
    /// Whether it reaches the profile's minimum success.
    pub eligible: bool,
    /// Whether it was taken to learn about it.
    pub explored: bool,
    /// Whether the user chose it.
    pub explicit: bool,
    /// What it is likely to cost.
    pub estimate: Estimate,
}

/// A model that was not considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excluded {
    /// `provider/model`.
    pub model: ModelRef,
    /// Why.
    pub reason: Exclusion,
}

/// The price of leaving the current model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchPrice {
    /// The current model.
    pub from: ModelRef,
    /// Tokens in its prompt cache.
    pub cached_tokens: u64,
    /// 0..=1.
    pub price: f64,
}

/// On what grounds a decision stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// Version of this program.
    pub relay_version: String,
    /// The policy in force.
    pub policy: PolicyProvenance,
    /// Digest of the questions with their wording.
    pub contract: String,
    /// Digest of the questions without it.
    pub shape: String,
    /// Digest of the merged keyword file.
    pub keywords_digest: String,
    /// Digest of the registry.
    pub registry_digest: String,
    /// The decision model that answered.
    pub model: Option<ModelProvenance>,
    /// The learned task that answered.
    pub memory: Option<MemoryProvenance>,
    /// What the model did not see.
    pub truncated: Truncated,
    /// Why the model did not answer.
    pub fallback: Option<Fallback>,
    /// Where the time went.
    pub timings_ms: Timings,
}

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyProvenance {
    /// Its name.
    pub name: String,
    /// First 10 hex digits of the digest.
    pub revision: String,
    /// SHA-256 over the canonical spec.
    pub digest: String,
    /// Ids of the rules the policy added.
    pub added_rules: Vec<String>,
    /// Ids of built-in rules it switched off.
    pub disabled_rules: Vec<String>,
}

/// The decision model that answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelProvenance {
    /// Name of the version.
    pub version: String,
    /// Digest of its checkpoint.
    pub checkpoint: String,
    /// Which server.
    pub server: String,
}

/// The learned task that answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryProvenance {
    /// Its id.
    pub task: String,
    /// 0..=1.
    pub similarity: f64,
    /// Guards that kept others from answering.
    pub guards: Vec<String>,
}

/// What the model did not see.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Truncated {
    /// Whether the text was cut before it was sent.
    pub request: bool,
    /// State tokens the server dropped.
    pub state_tokens_dropped: u64,
    /// Questions it dropped them for.
    pub questions: Vec<String>,
}

/// Where the time went, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timings {
    /// From arrival to the assessment.
    pub assess: f64,
    /// From there to the decision.
    pub decide: f64,
}
