//! `TrainingRun`: one training (control-plane 4). Nearly all of its spec is immutable: a run is a fact.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;
use super::laya_server::GateSeen;
use super::shared::{
    ConfigMapSource, Device, DevicePolicy, Digest, Gpu, HttpSource, Pod, Quantity, Reference,
    Resources, SUBDOMAIN, StoreSource, VolumeSource, pattern_string, status_enum,
};

/// What is trained, from what, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "relay.dev",
    version = "v1alpha1",
    kind = "TrainingRun",
    plural = "trainingruns",
    singular = "trainingrun",
    shortname = "tr",
    shortname = "trun",
    category = "relay",
    namespaced,
    status = "TrainingRunStatus",
    derive = "PartialEq",
    doc = "One training: what is trained, from what, and what becomes of it.",
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Where it stands"
    ),
    printcolumn(
        name = "Progress",
        type_ = "integer",
        json_path = ".status.progress",
        description = "Percent"
    ),
    printcolumn(
        name = "Gate",
        type_ = "string",
        json_path = ".status.gate.verdict",
        description = "Verdict of the gate"
    ),
    printcolumn(
        name = "Model",
        type_ = "string",
        json_path = ".status.producedModel.name",
        description = "LayaModel that was made"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why, of condition Ready"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    ),
    printcolumn(
        name = "Device",
        type_ = "string",
        json_path = ".status.device",
        description = "Device that trains",
        priority = 1
    ),
    printcolumn(
        name = "Attempts",
        type_ = "integer",
        json_path = ".status.attempts[-1:].n",
        description = "Number of the last attempt",
        priority = 1
    ),
    printcolumn(
        name = "Rows",
        type_ = "integer",
        json_path = ".status.dataset.rows",
        description = "Rows of the dataset",
        priority = 1
    ),
    printcolumn(
        name = "Dataset",
        type_ = "string",
        json_path = ".status.dataset.digest",
        description = "Digest of the dataset",
        priority = 1
    ),
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".status.deadlineAt",
        description = "When it must be done",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.produce) == has(oldSelf.produce) && (!has(self.produce) || self.produce == oldSelf.produce)").message("is immutable").field_path(".produce"), validation = Rule::new("has(self.gpu) == has(oldSelf.gpu) && (!has(self.gpu) || self.gpu == oldSelf.gpu)").message("is immutable").field_path(".gpu"), validation = Rule::new("has(self.image) == has(oldSelf.image) && (!has(self.image) || self.image == oldSelf.image)").message("is immutable").field_path(".image"), validation = Rule::new("has(self.imagePullSecrets) == has(oldSelf.imagePullSecrets) && (!has(self.imagePullSecrets) || self.imagePullSecrets == oldSelf.imagePullSecrets)").message("is immutable").field_path(".imagePullSecrets"), validation = Rule::new("has(self.resources) == has(oldSelf.resources) && (!has(self.resources) || self.resources == oldSelf.resources)").message("is immutable").field_path(".resources"), validation = Rule::new("has(self.pod) == has(oldSelf.pod) && (!has(self.pod) || self.pod == oldSelf.pod)").message("is immutable").field_path(".pod"), validation = Rule::new("has(self.workspaceSize) == has(oldSelf.workspaceSize) && (!has(self.workspaceSize) || self.workspaceSize == oldSelf.workspaceSize)").message("is immutable").field_path(".workspaceSize"), validation = Rule::new("has(self.gateRef) == has(oldSelf.gateRef) && (!has(self.gateRef) || self.gateRef == oldSelf.gateRef)").message("is immutable").field_path(".gateRef"), validation = Rule::new("!has(self.gpu) || self.device != 'Cpu'").message("is not possible with device Cpu").field_path(".gpu"), validation = Rule::new("self.promote.mode != 'Automatic' || has(self.gateRef)").message("is needed with promote.mode Automatic").field_path(".gateRef"), validation = Rule::new("self.noProgressSeconds < self.deadlineSeconds").message("must be less than deadlineSeconds").field_path(".noProgressSeconds"))]
