//! What can be done on an engine (control-plane 8.2). Each action names everything it needs, so that it can be done by a
//! process that knows nothing of earlier ones.

use api::kinds::laya_server::{ServerApi, Serving};
use api::kinds::shared::{Device, Gpu, Pod, SecretRef};
use api::label::Task;
use serde::{Deserialize, Serialize};

use crate::observed::CheckpointPlace;
use crate::revision::RevisionInputs;

/// One thing to do for an owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A volume is there. One on Docker for all models; a claim per model on Kubernetes.
    EnsureVolume {
        /// Which.
        role: VolumeRole,
        /// Bytes to ask for, where the engine takes a size.
        size_bytes: u64,
    },
    /// An image is on the engine, or its pull runs. The pull's fate is in [`crate::Observed::images`].
    EnsureImage {
        /// As the spec names it, or an id.
        image: String,
        /// Names of `SecretRef`s with registry credentials.
        pull_secrets: Vec<String>,
    },
    /// These replicas of a revision exist and run. One that differs from its rendering is made anew.
    EnsureServer {
        /// What to run. Boxed: the other actions are small.
        server: Box<ServerSpec>,
        /// Which.
        ordinals: Vec<u32>,
    },
    /// Replicas that run are replaced: removed and made again (a tampered one, or one that crashed).
    RecreateServer {
        /// What to run.
        server: Box<ServerSpec>,
        /// Which.
        ordinal: u32,
    },
    /// The stable address goes to this revision. Nothing on engines without one.
    PointService {
        /// Which.
        revision: String,
    },
    /// `POST /drain` to a server. One that does not answer needs no drain.
    Drain {
        /// Its address.
        url: String,
    },
    /// Replicas stop with a grace and are kept, with their image.
    StopServer {
        /// Which revision.
        revision: String,
        /// Which of its replicas.
        ordinals: Ordinals,
        /// Seconds until it is killed: drain + 10.
        grace_seconds: u32,
    },
    /// Replicas are removed.
    DeleteServer {
        /// Which revision.
        revision: String,
        /// Which of its replicas.
        ordinals: Ordinals,
        /// Seconds until one that still runs is killed.
        grace_seconds: u32,
    },
    /// A task runs, or has run: one attempt runs once.
    RunTask(Box<TaskSpec>),
    /// A task is told to end.
    StopTask {
        /// Which.
        task: TaskKey,
        /// Seconds until it is killed.
        grace_seconds: u32,
    },
    /// A task that ended is removed, with its secrets.
    DeleteTask {
        /// Which.
        task: TaskKey,
    },
    /// A volume of ours is removed.
    DeleteVolume {
        /// Which.
        role: VolumeRole,
    },
}

impl Action {
    /// What it is called: the label `action` of metrics, and of fault points.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EnsureVolume { .. } => "EnsureVolume",
            Self::EnsureImage { .. } => "EnsureImage",
            Self::EnsureServer { .. } => "EnsureServer",
            Self::RecreateServer { .. } => "RecreateServer",
            Self::PointService { .. } => "PointService",
            Self::Drain { .. } => "Drain",
            Self::StopServer { .. } => "StopServer",
            Self::DeleteServer { .. } => "DeleteServer",
            Self::RunTask(_) => "RunTask",
            Self::StopTask { .. } => "StopTask",
            Self::DeleteTask { .. } => "DeleteTask",
            Self::DeleteVolume { .. } => "DeleteVolume",
        }
    }

    /// Whether it removes something that does not come back by itself.
    #[must_use]
    pub const fn destroys(&self) -> bool {
        matches!(
            self,
            Self::RecreateServer { .. }
                | Self::StopServer { .. }
                | Self::DeleteServer { .. }
                | Self::DeleteTask { .. }
                | Self::DeleteVolume { .. }
        )
    }

    /// On what, for errors and logs.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::EnsureVolume { role, .. } | Self::DeleteVolume { role } => {
                format!("volume {role:?}")
            }
            Self::EnsureImage { image, .. } => format!("image {image}"),
            Self::EnsureServer { server, ordinals } => {
                format!("revision {} replicas {ordinals:?}", server.revision)
            }
            Self::RecreateServer { server, ordinal } => {
                format!("revision {} replica {ordinal}", server.revision)
            }
            Self::PointService { revision } => format!("revision {revision}"),
            Self::Drain { url } => url.clone(),
            Self::StopServer {
                revision, ordinals, ..
            }
            | Self::DeleteServer {
                revision, ordinals, ..
            } => format!("revision {revision} replicas {ordinals:?}"),
            Self::RunTask(spec) => format!("task {}", spec.key),
            Self::StopTask { task, .. } | Self::DeleteTask { task } => format!("task {task}"),
        }
    }
}

/// Which replicas of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordinals {
    /// All there are.
    All,
    /// These.
    Only(Vec<u32>),
}

