//! Types that several kinds share (control-plane 1.2, 3): strings with a pattern, references, sources of rows, devices,
//! resources and what a pod is given.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::routing_policy::{Decimal, Ratio, Reference};

/// A path below a folder: no empty, hidden or upward parts.
pub(super) const RELATIVE_PATH: &str =
    "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){0,7}$";
/// The same, or the folder itself.
pub(super) const FOLDER: &str =
    r"^(\.|[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){0,7})$";
/// Name of a Secret, a claim, a class: a DNS subdomain.
pub(super) const SUBDOMAIN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// Name of a claim or of a Docker volume.
pub(super) const VOLUME: &str = "^[A-Za-z0-9][A-Za-z0-9_.-]*$";
/// A key of a Secret or a ConfigMap, which is the name of a file too: neither `.` nor `..`.
pub(super) const DATA_KEY: &str = r"^([-_a-zA-Z0-9]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$";

/// Where files may be fetched from: by TLS, from this machine, or from a Service of the cluster.
pub(super) const URL_RULE: &str = "self.startsWith('https://') || self.matches('^http://(127[.]0[.]0[.]1|localhost|[a-z0-9.-]+[.]svc)(:[0-9]+)?/')";
/// What [`URL_RULE`] says.
pub(super) const URL_MESSAGE: &str = "must begin with https://, or with http:// for 127.0.0.1, localhost or a name that ends with .svc";

macro_rules! pattern_string {
    ($(#[$doc:meta])* $name:ident, $most:literal, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(extend("maxLength" = $most, "pattern" = $pattern))]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}
pub(super) use pattern_string;

pattern_string!(
    /// sha256: and 64 hex digits.
    Digest, 71, "^sha256:[0-9a-f]{64}$"
);
pattern_string!(
    /// An amount as Kubernetes writes it: 500m, 2, 1.5Gi.
    Quantity, 20, r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
);

/// An enum of a status: words that a newer program added are read as `Unknown`, which is no word of the schema.
macro_rules! status_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A word of a newer program.
            #[default]
            #[serde(other)]
            #[schemars(skip)]
            Unknown,
        }

        impl $name {
            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                    Self::Unknown => "Unknown",
                }
            }
        }
    };
}
pub(super) use status_enum;

/// A key of a Secret; on a laptop the file secrets/<name>/<key> of RELAY_HOME, mode 0600.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253), regex(pattern = DATA_KEY))]
    pub key: String,
}

/// Where a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Device {
    /// A GPU where there is one.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// What happens when the asked device is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum DevicePolicy {
    /// The model does not serve.
    #[default]
    Require,
    /// It serves where it can, and status says so.
    Prefer,
}

/// Numbers a model is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Precision {
    /// 32-bit floats, as trained.
    #[default]
    F32,
    /// 16-bit floats.
    Bf16,
    /// 8-bit integers.
    Int8,
}

/// GPUs of one replica or task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Gpu {
    /// Name of the resource on Kubernetes.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
        )
    )]
    pub resource_name: String,
    /// How many.
    #[schemars(range(min = 1, max = 8))]
    pub count: i32,
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            resource_name: "nvidia.com/gpu".to_owned(),
            count: 1,
        }
    }
}

/// Amounts of CPU and memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceAmounts {
    /// Cores, for example 500m or 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Quantity")]
    pub cpu: Option<Quantity>,
    /// Bytes, for example 2Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Quantity")]
    pub memory: Option<Quantity>,
}

/// What a container asks for and may use at most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// What it asks for. Default: cpu 1, memory as limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceAmounts")]
    pub requests: Option<ResourceAmounts>,
    /// What it may use. Default: memory max(1 GiB, 1.6 × checkpoint + 512 MiB), no limit of cpu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceAmounts")]
    pub limits: Option<ResourceAmounts>,
}

/// How a taint is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// Any value.
    Exists,
    /// The same value.
    Equal,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// No new pods if it can be helped.
    PreferNoSchedule,
    /// No pods.
    NoExecute,
}

/// A taint that the pods tolerate, as in a pod.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Toleration {
    /// Key of the taint; every key when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 317))]
    pub key: Option<String>,
    /// How the value is compared; Equal when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TolerationOperator")]
    pub operator: Option<TolerationOperator>,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 63))]
    pub value: Option<String>,
    /// Effect of the taint; every effect when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TaintEffect")]
    pub effect: Option<TaintEffect>,
    /// Seconds for which NoExecute is tolerated; forever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// Where pods run. Kubernetes only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, NodeLabel>,
    /// Taints that are tolerated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub tolerations: Vec<Toleration>,
    /// PriorityClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub priority_class_name: Option<String>,
    /// RuntimeClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub runtime_class_name: Option<String>,
}

pattern_string!(
    /// Value of a label.
    NodeLabel, 63, "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
);

/// Rows that this installation learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StoreSource {
    /// Name of the dataset in the store.
    #[schemars(length(min = 1, max = 40), regex(pattern = crate::group::NAME_PATTERN))]
    pub name: String,
}

impl Default for StoreSource {
    fn default() -> Self {
        Self {
            name: "learned".to_owned(),
        }
    }
}

/// A file behind a URL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpSource {
    /// Address of the file.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new(URL_RULE).message(URL_MESSAGE))]
    pub url: String,
    /// Bearer token for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretRef")]
    pub auth_secret_ref: Option<SecretRef>,
}

/// A file or folder in a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeSource {
    /// Claim, or Docker volume.
    #[schemars(length(min = 1, max = 253), regex(pattern = VOLUME))]
    pub name: String,
    /// Place in the volume; . is the volume itself.
    #[schemars(length(min = 1, max = 255), regex(pattern = FOLDER))]
    pub path: String,
}

/// A file in a ConfigMap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigMapSource {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253), regex(pattern = DATA_KEY))]
    pub key: String,
}

/// A version of a model, as status names it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelVersion {
    /// Name of the LayaModel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub model: Option<String>,
    /// Digest of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
}
