//! What a caller gives to a task beside its request: a way to end it, an ear for its progress, and, in tests, the points
//! at which it dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::TaskError;

/// Ends a task from another thread. Clones are the same switch; it cannot be taken back.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// One that nobody used yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The task ends with [`TaskError::Interrupted`] within a second, except where the system itself does not return.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was used.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a task is doing (`phase` of control-plane 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Locks, looks, hashes what is there already.
    #[default]
    Prepare,
    /// Files come.
    Fetch,
    /// Files are hashed where they lie.
    Verify,
    /// Files are checked for their meaning, synced and put in their place.
    Publish,
    /// Files go.
    Prune,
}

impl Phase {
    /// The word of PROGRESS lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Fetch => "fetch",
            Self::Verify => "verify",
            Self::Publish => "publish",
            Self::Prune => "prune",
        }
    }
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// 0 to 1, of the whole task.
    pub done: f64,
    /// Seconds until all bytes are here, at the speed so far.
    pub eta_seconds: Option<f64>,
    /// File under way.
    pub file: Option<String>,
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes of all files; 0 while nobody knows.
    pub total: u64,
}

/// Where a task can be made to die, in the order of control-plane 11. Each is passed after its step was done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// 1: the lock is held.
    Locked,
    /// 2: it was looked whether the checkpoint is published.
    Looked,
    /// 3: there is space.
    SpaceChecked,
    /// 4: so many bytes of a file were written.
    Received {
        /// Path inside the checkpoint.
        path: String,
        /// Bytes of the part.
        bytes: u64,
    },
    /// 5: a file is whole and right.
    Checked {
        /// Path inside the checkpoint.
        path: String,
    },
    /// 6: the checkpoint means something.
    Understood,
    /// 7: the files are synced.
    FilesSynced,
    /// 7: the manifest is written and everything is synced.
    ManifestSynced,
    /// 8, repair without an exchange: the old folder is out of the way, the new one not yet in its place.
    OldMoved,
    /// 8: the folder has its name.
    Renamed,
    /// 8: and the root is synced.
    Published,
    /// Repair: the old folder is in the trash.
    OldTrashed,
    /// Prune: a folder is in the trash.
    Trashed,
    /// Prune: the trash is empty.
    Emptied,
}

/// Lets tests kill a task.
pub trait CrashPoints: Send + Sync {
    /// Called after each step.
    ///
    /// # Errors
    /// To end the task there and then, without any tidying, as a crash would.
    fn passed(&self, step: &Step) -> Result<(), TaskError>;
}

/// No task dies of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCrash;

impl CrashPoints for NoCrash {
    fn passed(&self, _: &Step) -> Result<(), TaskError> {
        Ok(())
    }
}

/// An ear for progress. Called on the thread of the task, at most twice a second for bytes, so it must not block.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What a task is run with.
#[derive(Clone)]
pub struct Run {
    /// Ends it.
    pub cancel: Cancel,
    /// Hears of it.
    pub progress: OnProgress,
    /// Kills it.
    pub points: Arc<dyn CrashPoints>,
}

impl Run {
    /// With a switch and an ear.
    #[must_use]
    pub fn new(cancel: Cancel, progress: OnProgress) -> Self {
        Self {
            cancel,
            progress,
            points: Arc::new(NoCrash),
        }
    }

    /// Nobody listens and nobody ends it.
    #[must_use]
    pub fn quiet() -> Self {
        Self::new(Cancel::new(), Arc::new(|_| {}))
    }

    /// The same, killed at these points.
    #[must_use]
    pub fn with_points(mut self, points: Arc<dyn CrashPoints>) -> Self {
        self.points = points;
        self
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}
