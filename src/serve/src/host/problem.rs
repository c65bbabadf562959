//! Why a checkpoint does not serve: the reason that `/ready` names, whether waiting can help, and the exit code at start.

use laya::LoadError;
use laya::checkpoint::LoadFailure;
use laya::probe::ProbeFailure;

use crate::readiness::{NotReady, Reason};
use crate::source::NotHere;

/// Exit code for configuration that cannot work.
pub const EXIT_CONFIGURATION: u8 = 1;
/// Exit code for a damaged or refused checkpoint, as in the task protocol (control-plane 13).
pub const EXIT_CHECKPOINT: u8 = 3;

/// Why a checkpoint is not loaded or may not answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no such folder.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    /// The folder is refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It answers wrongly.
    #[error("{0}")]
    Probe(#[from] ProbeFailure),
    /// It names another contract than the server is to serve.
    #[error("expected contract {expected}, the checkpoint names {got}")]
    Contract {
        /// `LAYA_CONTRACT`
        expected: String,
        /// Its contract, or `none`.
        got: String,
    },
    /// The system gives no thread, or loading panicked.
    #[error("cannot load: {0}")]
    System(String),
}

impl Problem {
    /// The reason that `/ready` names.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::NotHere(_) => Reason::NoCheckpoint,
            Self::Load(_) | Self::System(_) => Reason::LoadFailed,
            Self::Probe(_) => Reason::ProbeFailed,
            Self::Contract { .. } => Reason::WrongContract,
        }
    }

    /// What `/ready` says of it.
    #[must_use]
    pub fn not_ready(&self) -> NotReady {
        NotReady {
            finding: match self {
                Self::Probe(failure) => Some(failure.finding()),
                _ => None,
            },
            ..NotReady::new(self.reason(), self.to_string())
        }
    }

    /// The word in `laya_load_failures_total{reason}`.
    #[must_use]
    pub const fn metric(&self) -> &'static str {
        match self {
            Self::NotHere(_) => "NoCheckpoint",
            Self::Load(error) => error.failure().as_str(),
            Self::Probe(_) => "ProbeFailed",
            Self::Contract { .. } => "WrongContract",
            Self::System(_) => "System",
        }
    }

    /// The exit code with which a start ends, or none where the server waits for the cause to go: a folder that is not
    /// there yet, a disk that cannot be read, a checkpoint that may be replaced.
    #[must_use]
    pub const fn ends_start_with(&self) -> Option<u8> {
        match self {
            Self::Load(error) => match error.failure() {
                LoadFailure::Unreadable => None,
                LoadFailure::PrecisionRefused => Some(EXIT_CONFIGURATION),
                _ => Some(EXIT_CHECKPOINT),
            },
            Self::System(_) => Some(EXIT_CONFIGURATION),
            Self::NotHere(_) | Self::Probe(_) | Self::Contract { .. } => None,
        }
    }
}
