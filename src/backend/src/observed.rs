//! What an engine says runs and lies there for one owner.

use api::reason::Reason;
use jiff::Timestamp;

use crate::action::{TaskKey, VolumeRole};
use crate::revision::RevisionInputs;

/// Everything seen of an owner.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// Replicas of all revisions, by revision and number.
    pub servers: Vec<ServerSeen>,
    /// Tasks.
    pub tasks: Vec<TaskSeen>,
    /// Volumes that were asked for, where they exist.
    pub volumes: Vec<VolumeSeen>,
    /// Images that were asked for, each once.
    pub images: Vec<ImageSeen>,
    /// What has a name we need and is not ours.
    pub strangers: Vec<Stranger>,
    /// Room for another server, where the engine knows.
    pub room: Option<Room>,
    /// What the last GPU check said, where one was made: bytes of memory of the GPU, 0 = no GPU.
    pub gpu_memory_bytes: Option<u64>,
    /// Whether all of it was seen. Where not, nothing may be concluded from what is missing.
    pub complete: bool,
}

impl Observed {
    /// Replicas of a revision.
    pub fn of_revision<'a>(&'a self, revision: &'a str) -> impl Iterator<Item = &'a ServerSeen> {
        self.servers
            .iter()
            .filter(move |server| server.revision == revision)
    }

    /// A task of this key.
    #[must_use]
    pub fn task(&self, key: &TaskKey) -> Option<&TaskSeen> {
        self.tasks.iter().find(|task| task.key == *key)
    }

    /// What is known of an image.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&ImageState> {
        let found = self.images.iter().find(|image| image.name == name);
        found.map(|image| &image.state)
    }

    /// A volume by its role.
    #[must_use]
    pub fn volume(&self, role: &VolumeRole) -> Option<&VolumeSeen> {
        self.volumes.iter().find(|volume| volume.role == *role)
    }
}

/// A replica.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSeen {
    /// Its revision.
    pub revision: String,
    /// Its number.
    pub ordinal: u32,
    /// What it does.
    pub state: RunState,
    /// When it was started last.
    pub started_at: Option<Timestamp>,
    /// Restarts by the engine since it was made or started by hand.
    pub restarts: u32,
    /// How it ended last, where the engine still knows.
    pub exit_code: Option<i32>,
    /// Whether the kernel killed it for its memory limit.
    pub oom_killed: bool,
    /// Id of the image it runs.
    pub image_id: Option<String>,
    /// Where it answers, while it runs.
    pub url: Option<String>,
    /// Hash of the rendering it was made from.
    pub spec_hash: Option<String>,
    /// Whether that is the hash of what this program renders from `inputs`. `None` where another program's
    /// `renderVersion` made it, or there is nothing to compare.
    pub hash_matches: Option<bool>,
    /// Fields of the live object that are not as rendered: memory, user, mounts, network, …
    pub tampered: Vec<String>,
    /// Why it does not run, in a word of ours, where the engine says more than its state.
    pub waiting: Option<Waiting>,
    /// Most bytes of memory.
    pub memory_bytes: u64,
    /// Name of the LayaModel on its labels.
    pub model: Option<String>,
    /// What it was made from, as on its labels.
    pub inputs: Option<RevisionInputs>,
    /// Where its checkpoint lies, as on its labels.
    pub checkpoint: Option<CheckpointPlace>,
    /// The end of its output, at most 4 KiB; only of one that does not run.
    pub log_tail: String,
}

/// Where a checkpoint lies, and how large it is: what a replica is rendered from beside the inputs of its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPlace {
    /// The volume.
    pub volume: VolumeRole,
    /// Folder in that volume, relative to its root.
    pub path: String,
    /// Bytes of the checkpoint.
    pub bytes: u64,
}

/// What a container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Made, never started.
    Created,
    /// It runs.
    Running,
    /// It ended, and the engine starts it again after a pause.
    Restarting,
    /// It ended, or was stopped.
    Exited,
    /// It is being stopped or removed.
    Stopping,
}

/// Why something does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// In a word.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSeen {
    /// Which.
    pub key: TaskKey,
    /// What it does.
    pub state: RunState,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How it ended (control-plane 13).
    pub exit_code: Option<i32>,
    /// Whether the kernel killed it for its memory limit.
    pub oom_killed: bool,
    /// Its last PROGRESS line.
    pub progress: Option<Progress>,
    /// Its RESULT, once it ended: of its output, or of `/work/result.json`.
    pub result: Option<serde_json::Value>,
    /// The end of its output, at most 4 KiB; only of one that ended.
    pub log_tail: String,
    /// Why it does not start.
    pub waiting: Option<Waiting>,
}

/// The last PROGRESS line of a task (control-plane 13).
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(default)]
pub struct Progress {
    /// fetch, prepare, train, evaluate, publish.
    pub phase: String,
    /// 0 to 1.
    pub done: f64,
    /// Seconds until the end, guessed.
    pub eta_s: Option<f64>,
    /// File under way.
    pub file: Option<String>,
    /// Bytes that are here.
    pub bytes: Option<u64>,
    /// Bytes of all files.
    pub total: Option<u64>,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSeen {
    /// What it is for.
    pub role: VolumeRole,
    /// Its name on the engine.
    pub name: String,
    /// Its identity: another one means that it was lost and made anew.
    pub uid: String,
    /// Whether it can be used; a claim may still wait.
    pub bound: bool,
}

/// An image that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSeen {
    /// As it was asked for.
    pub name: String,
    /// What is known.
    pub state: ImageState,
}

/// What is known of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageState {
    /// It is here.
    Present {
        /// Its id.
        id: String,
    },
    /// It is not here, and nothing brings it.
    Absent,
    /// It is coming.
    Pulling {
        /// Bytes that are here.
        bytes: u64,
    },
    /// It did not come; it is tried again when it is asked for again.
    Failed {
        /// One of the pull reasons of control-plane 3, or `NoSpace`.
        reason: Reason,
        /// For people.
        message: String,
        /// When.
        at: Timestamp,
    },
}

/// A thing with a name that we need and that we did not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The name, or the address.
    pub name: String,
    /// `NameTaken` or `PortInUse`.
    pub reason: Reason,
    /// Who has it.
    pub holder: String,
}

/// Room for another server (control-plane 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Memory of the engine.
    pub engine_bytes: u64,
    /// Limits of our containers that run.
    pub ours_bytes: u64,
    /// Memory the kernel has left, where the engine runs on this machine's Linux.
    pub available_bytes: Option<u64>,
}

impl Room {
    /// Whether a server with this limit fits beside what runs: limits ≤ 80 % of the engine's memory, and its own ≤ what is
    /// available less 512 MiB.
    #[must_use]
    pub const fn fits(&self, limit_bytes: u64) -> bool {
        let all = self.ours_bytes.saturating_add(limit_bytes);
        let within_limits = all <= self.engine_bytes / 5 * 4;
        let within_available = match self.available_bytes {
            Some(available) => limit_bytes <= available.saturating_sub(512 << 20),
            None => true,
        };
        within_limits && within_available
    }
}
