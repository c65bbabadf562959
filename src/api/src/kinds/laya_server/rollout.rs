//! How a new version takes over (control-plane 3, 10).

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::shared::{Decimal, Digest, Ratio, Reference};

/// How a new version takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// All traffic at once, after probes and gate.
    #[default]
    BlueGreen,
    /// Step by step.
    Canary,
    /// After it answered copies of requests.
    Shadow,
    /// The old one stops first; rules answer meanwhile.
    Replace,
}

/// What happens when a gate has too little to judge by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnInconclusive {
    /// The rollout stands still.
    #[default]
    Pause,
    /// The candidate is taken back.
    Abort,
}

/// Whether a person must say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// No, but for another wording than that of the champion.
    #[default]
    Automatic,
    /// Yes, by approve.
    Manual,
}

/// What happens when old and new do not fit side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum WhenNoRoom {
    /// Gap on Docker, Wait on Kubernetes.
    #[default]
    Auto,
    /// The old one stops first.
    Gap,
    /// The rollout waits for room.
    Wait,
}

/// How a new version takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "Rollout::default"
)]
#[x_kube(validation = Rule::new("self.strategy == 'Canary' ? has(self.canary) : !has(self.canary)").message("is needed with strategy Canary, and only there").field_path(".canary"), validation = Rule::new("!has(self.shadow) || self.strategy in ['Shadow','Canary']").message("is only for strategies Shadow and Canary").field_path(".shadow"), validation = Rule::new("self.progressDeadlineSeconds > self.minReadySeconds").message("must be greater than minReadySeconds").field_path(".progressDeadlineSeconds"))]
pub struct Rollout {
    /// Path from old to new.
    pub strategy: Strategy,
    /// Steps of strategy Canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Canary")]
    pub canary: Option<Canary>,
    /// Copies of requests, with strategy Shadow or Canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Shadow")]
    pub shadow: Option<Shadow>,
    /// EvaluationGate a candidate must pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub gate_ref: Option<Reference>,
    /// What happens when the gate has too little to judge by.
    pub on_inconclusive: OnInconclusive,
    /// Whether a person must say yes.
    pub approval: Approval,
    /// Checkpoint digest of the candidate a person let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Digest")]
    pub approve: Option<Digest>,
    /// Revision of the candidate a person takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 64),
        regex(pattern = "^[0-9a-f]+$")
    )]
    pub abort: Option<String>,
    /// A changed number forgets rejections once.
    #[schemars(range(min = 0))]
    pub retry: i32,
    /// Steps and their clocks stand still, safety does not.
    pub paused: bool,
    /// A candidate a person lets serve although its gate did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Force")]
    pub force: Option<Force>,
    /// What happens when old and new do not fit side by side.
    pub when_no_room: WhenNoRoom,
    /// Whether a failure takes the candidate back; false = freeze and report.
    pub auto_rollback: bool,
    /// Until a candidate must be ready.
    #[schemars(range(min = 60, max = 86400))]
    pub progress_deadline_seconds: i32,
    /// How long it must be ready to count.
    #[schemars(range(min = 0, max = 3600))]
    pub min_ready_seconds: i32,
    /// How long the old one may finish requests.
    #[schemars(range(min = 0, max = 3600))]
    pub drain_seconds: i32,
    /// How long the new one is watched while the old one runs on.
    #[schemars(range(min = 0, max = 86400))]
    pub rollback_window_seconds: i32,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            strategy: Strategy::BlueGreen,
            canary: None,
            shadow: None,
            gate_ref: None,
            on_inconclusive: OnInconclusive::Pause,
            approval: Approval::Automatic,
            approve: None,
            abort: None,
            retry: 0,
            paused: false,
            force: None,
            when_no_room: WhenNoRoom::Auto,
            auto_rollback: true,
            progress_deadline_seconds: 900,
            min_ready_seconds: 10,
            drain_seconds: 30,
            rollback_window_seconds: 600,
        }
    }
}

/// Steps of a canary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.steps.map(s, s.weight).isSorted()").message("must not fall from step to step").field_path(".steps"))]
pub struct Canary {
    /// Shares of the candidate, rising.
    #[schemars(length(min = 1, max = 10))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub steps: Vec<CanaryStep>,
    /// What takes it back.
    #[serde(default)]
    pub limits: CanaryLimits,
}

/// A share, and how long it is held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CanaryStep {
    /// Percent of requests.
    #[schemars(range(min = 1, max = 99))]
    pub weight: i32,
    /// How long.
    #[schemars(range(min = 30, max = 86400))]
    pub hold_seconds: i32,
}

/// What takes a canary back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CanaryLimits {
    /// Share of failed requests.
    pub max_error_ratio: Ratio,
    /// Latency relative to the champion, 95th percentile.
    pub max_p95_ratio: Decimal,
    /// Fewer are not judged.
    #[schemars(range(min = 0))]
    pub min_requests: i32,
}

impl Default for CanaryLimits {
    fn default() -> Self {
        Self {
            max_error_ratio: Ratio::constant("0.01"),
            max_p95_ratio: Decimal::constant("1.50"),
            min_requests: 50,
        }
    }
}

/// Copies of requests that a candidate answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shadow {
    /// Share of requests that is copied.
    pub sample_ratio: Ratio,
    /// Enough to go on.
    #[schemars(range(min = 0))]
    pub min_comparisons: i32,
    /// How long at most.
    #[schemars(range(min = 0, max = 604800))]
    pub max_seconds: i32,
    /// Share of other answers that takes it back; unset = inform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ratio")]
    pub max_disagreement: Option<Ratio>,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            sample_ratio: Ratio::constant("0.10"),
            min_comparisons: 200,
            max_seconds: 86_400,
            max_disagreement: None,
        }
    }
}

/// A candidate a person lets serve although its gate did not pass; probes still hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Force {
    /// Its checkpoint digest.
    pub digest: Digest,
    /// Why; history keeps it.
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub by: Option<String>,
}
