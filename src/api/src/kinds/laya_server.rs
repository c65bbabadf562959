//! `LayaServer`: what serves a model (control-plane 3). Its rollout fields are in `rollout`, its status in `status`.

mod rollout;
mod status;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rollout::*;
pub use status::*;

use super::shared::{Device, DevicePolicy, Gpu, Pod, Precision, Reference, Resources, SUBDOMAIN};

/// Which model is served, by what, and how a new one takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "relay.dev",
    version = "v1alpha1",
    kind = "LayaServer",
    plural = "layaservers",
    singular = "layaserver",
    shortname = "ls",
    category = "relay",
    namespaced,
    status = "LayaServerStatus",
    derive = "PartialEq",
    doc = "What serves a model: replicas, device, and how a new version takes over.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Model",
        type_ = "string",
        json_path = ".status.champion.model",
        description = "LayaModel that serves"
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
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Replicas that are ready"
    ),
    printcolumn(
        name = "Device",
        type_ = "string",
        json_path = ".status.champion.device.actual",
        description = "Device that serves"
    ),
    printcolumn(
        name = "Candidate",
        type_ = "string",
        json_path = ".status.candidate.model",
        description = "LayaModel that is to serve"
    ),
    printcolumn(
        name = "Rollout",
        type_ = "string",
        json_path = ".status.rollout.state",
        description = "Where the rollout stands"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    ),
    printcolumn(
        name = "Digest",
        type_ = "string",
        json_path = ".status.champion.shortDigest",
        description = "Checkpoint that serves",
        priority = 1
    ),
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".status.champion.revision",
        description = "Revision that serves",
        priority = 1
    ),
    printcolumn(
        name = "Previous",
        type_ = "string",
        json_path = ".status.previous.model",
        description = "LayaModel to go back to",
        priority = 1
    ),
    printcolumn(
        name = "Weight",
        type_ = "integer",
        json_path = r#".status.traffic.targets[?(@.role=="Candidate")].weight"#,
        description = "Share of the candidate, in percent",
        priority = 1
    ),
    printcolumn(
        name = "URL",
        type_ = "string",
        json_path = ".status.url",
        description = "Address for plain Laya clients",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.gpu) || self.device != 'Cpu'").message("is not possible with device Cpu").field_path(".gpu"))]
pub struct LayaServerSpec {
    /// LayaModel to serve; changing it starts a rollout.
    pub model_ref: Reference,
    /// Whether TrainingRuns may promote into this server without a change of spec.
    #[serde(default)]
    pub promotions: Promotions,
    /// Servers of the champion; 0 is as suspend.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 64))]
    pub replicas: i32,
    /// Where the model runs.
    #[serde(default)]
    pub device: Device,
    /// What happens when that device is not there; judged only when device is not Auto.
    #[serde(default)]
    pub device_policy: DevicePolicy,
    /// GPUs of one replica; not with device Cpu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gpu")]
    pub gpu: Option<Gpu>,
    /// When a claimed GPU is not believed.
    #[serde(default)]
    pub device_check: DeviceCheck,
    /// Image to run; the one of the controller when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253), regex(pattern = SUBDOMAIN)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub image_pull_secrets: Vec<String>,
    /// What the image speaks; with Laya only /health and /v1/systemone are assumed.
    #[serde(default)]
    pub server_api: ServerApi,
    /// CPU and memory of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Resources")]
    pub resources: Option<Resources>,
    /// How requests are taken.
    #[serde(default)]
    pub serving: Serving,
    /// How often probe questions are asked.
    #[serde(default)]
    pub probe: Probe,
    /// How a new version takes over.
    #[serde(default)]
    pub rollout: Rollout,
    /// Where pods run. Kubernetes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pod")]
    pub pod: Option<Pod>,
    /// A Laya server that is not ours: it gets traffic and probe questions, nothing is started or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "External")]
    pub external: Option<External>,
    /// No replicas, no traffic; rules answer.
    #[serde(default)]
    pub suspend: bool,
}

const fn one() -> i32 {
    1
}

/// Whether TrainingRuns may promote into a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Promotions {
    /// They may.
    #[default]
    Accept,
    /// Only spec decides.
    Ignore,
}

/// What an image speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ServerApi {
    /// All of our server: health, readiness, drain, metrics.
    #[default]
    Relay,
    /// Only /health and /v1/systemone.
    Laya,
}

/// When a claimed GPU is not believed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeviceCheck {
    /// Median latency of one question above which it is not; 0 = never asked.
    #[schemars(range(min = 0, max = 60000))]
    pub max_p50_millis: i32,
}

impl Default for DeviceCheck {
    fn default() -> Self {
        Self {
            max_p50_millis: 120,
        }
    }
}

/// How a server takes requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Serving {
    /// Requests at once; above it the server answers 503 with retry-after.
    #[schemars(range(min = 1, max = 256))]
    pub max_concurrent: i32,
    /// Threads of the engine; 0 = as many as there are cores.
    #[schemars(range(min = 0, max = 256))]
    pub threads: i32,
    /// How long a request waits for others to share a pass with.
    #[schemars(range(min = 0, max = 50000))]
    pub batch_window_micros: i32,
    /// Numbers the model is computed with.
    pub precision: Precision,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            max_concurrent: 16,
            threads: 0,
            batch_window_micros: 0,
            precision: Precision::F32,
        }
    }
}

/// How often probe questions are asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Probe {
    /// Between two.
    #[schemars(range(min = 10, max = 3600))]
    pub interval_seconds: i32,
    /// For one answer.
    #[schemars(range(min = 100, max = 60000))]
    pub timeout_millis: i32,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            interval_seconds: 60,
            timeout_millis: 5000,
        }
    }
}

/// A Laya server that is not ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct External {
    /// Its address on this machine.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new(LOOPBACK).message("must be http:// with a loopback address"))]
    pub url: String,
}

/// Another machine's server could be anybody's.
const LOOPBACK: &str =
    r"self.matches(r'^http://(127([.][0-9]{1,3}){3}|localhost|\[::1\])(:[0-9]{1,5})?/?$')";
