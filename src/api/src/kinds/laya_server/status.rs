//! Status of a `LayaServer` (control-plane 3): what serves, what is to serve, where the traffic goes.

use jiff::Timestamp;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::Condition;
use crate::kinds::shared::status_enum;

/// What the controller found and did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayaServerStatus {
    /// Generation that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands, for people; code reads conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub phase: Option<String>,
    /// What is observed, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Address for plain Laya clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 2048))]
    pub url: Option<String>,
    /// Replicas of the champion that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub replicas: Option<i32>,
    /// Those that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub ready_replicas: Option<i32>,
    /// Labels of the champion's pods, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub selector: Option<String>,
    /// What is to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Wish")]
    pub wish: Option<Wish>,
    /// What serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Version")]
    pub champion: Option<Version>,
    /// What is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Version")]
    pub candidate: Option<Version>,
    /// What there is to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Version")]
    pub previous: Option<Version>,
    /// Where requests go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Traffic")]
    pub traffic: Option<Traffic>,
    /// The rollout that runs, or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutProgress")]
    pub rollout: Option<RolloutProgress>,
    /// What was taken back; not tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub rejected: Vec<Rejection>,
    /// Value of spec.rollout.retry that was acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub retry_seen: Option<i32>,
    /// The last rollouts, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub history: Vec<RolloutRecord>,
    /// Restarts of the champion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Restarts")]
    pub restarts: Option<Restarts>,
    /// A checkpoint that a replica found damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Damage")]
    pub damage: Option<Damage>,
}

/// What is to serve.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wish {
    /// Name of the LayaModel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub model: Option<String>,
    /// Checkpoint digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// Who wishes it: Spec or TrainingRun/<name>.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub from: Option<String>,
    /// spec.modelRef.name that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub spec_model: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub since: Option<Timestamp>,
}

/// A version and what serves it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Name of the LayaModel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub model: Option<String>,
    /// Checkpoint digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// Its first 12 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub short_digest: Option<String>,
    /// Contract it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub contract: Option<String>,
    /// Revision: ten hex digits over everything that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub revision: Option<String>,
    /// Image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 512))]
    pub image: Option<String>,
    /// Id of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub image_id: Option<String>,
    /// Replicas that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub ready_replicas: Option<i32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub since: Option<Timestamp>,
    /// Device, asked and found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeviceSeen")]
    pub device: Option<DeviceSeen>,
    /// Probe questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProbeSeen")]
    pub probe: Option<ProbeSeen>,
}

/// Device, asked and found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSeen {
    /// The asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub wanted: Option<String>,
    /// The one that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub actual: Option<String>,
    /// Median latency of one question when it was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub p50_millis: Option<i32>,
}

status_enum!(
    /// How much probe questions prove.
    ProbeLevel {
        /// Answers were compared with recorded ones.
        Expected,
        /// Answers have the right form.
        Shape,
    }
);

/// Probe questions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSeen {
    /// How much they prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProbeLevel")]
    pub level: Option<ProbeLevel>,
    /// When they were answered right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub passed_at: Option<Timestamp>,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// Grows with each change; routers read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub generation: Option<i64>,
    /// Why there is no target, or Gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// Address that outlives versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 2048))]
    pub stable_url: Option<String>,
    /// Revisions that have traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub targets: Vec<Target>,
}

status_enum!(
    /// What a target is.
    TargetRole {
        /// It serves.
        Champion,
        /// It has a share.
        Candidate,
        /// It gets copies.
        Shadow,
    }
);

/// A revision that has traffic.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub revision: Option<String>,
    /// Checkpoint digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// Contract it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub contract: Option<String>,
    /// Addresses of its replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 2048)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub urls: Vec<String>,
    /// Percent of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 100))]
    pub weight: Option<i32>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TargetRole")]
    pub role: Option<TargetRole>,
}

status_enum!(
    /// What a rollout changes.
    RolloutKind {
        /// There was no champion.
        First,
        /// The checkpoint.
        Model,
        /// How the same checkpoint is served.
        Runtime,
        /// Back to a version that has served.
        Revert,
    }
);

status_enum!(
    /// Where a rollout stands.
    RolloutState {
        /// Model, image or room is missing.
        Preparing,
        /// Replicas start.
        Starting,
        /// Replicas load.
        Loading,
        /// Probe questions are asked.
        Probing,
        /// It answers copies.
        Shadowing,
        /// It is judged.
        Gating,
        /// A person must say yes.
        AwaitingApproval,
        /// It gets more traffic.
        Shifting,
        /// It is champion.
        Promoted,
        /// It is watched.
        Baking,
        /// The old one finishes.
        Draining,
        /// Traffic goes back.
        RollingBack,
        /// It stands still.
        Paused,
        /// It is over.
        Done,
    }
);

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgress {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub id: Option<String>,
    /// What it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutKind")]
    pub kind: Option<RolloutKind>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutState")]
    pub state: Option<RolloutState>,
    /// Step of the canary, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 10))]
    pub step: Option<i32>,
    /// When the step began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub step_started_at: Option<Timestamp>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// How long it stood still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub paused_seconds: Option<i64>,
    /// Where it stood still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutState")]
    pub paused_from: Option<RolloutState>,
    /// What the gate said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GateSeen")]
    pub gate: Option<GateSeen>,
    /// What was measured in the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutChecks")]
    pub checks: Option<RolloutChecks>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub message: Option<String>,
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateSeen {
    /// Id of the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub evaluation: Option<String>,
    /// Its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub verdict: Option<String>,
}

/// What was measured in a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutChecks {
    /// Requests to the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub requests: Option<i64>,
    /// Share of them that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 16))]
    pub error_ratio: Option<String>,
    /// Their latency, 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub p95_millis: Option<i64>,
    /// The same of the version that it is compared with: the champion, and once the candidate is champion the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub champion_p95_millis: Option<i64>,
    /// Answers that were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub comparisons: Option<i64>,
    /// Share of other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 16))]
    pub disagreement: Option<String>,
}

/// A candidate that was taken back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// Its revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub revision: Option<String>,
    /// Its checkpoint digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub message: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}

/// A rollout that is over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRecord {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub id: Option<String>,
    /// Revision before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub from: Option<String>,
    /// Revision after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub to: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub outcome: Option<String>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub finished_at: Option<Timestamp>,
}

/// Restarts of the champion; a pause of five minutes begins a new count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restarts {
    /// How often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub count: Option<i32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub since: Option<Timestamp>,
    /// Why the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub last_reason: Option<String>,
    /// Exit code the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub last_exit_code: Option<i32>,
    /// When the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub last_at: Option<Timestamp>,
}

/// A checkpoint that a replica found damaged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}
