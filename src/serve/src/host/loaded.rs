//! One checkpoint in memory with its queue. Shared by every name that means it; it goes when the last request that uses
//! it ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laya::{Checkpoint, EncodedRow, Engine, RowOutput, RunError, TokenRow};

use crate::batch::{BatchError, Batcher, PassLimits, PassSeen, Ran, RunRows};

/// What a parity report says about a reduced precision (wire.md 22.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parity {
    /// Full precision needs none.
    NotNeeded,
    /// A report fits and has passed.
    Passed,
    /// Nobody looked: for benchmarks.
    Unchecked,
}

impl Parity {
    /// The word in `/health`; none for null.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::NotNeeded => None,
            Self::Passed => Some("Passed"),
            Self::Unchecked => Some("Unchecked"),
        }
    }
}

/// A checkpoint that answers.
#[derive(Debug)]
pub struct Loaded {
    checkpoint: Arc<Checkpoint>,
    batcher: Batcher,
    /// The folder it was read from, with links resolved.
    pub folder: PathBuf,
    /// Commit, for a snapshot of a cache.
    pub commit: Option<String>,
    /// Parity of its precision.
    pub parity: Parity,
    /// How long the probe questions took.
    pub probe: Duration,
}

struct Model {
    engine: Arc<Engine>,
    checkpoint: Arc<Checkpoint>,
}

impl RunRows for Model {
    fn run(&self, rows: &[TokenRow<'_>]) -> Result<Vec<RowOutput>, RunError> {
        self.engine.run(&self.checkpoint, rows)
    }
}

impl Loaded {
    /// Starts the queue of a checkpoint.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        engine: Arc<Engine>,
        checkpoint: Checkpoint,
        limits: PassLimits,
        seen: PassSeen,
        origin: Origin,
    ) -> std::io::Result<Self> {
        let checkpoint = Arc::new(checkpoint);
        let model = Model {
            engine,
            checkpoint: Arc::clone(&checkpoint),
        };
        let Origin {
            folder,
            commit,
            parity,
            probe,
        } = origin;
        Ok(Self {
            batcher: Batcher::start(Arc::new(model), limits, seen)?,
            checkpoint,
            folder,
            commit,
            parity,
            probe,
        })
    }

    /// Weights, tokenizer and what is known about them.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Digest of the contract it was trained for.
    #[must_use]
    pub fn contract(&self) -> Option<&str> {
        let contract = self.checkpoint.info().contract.as_ref();
        contract.map(|contract| contract.digest.as_str())
    }

    /// Runs rows in passes that other requests may share. Cancel safe.
    ///
    /// # Errors
    /// [`BatchError`].
    pub async fn run(&self, rows: Vec<EncodedRow>, deadline: Instant) -> Result<Ran, BatchError> {
        self.batcher.run(rows, deadline).await
    }

    /// Rows that wait.
    #[must_use]
    pub fn waiting_rows(&self) -> usize {
        self.batcher.waiting_rows()
    }
}

/// Where a checkpoint came from and how its start went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The folder, with links resolved.
    pub folder: PathBuf,
    /// Commit, for a snapshot of a cache.
    pub commit: Option<String>,
    /// Parity of its precision.
    pub parity: Parity,
    /// How long the probe questions took.
    pub probe: Duration,
}
