//! What we ask an engine to make, as pure functions of what is wanted (control-plane 8.3). Goldens are in `tests/golden`;
//! when one of a server changes, [`crate::RENDER_VERSION`] is raised.

use std::collections::HashMap;

use api::kinds::laya_server::ServerApi;
use api::kinds::shared::{Device, Gpu, Precision};
use api::label;
use bollard::models::{
    ContainerCreateBody, DeviceRequest, HealthConfig, HostConfig, HostConfigLogConfig, Mount,
    MountType, MountVolumeOptions, NetworkCreateRequest, PortBinding, RestartPolicy,
    RestartPolicyNameEnum, VolumeCreateRequest,
};
use decision::contract::Digest;

use super::labels::{self, Labels};
use super::names::Instance;
use crate::{Network, Owner, ServerSpec, TaskSpec, VolumeRole, Writes};

/// Where servers listen inside.
pub(super) const PORT: &str = "8000/tcp";
/// Where models lie inside.
pub(super) const MODELS: &str = "/data/models";
/// Where a run or a gate works inside.
pub(super) const WORK: &str = "/work";
/// Where staged files lie inside.
pub(super) const STAGED: &str = "/run/relay";
/// Where secrets lie inside.
pub(super) const SECRETS: &str = "/run/secrets/relay";
/// User and group of everything we run.
pub(super) const USER: &str = "10001:10001";
/// Seconds a server has after its drain.
const STOP_SLACK_SECONDS: i64 = 10;
/// Seconds a task has to write its checkpoint (control-plane 13).
const TASK_STOP_SECONDS: i64 = 60;
const NANOS: i64 = 1_000_000_000;

/// How an engine is asked for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuRequests {
    /// By a device request with capability `gpu`.
    Capability,
    /// By CDI names: Podman.
    Cdi,
}

/// Proxies of the controller's environment, which fetch tasks get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxies {
    /// `HTTP_PROXY`.
    pub http: Option<String>,
    /// `HTTPS_PROXY`.
    pub https: Option<String>,
    /// `NO_PROXY`.
    pub no: Option<String>,
}

/// What renderings of one process share.
#[derive(Debug, Clone)]
pub struct Renderer {
    /// Whose things they are.
    pub instance: Instance,
    /// How GPUs are asked for.
    pub gpu: GpuRequests,
    /// For fetch tasks.
    pub proxies: Proxies,
    /// Bytes for tasks that name none.
    pub task_memory_bytes: u64,
}

