//! Why an engine did not do what it was asked.

use std::time::Duration;

use api::reason::Reason;

/// Why an engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// It is not there: no socket, refused, or gone in the middle.
    #[error("{what}: the engine at {address} is not reachable: {message}")]
    Unavailable {
        /// What was attempted.
        what: String,
        /// Where the engine is.
        address: String,
        /// Why.
        message: String,
    },
    /// It did not answer in time.
    #[error("{what}: the engine did not answer within {} s", after.as_secs())]
    TimedOut {
        /// What was attempted.
        what: String,
        /// How long it had.
        after: Duration,
    },
    /// It does not let us.
    #[error("{what}: the engine refuses access: {message}")]
    Forbidden {
        /// What was attempted.
        what: String,
        /// Why.
        message: String,
    },
    /// It refused for a reason with a word of ours: `NameTaken`, `PortInUse`, `GpuUnavailable`, `NoSpace`,
    /// `ImageNotFound`, `SecretMissing`, `ImagePlatformMismatch`, …
    #[error("{what}: {message}")]
    Refused {
        /// What was attempted.
        what: String,
        /// Why, in a word.
        reason: Reason,
        /// Why.
        message: String,
    },
    /// Anything else it said.
    #[error("{what}: {message}")]
    Failed {
        /// What was attempted.
        what: String,
        /// What it said.
        message: String,
    },
}

impl BackendError {
    /// Whether waiting can help. Where not, somebody must change something.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::TimedOut { .. } | Self::Failed { .. } => true,
            Self::Forbidden { .. } => false,
            // A stranger may go, space may come, a registry may be back.
            Self::Refused { reason, .. } => !matches!(reason, Reason::InvalidSpec),
        }
    }

    /// The word for it in a condition: of `BackendReachable` where the engine did not answer, else its own.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Unavailable { .. } => Some(Reason::EngineUnavailable),
            Self::TimedOut { .. } => Some(Reason::ObservationTimedOut),
            Self::Forbidden { .. } => Some(Reason::EngineForbidden),
            Self::Refused { reason, .. } => Some(*reason),
            Self::Failed { .. } => None,
        }
    }

    /// Whether the engine as a whole did not answer, so that nothing is known.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::TimedOut { .. } | Self::Forbidden { .. }
        )
    }
}
