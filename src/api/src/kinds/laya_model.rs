//! `LayaModel`: a checkpoint under a name (control-plane 2).

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;
use super::shared::{
    Digest, Quantity, RELATIVE_PATH, SUBDOMAIN, SecretRef, URL_MESSAGE, URL_RULE, VolumeSource,
    pattern_string, status_enum,
};

/// Where the checkpoint comes from and how it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "relay.dev",
    version = "v1alpha1",
    kind = "LayaModel",
    plural = "layamodels",
    singular = "layamodel",
    shortname = "lm",
    category = "relay",
    namespaced,
    status = "LayaModelStatus",
    derive = "PartialEq",
    doc = "A checkpoint under a name: where it comes from, and whether it is here and right.",
    printcolumn(
        name = "Digest",
        type_ = "string",
        json_path = ".status.shortDigest",
        description = "First 12 hex digits of the checkpoint digest"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether it does its work"
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
        name = "Size",
        type_ = "integer",
        json_path = ".status.sizeBytes",
        description = "Bytes of all files",
        priority = 1
    ),
    printcolumn(
        name = "Contract",
        type_ = "string",
        json_path = ".status.contract",
        description = "Digest of the contract",
        priority = 1
    ),
    printcolumn(
        name = "Verified",
        type_ = "date",
        json_path = ".status.verifiedAt",
        description = "Time since the files were hashed",
        priority = 1
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Where it stands, for people",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(oldSelf.contract) || has(self.contract)").message("cannot be removed once set").field_path(".contract"), validation = Rule::new("!has(oldSelf.manifestDigest) || has(self.manifestDigest)").message("cannot be removed once set").field_path(".manifestDigest"), validation = Rule::new("!has(self.source.volume) || has(self.manifestDigest)").message("is needed with source.volume").field_path(".manifestDigest"))]
pub struct LayaModelSpec {
    /// Contract the checkpoint was trained for; must equal what the checkpoint says, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Digest")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub contract: Option<Digest>,
    /// Where the files come from; exactly one of http, oci, volume, trainingRun.
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub source: ModelSource,
    /// Expected checkpoint digest: SHA-256 of the canonical manifest. Needed for source.volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Digest")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub manifest_digest: Option<Digest>,
    /// Where the files are kept.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    pub storage: ModelStorage,
    /// Patience with the source.
    #[serde(default)]
    pub fetch: ModelFetch,
    /// No fetch is started; a model that is there stays Ready.
    #[serde(default)]
    pub suspend: bool,
}

/// Where files come from; exactly one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("[has(self.http), has(self.oci), has(self.volume), has(self.trainingRun)].filter(x, x).size() == 1").message("must have exactly one of http, oci, volume, trainingRun"))]
pub struct ModelSource {
    /// Files below a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HttpModel")]
    pub http: Option<HttpModel>,
    /// An artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OciModel")]
    pub oci: Option<OciModel>,
    /// A folder that is there already: used in place, read-only, never pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VolumeSource")]
    pub volume: Option<VolumeSource>,
    /// What a TrainingRun made; written by its reconciler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TrainedModel")]
    pub training_run: Option<TrainedModel>,
}

/// Files below a URL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpModel {
    /// What paths are added to; ends with a slash as a rule.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new(URL_RULE).message(URL_MESSAGE))]
    pub base_url: String,
    /// Every file of the checkpoint.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["path".into()]))]
    pub files: Vec<ModelFile>,
    /// Bearer token for the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretRef")]
    pub auth_secret_ref: Option<SecretRef>,
}

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelFile {
    /// Place in the checkpoint.
    #[schemars(length(min = 1, max = 255), regex(pattern = RELATIVE_PATH))]
    pub path: String,
    /// Bytes.
    #[schemars(range(min = 1, max = 1_099_511_627_776_i64))]
    pub size: i64,
    /// SHA-256 of the content, 64 hex digits.
    pub sha256: Sha256,
    /// Name at the source; the path when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 255), regex(pattern = RELATIVE_PATH))]
    pub asset: Option<String>,
}

pattern_string!(
    /// 64 hex digits.
    Sha256, 64, "^[0-9a-f]{64}$"
);
pattern_string!(
    /// An image or artifact by digest: name@sha256:<64 hex>.
    PinnedReference, 512, r"^[^@\s]+@sha256:[0-9a-f]{64}$"
);

