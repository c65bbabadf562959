//! What of a spec the back end can do (control-plane 8.1): the wish beyond that is cut, and the paths are told.

use api::kinds::LayaServerSpec;
use api::kinds::laya_server::Strategy;
use api::kinds::shared::{Device, Gpu, Pod};
use backend::Capabilities;

/// A spec as far as the back end can follow it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    /// Servers of the champion.
    pub(super) replicas: u32,
    /// Path of a rollout.
    pub(super) strategy: Strategy,
    /// Device asked for.
    pub(super) device: Device,
    /// GPUs asked for.
    pub(super) gpu: Option<Gpu>,
    /// Where pods run.
    pub(super) pod: Option<Pod>,
    /// Paths that count for nothing, sorted.
    pub(super) ignored: Vec<&'static str>,
}

impl Cut {
    pub(super) fn of(spec: &LayaServerSpec, capabilities: &Capabilities) -> Self {
        let wished = u32::try_from(spec.replicas).unwrap_or(0);
        let mut ignored = Vec::new();
        if wished > capabilities.max_replicas {
            ignored.push("spec.replicas");
        }
        let splits = matches!(spec.rollout.strategy, Strategy::Canary | Strategy::Shadow);
        let strategy = if splits && !capabilities.split_traffic {
            ignored.push("spec.rollout.strategy");
            Strategy::BlueGreen
        } else {
            spec.rollout.strategy
        };
        let (device, gpu) = if capabilities.gpu {
            (spec.device, spec.gpu.clone())
        } else {
            if spec.gpu.is_some() {
                ignored.push("spec.gpu");
            }
            if spec.device == Device::Cuda {
                ignored.push("spec.device");
                (Device::Cpu, None)
            } else {
                (spec.device, None)
            }
        };
        let pod = if capabilities.pods {
            spec.pod.clone()
        } else {
            ignored.extend(spec.pod.as_ref().map(|_| "spec.pod"));
            None
        };
        if !capabilities.images {
            ignored.extend(spec.image.as_ref().map(|_| "spec.image"));
            if !spec.image_pull_secrets.is_empty() {
                ignored.push("spec.imagePullSecrets");
            }
        }
        ignored.sort_unstable();
        Self {
            replicas: wished.min(capabilities.max_replicas),
            strategy,
            device,
            gpu,
            pod,
            ignored,
        }
    }
}