/// What a volume is for. Its name on the engine is the back end's. Written as JSON on labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VolumeRole {
    /// Checkpoints. One for all on Docker and embedded; on Kubernetes that of the owning LayaModel.
    Models,
    /// Work of a training run.
    Work {
        /// Name of the run.
        run: String,
    },
    /// Rows and predictions of a gate.
    Gate {
        /// Name of the gate.
        gate: String,
    },
    /// One that is not ours, by its name on the engine (`source.volume`). Read only, never made or removed.
    Foreign {
        /// Its name.
        name: String,
    },
}

/// What a replica is made from. Everything that makes the revision is in `inputs`; the rest may change without one.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// [`RevisionInputs::revision`] of `inputs`.
    pub revision: String,
    /// What was hashed.
    pub inputs: RevisionInputs,
    /// Name of the LayaModel, for labels and people.
    pub model: String,
    /// Volume the checkpoint lies in.
    pub volume: VolumeRole,
    /// Folder in that volume, relative to its root: `sha256-<64 hex>` on volumes of ours.
    pub path: String,
    /// Bytes of the checkpoint: what the default of memory is computed from.
    pub checkpoint_bytes: u64,
    /// Id of the image that was resolved once; what is run, where it is known.
    pub image_id: Option<String>,
    /// `spec.rollout.drainSeconds`: the grace of a stop by hand.
    pub drain_seconds: u32,
    /// Whether a GPU is to be asked for now: device `Cuda`, or `Auto` after a check that named its memory. Docker adds what
    /// it knows of `Auto` itself.
    pub wants_gpu: bool,
}

impl ServerSpec {
    /// The device asked for.
    #[must_use]
    pub const fn device(&self) -> Device {
        self.inputs.device
    }

    /// GPUs asked for.
    #[must_use]
    pub fn gpu(&self) -> Gpu {
        self.inputs.gpu.clone().unwrap_or_default()
    }

    /// What the image speaks.
    #[must_use]
    pub const fn server_api(&self) -> ServerApi {
        self.inputs.server_api
    }

    /// How requests are taken.
    #[must_use]
    pub const fn serving(&self) -> &Serving {
        &self.inputs.serving
    }

    /// Where pods run.
    #[must_use]
    pub const fn pod(&self) -> Option<&Pod> {
        self.inputs.pod.as_ref()
    }

    /// Where the checkpoint lies.
    #[must_use]
    pub fn checkpoint(&self) -> CheckpointPlace {
        CheckpointPlace {
            volume: self.volume.clone(),
            path: self.path.clone(),
            bytes: self.checkpoint_bytes,
        }
    }

    /// Most bytes of memory: the limit of the spec, else max(1 GiB, 1.6 × checkpoint + 512 MiB) (control-plane 3).
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.inputs
            .memory_limit_bytes()
            .unwrap_or_else(|| default_memory_bytes(self.checkpoint_bytes))
    }
}

/// max(1 GiB, 1.6 × checkpoint + 512 MiB).
#[must_use]
pub const fn default_memory_bytes(checkpoint_bytes: u64) -> u64 {
    let need = checkpoint_bytes.saturating_mul(8) / 5 + (512 << 20);
    if need < (1 << 30) { 1 << 30 } else { need }
}

/// Which task of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskKey {
    /// What it does.
    pub task: Task,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.task.as_str(), self.attempt)
    }
}

/// Which network a task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// None.
    None,
    /// The way out: fetch tasks.
    Egress,
}

/// A task to run: `laya <word> …` of control-plane 13, or a trainer.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSpec {
    /// Which.
    pub key: TaskKey,
    /// Image; unused on engines without.
    pub image: String,
    /// What is called. Paths are those inside: volumes at `/data/models` and `/work`, staged files below `/run/relay`,
    /// secrets below `/run/secrets/relay`.
    pub arguments: TaskArguments,
    /// Volumes: models at `/data/models` or work at `/work`; and whether each is written to.
    pub volumes: Vec<(VolumeRole, Writes)>,
    /// Its network.
    pub network: Network,
    /// Files it is given.
    pub files: Vec<StagedFile>,
    /// Secrets by reference, and the name of the file below `/run/secrets/relay` each is put in.
    pub secrets: Vec<(SecretRef, String)>,
    /// Most bytes of memory.
    pub memory_bytes: u64,
    /// Whether it needs a GPU.
    pub gpu: Option<Gpu>,
    /// Most seconds it may run, where the engine can hold it to that.
    pub deadline_seconds: u32,
}

/// Whether something is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// It is.
    Yes,
    /// It is only read.
    No,
}

/// What a task is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskArguments(pub Vec<String>);

/// A file that a task finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Name below `/run/relay`.
    pub name: String,
    /// Content.
    pub content: Vec<u8>,
}