/// An artifact in a registry: layers are plain blobs titled by org.opencontainers.image.title.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciModel {
    /// Where, with @sha256:.
    pub reference: PinnedReference,
    /// Registry credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretRef")]
    pub pull_secret_ref: Option<SecretRef>,
}

/// What a TrainingRun made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrainedModel {
    /// Name of the run.
    #[schemars(length(min = 1, max = 40), regex(pattern = crate::group::NAME_PATTERN))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[0-9a-zA-Z-]+$"))]
    pub uid: String,
}

/// Who may mount the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// Pods of one node.
    #[default]
    ReadWriteOnce,
    /// Pods of all nodes.
    ReadWriteMany,
}

/// What happens to the data when the object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnDelete {
    /// It is removed.
    #[default]
    Delete,
    /// It stays.
    Retain,
}

/// Where files are kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelStorage {
    /// Size of the volume. Default: 1.25 × files + 256 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Quantity")]
    pub size: Option<Quantity>,
    /// StorageClass. Kubernetes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub class_name: Option<String>,
    /// Who may mount it. Kubernetes only.
    #[serde(default)]
    pub access_mode: AccessMode,
    /// Whether the data goes with the object.
    #[serde(default)]
    pub on_delete: OnDelete,
}

/// Patience with the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelFetch {
    /// For all attempts together.
    #[schemars(range(min = 60, max = 86400))]
    pub deadline_seconds: i32,
    /// How often it is tried.
    #[schemars(range(min = 1, max = 20))]
    pub max_attempts: i32,
    /// Slower than this counts as interrupted.
    #[schemars(range(min = 0, max = 1_099_511_627_776_i64))]
    pub min_bytes_per_second: i64,
}

impl Default for ModelFetch {
    fn default() -> Self {
        Self {
            deadline_seconds: 3600,
            max_attempts: 5,
            min_bytes_per_second: 1024,
        }
    }
}

status_enum!(
    /// Where a LayaModel stands, for people.
    ModelPhase {
        /// Nothing was fetched yet.
        Pending,
        /// Files are coming.
        Fetching,
        /// It can be used.
        Published,
        /// It is being hashed.
        Verifying,
        /// Damaged files are fetched again.
        Repairing,
        /// Somebody must change something.
        Failed,
        /// It is going away.
        Deleting,
    }
);

/// What the controller found and did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayaModelStatus {
    /// Generation that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands, for people; code reads conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelPhase")]
    pub phase: Option<ModelPhase>,
    /// What is observed, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
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
    /// Bytes of all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub size_bytes: Option<i64>,
    /// Number of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub file_count: Option<i32>,
    /// Where the files are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelLocation")]
    pub location: Option<ModelLocation>,
    /// The fetch that runs, or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FetchProgress")]
    pub fetch: Option<FetchProgress>,
    /// When the files were hashed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub verified_at: Option<Timestamp>,
    /// Value of annotation relay.dev/verify that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub verify_nonce: Option<String>,
    /// Checkpoints it was trained from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub parents: Vec<Digest>,
    /// What gates said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub scores: Vec<ModelScore>,
    /// LayaServers that have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub used_by: Vec<ModelUse>,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelLocation {
    /// Back end that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub backend: Option<String>,
    /// Claim, or Docker volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub volume: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub volume_uid: Option<String>,
    /// Folder in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 512))]
    pub path: Option<String>,
}

/// How far a fetch is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FetchProgress {
    /// Number of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub attempt: Option<i32>,
    /// When the first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// Bytes that are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub bytes_done: Option<i64>,
    /// Bytes of all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub bytes_total: Option<i64>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub next_attempt_at: Option<Timestamp>,
    /// Why the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FetchError")]
    pub last_error: Option<FetchError>,
}

/// Why an attempt ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FetchError {
    /// In one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub message: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelScore {
    /// Name of the EvaluationGate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub gate: Option<String>,
    /// Id of the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub evaluation: Option<String>,
    /// Its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub verdict: Option<String>,
    /// Pooled accuracy, a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 16))]
    pub accuracy: Option<String>,
    /// Rows it was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub samples: Option<i64>,
}

status_enum!(
    /// What a LayaServer has a model as.
    ModelRole {
        /// It serves.
        Champion,
        /// It is to serve.
        Candidate,
        /// It is the way back.
        Previous,
    }
);

/// A LayaServer that has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUse {
    /// Name of the LayaServer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub server: Option<String>,
    /// As what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelRole")]
    pub role: Option<ModelRole>,
}
