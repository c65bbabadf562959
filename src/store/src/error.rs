//! What can go wrong, by what the caller can do about it. Texts name the place and the statement, never what was stored.

use std::path::PathBuf;

/// A read or a write that did not happen, or of which nobody knows whether it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store does not answer, or does not take writes. The same call may work later; a write may have happened.
    #[error("cannot {what}: the store is away: {reason}")]
    Away {
        /// What was attempted.
        what: &'static str,
        /// Where and why.
        reason: String,
    },
    /// More writes wait than may.
    #[error("cannot {what}: too many writes wait for the store")]
    Full {
        /// What was attempted.
        what: &'static str,
    },
    /// The store refused this call alone; sending it again does not help.
    #[error("cannot {what}: {reason}")]
    Failed {
        /// What was attempted.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// A cursor that no page was answered with.
    #[error("the cursor is not one of ours")]
    BadCursor,
}

impl StoreError {
    /// Whether the same call may work later.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Full { .. })
    }
}

/// A store that cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file or its folder.
    #[error("cannot open the store {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The address of the database.
    #[error("cannot use the database address: {reason}")]
    Address {
        /// Why; without the address, which holds a password.
        reason: String,
    },
    /// A thread that could not be started.
    #[error("cannot start a thread of the store: {0}")]
    Thread(#[source] std::io::Error),
}

/// What an engine says of a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SqlError {
    /// The engine cannot do anything at the moment.
    #[error("{0}")]
    Away(String),
    /// This statement or what it was given.
    #[error("{0}")]
    Refused(String),
}

impl SqlError {
    pub(crate) fn at(self, what: &'static str) -> StoreError {
        match self {
            Self::Away(reason) => StoreError::Away { what, reason },
            Self::Refused(reason) => StoreError::Failed { what, reason },
        }
    }

    /// A stored text that does not say what it should. The text itself is not repeated.
    pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> Self {
        Self::Refused(format!(
            "stored {what} is not readable ({:?} error at column {})",
            error.classify(),
            error.column()
        ))
    }
}
