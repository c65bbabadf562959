//! The engine that a reconciler acts on (control-plane 8): a small, level-based surface to look at what runs for an object
//! and to do one thing about it. What is to be done is decided elsewhere, in pure functions over [`Observed`]; an
//! implementation decides nothing but how its engine is asked. Every action is idempotent: what is already so is fine.

mod action;
#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod models;
mod observed;
mod revision;
pub mod task_protocol;

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use action::{
    Action, Network, Ordinals, ServerSpec, StagedFile, TaskArguments, TaskKey, TaskSpec,
    VolumeRole, Writes, default_memory_bytes,
};
pub use error::BackendError;
pub use models::{ModelsRoom, ModelsView, StoredModel};
pub use observed::{
    CheckpointPlace, ImageSeen, ImageState, Observed, Progress, Room, RunState, ServerSeen,
    Stranger, TaskSeen, VolumeSeen, Waiting,
};
pub use revision::{RENDER_VERSION, RevisionInputs, quantity};

use api::group::Kind;

/// Whose children are meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Kind of the object.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; the same name created again is another owner.
    pub uid: String,
}

/// What an owner wants to know beside its own children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Images, as specs name them or by id.
    pub images: Vec<String>,
    /// Volumes by role, whoever owns them.
    pub volumes: Vec<VolumeRole>,
}

/// Something may have changed. A hint only: what is missed is found by the next full look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Children of this owner.
    Owner(Owner),
    /// Anything: the connection was lost and is back, or it is time for a full look.
    Everything,
}

/// What an engine can do (control-plane 8.1). A wish beyond it is cut to it and said in `FieldsIgnored`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// `docker`, `embedded` or `kubernetes`: the label of metrics, and `location.backend`.
    pub name: &'static str,
    /// Most replicas of a server.
    pub max_replicas: u32,
    /// Whether GPUs can be asked for.
    pub gpu: bool,
    /// Whether two revisions can share traffic in steps or shadow; else these strategies run as `BlueGreen`.
    pub split_traffic: bool,
    /// Whether training tasks run.
    pub training: bool,
    /// Whether images mean anything. Where not, `Preparing` does not wait for one.
    pub images: bool,
    /// Whether `pod` of a spec means anything.
    pub pods: bool,
}

/// An engine. Cheap to share; all methods may run at once.
///
/// Cancel safety: `observe` may be dropped anywhere. A dropped `apply` may or may not have been done; the next observation
/// tells.
pub trait Backend: Debug + Send + Sync {
    /// What it can do. The same for as long as the process runs.
    fn capabilities(&self) -> &Capabilities;

    /// Everything that runs and lies there for an owner. Bounded by the deadlines of control-plane 7.2.
    ///
    /// # Errors
    /// When the engine does not answer, or not in time: nothing is known then, and nothing may be concluded.
    fn observe<'a>(
        &'a self,
        owner: &'a Owner,
        question: &'a Question,
    ) -> BoxFuture<'a, Result<Observed, BackendError>>;

    /// Does one thing, or starts what takes long (pulls, stops with a drain) and returns; its end is observed.
    ///
    /// # Errors
    /// What went wrong, with a word of [`api::reason::Reason`] and whether trying again can help.
    fn apply<'a>(
        &'a self,
        owner: &'a Owner,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Hints; ends never.
    fn changes(&self) -> BoxStream<'static, Hint>;

    /// The last output of a server or task, at most `limit` bytes, control characters as they came.
    ///
    /// # Errors
    /// When the engine does not answer or has no such child.
    fn logs<'a>(
        &'a self,
        owner: &'a Owner,
        child: &'a Child,
        limit: usize,
    ) -> BoxFuture<'a, Result<String, BackendError>>;

    /// Owners whose children run here, with the name and kind on their labels: what the sweep of orphans and
    /// `relayctl status` compare with the objects there are.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn owners(&self) -> BoxFuture<'_, Result<Vec<Owner>, BackendError>>;

    /// Room in the one volume of all models, where there is one and it can be told for nothing: no task is started for it.
    fn models_room(&self) -> BoxFuture<'_, Option<ModelsRoom>> {
        Box::pin(std::future::ready(None))
    }
}

/// A child that has output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Child {
    /// A replica.
    Server {
        /// Its revision.
        revision: String,
        /// Its number.
        ordinal: u32,
    },
    /// A task.
    Task(TaskKey),
}
