//! Where a store lives and within which bounds it works.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where records live.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of one machine; several processes may open it.
    Sqlite(PathBuf),
    /// A database that replicas share: `postgres://user:password@host/name`.
    Postgres(String),
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// Bounds of a store. The default fits a router.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Most writes that wait.
    pub queue_entries: usize,
    /// Most bytes of all waiting writes, estimated.
    pub queue_bytes: usize,
    /// Most writes of one transaction.
    pub group: usize,
    /// How long a caller waits for an answer, and a server may take for a statement.
    pub deadline: Duration,
    /// Connections that read.
    pub readers: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            queue_entries: 10_000,
            queue_bytes: 64 << 20,
            group: 256,
            deadline: Duration::from_secs(2),
            readers: 4,
        }
    }
}

/// Something a person should know about how the store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The file was not usable; it was renamed, and a new one made.
    SetAside {
        /// Where the old file is now.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside { path, reason } => write!(
                f,
                "the store was not usable ({reason}) and is kept as {}; a new one was made",
                path.display()
            ),
        }
    }
}