impl Renderer {
    /// A replica.
    #[must_use]
    pub fn server(&self, owner: &Owner, server: &ServerSpec, ordinal: u32) -> ContainerCreateBody {
        let stop = i64::from(server.drain_seconds) + STOP_SLACK_SECONDS;
        let mut host = hardened(server.memory_bytes());
        host.nano_cpus = server
            .inputs
            .cpu_limit_millis()
            .and_then(|millis| i64::try_from(millis.saturating_mul(1_000_000)).ok());
        host.network_mode = Some(self.instance.serve_network());
        host.restart_policy = restart(RestartPolicyNameEnum::UNLESS_STOPPED);
        host.mounts = Some(vec![volume(
            self.instance.volume(&server.volume),
            MODELS,
            Writes::No,
        )]);
        host.port_bindings = Some(HashMap::from([(
            PORT.to_owned(),
            Some(vec![PortBinding {
                host_ip: Some("127.0.0.1".to_owned()),
                host_port: Some("0".to_owned()),
            }]),
        )]));
        if server.wants_gpu {
            host.device_requests = Some(vec![self.gpus(&server.gpu())]);
        }
        let body = ContainerCreateBody {
            image: Some(image_of(server)),
            user: Some(USER.to_owned()),
            cmd: Some(command(server)),
            env: Some(environment(server)),
            exposed_ports: Some(vec![PORT.to_owned()]),
            healthcheck: Some(health(server.server_api())),
            stop_signal: Some("SIGTERM".to_owned()),
            stop_timeout: Some(stop),
            labels: Some(labels::of_server(&self.instance, owner, server, ordinal)),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        hashed(body)
    }

    /// A task. `image` is the id of the one it names, where known.
    #[must_use]
    pub fn task(&self, owner: &Owner, task: &TaskSpec, image: &str) -> ContainerCreateBody {
        let limit = match task.memory_bytes {
            0 => self.task_memory_bytes,
            bytes => bytes,
        };
        let mut host = hardened(limit);
        host.network_mode = Some(match task.network {
            Network::None => "none".to_owned(),
            Network::Egress => self.instance.egress_network(),
        });
        host.restart_policy = restart(RestartPolicyNameEnum::NO);
        let labels = labels::of_task(&self.instance, owner, &task.key);
        let mut mounts: Vec<Mount> = task
            .volumes
            .iter()
            .map(|(role, writes)| volume(self.instance.volume(role), target(role), *writes))
            .collect();
        if !task.files.is_empty() {
            mounts.push(own_volume(STAGED, &labels));
        }
        if !task.secrets.is_empty() {
            mounts.push(own_volume(SECRETS, &labels));
        }
        host.mounts = Some(mounts);
        if let Some(gpu) = &task.gpu {
            host.device_requests = Some(vec![self.gpus(gpu)]);
        }
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            user: Some(USER.to_owned()),
            cmd: Some(task.arguments.0.clone()),
            env: Some(self.task_environment(task)),
            // The image's own asks a server, which a task is not.
            healthcheck: Some(no_health()),
            stop_signal: Some("SIGTERM".to_owned()),
            stop_timeout: Some(TASK_STOP_SECONDS),
            labels: Some(labels),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        hashed(body)
    }

    fn task_environment(&self, task: &TaskSpec) -> Vec<String> {
        if task.network == Network::None {
            return Vec::new();
        }
        let Proxies { http, https, no } = &self.proxies;
        [
            ("HTTP_PROXY", http),
            ("HTTPS_PROXY", https),
            ("NO_PROXY", no),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")))
        .collect()
    }

    /// A volume. `uid` is random: it is how a lost one is told from one that was made anew.
    #[must_use]
    pub fn volume(&self, owner: &Owner, role: &VolumeRole, uid: &str) -> VolumeCreateRequest {
        let mut labels = match role {
            // One for all: it has no owner.
            VolumeRole::Models | VolumeRole::Foreign { .. } => labels::ours(&self.instance),
            VolumeRole::Work { .. } => {
                labels::of_owner(&self.instance, owner, label::Component::Training)
            }
            VolumeRole::Gate { .. } => {
                labels::of_owner(&self.instance, owner, label::Component::Evaluation)
            }
        };
        labels.insert(label::VOLUME_UID.to_owned(), uid.to_owned());
        VolumeCreateRequest {
            name: Some(self.instance.volume(role)),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        }
    }

    /// The network of servers: published ports work; containers reach neither each other nor anything beyond the host.
    #[must_use]
    pub fn serve_network(&self) -> NetworkCreateRequest {
        let options = [
            ("com.docker.network.bridge.enable_ip_masquerade", "false"),
            ("com.docker.network.bridge.enable_icc", "false"),
        ];
        self.network(self.instance.serve_network(), &options)
    }

    /// The network of fetch tasks: a way out, not to each other.
    #[must_use]
    pub fn egress_network(&self) -> NetworkCreateRequest {
        let options = [("com.docker.network.bridge.enable_icc", "false")];
        self.network(self.instance.egress_network(), &options)
    }

    fn network(&self, name: String, options: &[(&str, &str)]) -> NetworkCreateRequest {
        NetworkCreateRequest {
            name,
            driver: Some("bridge".to_owned()),
            internal: Some(false),
            options: Some(pairs(options)),
            labels: Some(labels::ours(&self.instance)),
            ..NetworkCreateRequest::default()
        }
    }

    fn gpus(&self, gpu: &Gpu) -> DeviceRequest {
        match self.gpu {
            GpuRequests::Capability => DeviceRequest {
                count: Some(i64::from(gpu.count)),
                capabilities: Some(vec![vec!["gpu".to_owned()]]),
                ..DeviceRequest::default()
            },
            GpuRequests::Cdi => DeviceRequest {
                driver: Some("cdi".to_owned()),
                device_ids: Some(
                    (0..gpu.count)
                        .map(|number| format!("{}={number}", gpu.resource_name))
                        .collect(),
                ),
                ..DeviceRequest::default()
            },
        }
    }
}

fn hardened(memory_bytes: u64) -> HostConfig {
    let memory = i64::try_from(memory_bytes).ok();
    HostConfig {
        memory,
        // The same: no swap on top.
        memory_swap: memory,
        pids_limit: Some(512),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        privileged: Some(false),
        // Our programs answer signals as process 1 and start no children.
        init: Some(false),
        tmpfs: Some(pairs(&[("/tmp", "rw,noexec,nosuid,size=64m")])),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(pairs(&[("max-size", "10m"), ("max-file", "3")])),
        }),
        ..HostConfig::default()
    }
}