pub struct TrainingRunSpec {
    /// LayaModel to start from; its contract is the run's contract.
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub base_ref: Reference,
    /// LayaModel to create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Produce")]
    pub produce: Option<Produce>,
    /// Rows to train on; exactly one of store, http, volume, configMap.
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub dataset: Dataset,
    /// How it is trained.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub recipe: Recipe,
    /// Where it trains.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub device: Device,
    /// What happens when that device is not there; judged only when device is not Auto.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub device_policy: DevicePolicy,
    /// GPUs of the task; not with device Cpu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gpu")]
    pub gpu: Option<Gpu>,
    /// Image of the trainer; the one of the controller when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253), regex(pattern = SUBDOMAIN)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub image_pull_secrets: Vec<String>,
    /// CPU and memory of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Resources")]
    pub resources: Option<Resources>,
    /// Where the pod runs. Kubernetes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pod")]
    pub pod: Option<Pod>,
    /// Size of the workspace, where checkpoints live. Default: 3 × base + 2 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Quantity")]
    pub workspace_size: Option<Quantity>,
    /// EvaluationGate that judges the result; needed for automatic promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub gate_ref: Option<Reference>,
    /// What becomes of the result.
    #[serde(default)]
    pub promote: Promote,
    /// For all attempts together; may grow.
    #[serde(default = "four_hours")]
    #[schemars(range(min = 300, max = 604800))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("may only grow"))]
    pub deadline_seconds: i32,
    /// Silence that counts as a hang.
    #[serde(default = "twenty_minutes")]
    #[schemars(range(min = 60, max = 86400))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub no_progress_seconds: i32,
    /// Resumes after kills; the low-memory retry is extra.
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 10))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub max_restarts: i32,
    /// Then task and workspace are removed; never the object or the model.
    #[serde(default = "one_week")]
    #[schemars(range(min = 0, max = 31536000))]
    pub ttl_seconds_after_finished: i32,
    /// The task stops and keeps its last checkpoint.
    #[serde(default)]
    pub suspend: bool,
    /// The run ends for good.
    #[serde(default)]
    pub cancel: bool,
}

const fn four_hours() -> i32 {
    14_400
}

const fn twenty_minutes() -> i32 {
    1200
}

const fn three() -> i32 {
    3
}

const fn one_week() -> i32 {
    604_800
}

/// LayaModel to create.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Produce {
    /// Its name; that of the run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 40), regex(pattern = crate::group::NAME_PATTERN))]
    pub name: Option<String>,
}

/// Rows to train on; exactly one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("[has(self.store), has(self.http), has(self.volume), has(self.configMap)].filter(x, x).size() == 1").message("must have exactly one of store, http, volume, configMap"), validation = Rule::new("has(self.store) || has(self.digest)").message("is needed for everything but store").field_path(".digest"))]
pub struct Dataset {
    /// Rows that this installation learned; a snapshot is pinned at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StoreSource")]
    pub store: Option<StoreSource>,
    /// A file behind a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HttpSource")]
    pub http: Option<HttpSource>,
    /// A file in a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VolumeSource")]
    pub volume: Option<VolumeSource>,
    /// A file in a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigMapSource")]
    pub config_map: Option<ConfigMapSource>,
    /// Digest of the rows; needed for everything but store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Digest")]
    pub digest: Option<Digest>,
    /// Fewer are refused.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000000))]
    pub min_rows: i32,
}

const fn fifty() -> i32 {
    50
}

/// Whether a training trades time for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum LowMemory {
    /// After it ran out once.
    #[default]
    Auto,
    /// From the start.
    On,
    /// Never.
    Off,
}

/// How a model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "Recipe::default"
)]
pub struct Recipe {
    /// Recipe of the trainer.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Passes over the rows.
    #[schemars(range(min = 1, max = 50))]
    pub epochs: i32,
    /// Seed of everything random.
    #[schemars(range(min = 0))]
    pub seed: i32,
    /// Rows in one step.
    #[schemars(range(min = 1, max = 64))]
    pub micro_batch: i32,
    /// Steps in one update.
    #[schemars(range(min = 1, max = 256))]
    pub grad_accumulation: i32,
    /// Whether time is traded for memory. YAML reads On and Off without quotes as true and false: quote them.
    pub low_memory: LowMemory,
    /// Further arguments of the trainer, which refuses those it does not know; keys of at most 32 characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    #[x_kube(validation = Rule::new("self.all(k, k.size() >= 1 && k.size() <= 32)").message("must have keys of 1 to 32 characters"))]
    pub extra: BTreeMap<String, RecipeValue>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            name: "standard".to_owned(),
            epochs: 3,
            seed: 7,
            micro_batch: 2,
            grad_accumulation: 8,
            low_memory: LowMemory::Auto,
            extra: BTreeMap::new(),
        }
    }
}