fn restart(name: RestartPolicyNameEnum) -> Option<RestartPolicy> {
    Some(RestartPolicy {
        name: Some(name),
        maximum_retry_count: None,
    })
}

/// The id where it is known, else the name.
pub(super) fn image_of(server: &ServerSpec) -> String {
    let id = server.image_id.as_ref();
    id.unwrap_or(&server.inputs.image).clone()
}

fn command(server: &ServerSpec) -> Vec<String> {
    let model = format!("{MODELS}/{}", server.path);
    match server.server_api() {
        ServerApi::Relay => vec![
            "serve".to_owned(),
            "--model".to_owned(),
            model,
            "--expect-digest".to_owned(),
            server.inputs.digest.clone(),
        ],
        // Images of Relay 1.0.3 (training 11) start their server by the command alone, so all of it is said.
        ServerApi::Laya => [
            "python",
            "/opt/laya/serve.py",
            "--model",
            &model,
            "--host",
            "0.0.0.0",
            "--port",
            "8000",
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}

/// The variables of wire 3, in order of name. A server that is not ours knows `LAYA_DEVICE` alone.
fn environment(server: &ServerSpec) -> Vec<String> {
    let device = match server.device() {
        Device::Auto => "auto",
        Device::Cpu => "cpu",
        Device::Cuda => "cuda",
    };
    let mut variables = vec![format!("LAYA_DEVICE={device}")];
    if server.server_api() == ServerApi::Relay {
        let serving = server.serving();
        let precision = match serving.precision {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::Int8 => "int8",
        };
        variables.extend([
            // The network is private and the port is bound to loopback outside.
            "LAYA_ALLOW_UNAUTHENTICATED=1".to_owned(),
            format!("LAYA_BATCH_WINDOW_US={}", serving.batch_window_micros),
            format!("LAYA_DRAIN_TIMEOUT={}", server.drain_seconds.max(1)),
            "LAYA_HOST=0.0.0.0".to_owned(),
            format!("LAYA_MAX_CONCURRENT={}", serving.max_concurrent),
            "LAYA_PORT=8000".to_owned(),
            format!("LAYA_PRECISION={precision}"),
            "LAYA_REQUIRE_VERIFIED=1".to_owned(),
        ]);
        if serving.threads > 0 {
            variables.push(format!("LAYA_THREADS={}", serving.threads));
        }
    }
    variables.sort_unstable();
    variables
}

/// For `docker ps`; nothing is decided by it.
fn health(api: ServerApi) -> HealthConfig {
    match api {
        ServerApi::Relay => HealthConfig {
            test: Some(
                ["CMD", "/laya", "probe", "--ready"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            interval: Some(30 * NANOS),
            timeout: Some(6 * NANOS),
            start_period: Some(60 * NANOS),
            retries: Some(3),
            start_interval: None,
        },
        ServerApi::Laya => no_health(),
    }
}

fn no_health() -> HealthConfig {
    HealthConfig {
        test: Some(vec!["NONE".to_owned()]),
        ..HealthConfig::default()
    }
}

/// Where a volume is seen inside.
pub(super) const fn target(role: &VolumeRole) -> &'static str {
    match role {
        VolumeRole::Models | VolumeRole::Foreign { .. } => MODELS,
        VolumeRole::Work { .. } | VolumeRole::Gate { .. } => WORK,
    }
}

fn volume(name: String, target: &str, writes: Writes) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name),
        target: Some(target.to_owned()),
        read_only: Some(writes == Writes::No),
        ..Mount::default()
    }
}

/// A volume without a name, which goes with its container.
fn own_volume(target: &str, labels: &Labels) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        target: Some(target.to_owned()),
        // It takes the files we put there.
        read_only: Some(false),
        volume_options: Some(MountVolumeOptions {
            labels: Some(labels.clone()),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Puts the hash of all the rest on the labels.
fn hashed(mut body: ContainerCreateBody) -> ContainerCreateBody {
    let hash = hash(&body);
    if let Some(labels) = body.labels.as_mut() {
        labels.insert(label::SPEC_HASH.to_owned(), hash);
    }
    body
}

/// First 16 hex digits of SHA-256 over the canonical JSON.
fn hash(body: &ContainerCreateBody) -> String {
    let tree = serde_json::to_value(body).unwrap_or_default();
    let digest = Digest::of(api::document::canonical(&tree).as_bytes());
    digest.hex().chars().take(16).collect()
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