pattern_string!(
    /// An argument of a trainer.
    RecipeValue, 64, "^[^\\x00-\\x1f]*$"
);

/// What becomes of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PromoteMode {
    /// It is a LayaModel and nothing more.
    #[default]
    Never,
    /// A server serves it when a person sets approved.
    Manual,
    /// A server serves it when its gate passed.
    Automatic,
}

/// What becomes of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "Promote::default"
)]
#[x_kube(validation = Rule::new("self.mode == 'Never' ? !has(self.serverRef) : has(self.serverRef)").message("is needed with mode Manual or Automatic, and only there").field_path(".serverRef"), validation = Rule::new("has(self.serverRef) == has(oldSelf.serverRef) && (!has(self.serverRef) || self.serverRef == oldSelf.serverRef)").message("is immutable").field_path(".serverRef"))]
pub struct Promote {
    /// Who decides.
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub mode: PromoteMode,
    /// LayaServer that is to serve it; with Manual and Automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub server_ref: Option<Reference>,
    /// A person said yes.
    pub approved: bool,
}

impl Default for Promote {
    fn default() -> Self {
        Self {
            mode: PromoteMode::Never,
            server_ref: None,
            approved: false,
        }
    }
}

status_enum!(
    /// Where a TrainingRun stands, for people.
    RunPhase {
        /// Others go first.
        Queued,
        /// Base or rows are missing.
        Preparing,
        /// It trains.
        Running,
        /// The result is stored.
        Publishing,
        /// The gate judges.
        Evaluating,
        /// A person must say yes.
        AwaitingPromotion,
        /// It made a model.
        Succeeded,
        /// It did not.
        Failed,
        /// It stands still.
        Suspended,
        /// A person ended it.
        Cancelled,
    }
);

/// What the controller found and did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrainingRunStatus {
    /// Generation that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands, for people; code reads conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunPhase")]
    pub phase: Option<RunPhase>,
    /// What is observed, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 100))]
    pub progress: Option<i32>,
    /// What it does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 128))]
    pub progress_text: Option<String>,
    /// Device that trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub device: Option<String>,
    /// Whether time is traded for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub low_memory: Option<bool>,
    /// Rows by use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RowCounts")]
    pub rows: Option<RowCounts>,
    /// Rows that were pinned at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PinnedDataset")]
    pub dataset: Option<PinnedDataset>,
    /// Attempts so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub attempts: Vec<Attempt>,
    /// How it ended; written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Outcome")]
    pub outcome: Option<Outcome>,
    /// Numbers of the trainer, decimals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub metrics: BTreeMap<String, MetricValue>,
    /// What the gate said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GateSeen")]
    pub gate: Option<GateSeen>,
    /// LayaModel that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProducedModel")]
    pub produced_model: Option<ProducedModel>,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Promotion")]
    pub promotion: Option<Promotion>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// When it must be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub deadline_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub completed_at: Option<Timestamp>,
}

pattern_string!(
    /// A number as text.
    MetricValue, 16, r"^-?[0-9]{1,9}(\.[0-9]{1,6})?$"
);

/// Rows by use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowCounts {
    /// Rows that are to be learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub focus: Option<i64>,
    /// Rows that are not to be forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub replay: Option<i64>,
    /// Rows for validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub val: Option<i64>,
    /// Rows held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub test: Option<i64>,
}

/// Rows that were pinned.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinnedDataset {
    /// Their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub rows: Option<i64>,
    /// Digest of the held-out rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub held_out_digest: Option<String>,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub held_out_rows: Option<i64>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub snapshot_at: Option<Timestamp>,
}

status_enum!(
    /// How an attempt began.
    AttemptMode {
        /// From the base.
        Normal,
        /// With less memory.
        LowMemory,
        /// From a checkpoint.
        Resume,
    }
);

/// One attempt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub n: Option<i32>,
    /// How it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AttemptMode")]
    pub mode: Option<AttemptMode>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub finished_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub outcome: Option<String>,
    /// Exit code of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub exit_code: Option<i32>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// Passes that were done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub epoch: Option<i32>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Whether it made a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub succeeded: Option<bool>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}

/// LayaModel that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProducedModel {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub name: Option<String>,
    /// Its checkpoint digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
}

/// What became of the result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Promotion {
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub state: Option<String>,
    /// LayaServer that serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub server: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}
