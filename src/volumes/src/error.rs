//! Why a task on a volume ended without having done its work, with the word and the exit code of control-plane 13.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use api::reason::Reason;

/// How a task ends (control-plane 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskExit {
    /// Done.
    Done,
    /// Failed; the result says why. Tried again, and counted.
    Failed,
    /// The arguments were not understood.
    Usage,
    /// The input is refused: digest, contract, data. Trying again does not help.
    Refused,
    /// No space, or the volume is read-only. Tried again once there is space.
    NoSpace,
    /// The source is unreachable, slow, or was cut. Tried again later.
    Source,
    /// Interrupted; the next run goes on from here.
    Interrupted,
}

impl TaskExit {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::NoSpace => 5,
            Self::Source => 6,
            Self::Interrupted => 75,
        }
    }
}

/// Why a source did not give what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFault {
    /// 401 or 403.
    Unauthorized,
    /// 404, 410, and other refusals that are about what was asked.
    NotFound,
    /// 429 or 5xx.
    Busy,
    /// Unreachable, silent, slow, or cut.
    Interrupted,
}

/// Why a task ended without having done its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The request makes no sense.
    #[error("{why}")]
    Usage {
        /// What is wrong with it, and what was expected.
        why: String,
    },
    /// It was told to end. What is here is kept.
    #[error("interrupted; what was fetched is kept and the next run goes on from there")]
    Interrupted,
    /// Another writer holds the volume.
    #[error(
        "{path} is held by another writer since {} s; end that task, or wait until it ends", .waited.as_secs(), path = .path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The deadline of the request passed.
    #[error(
        "not done within {} s; raise the deadline, or use a faster source", .deadline.as_secs()
    )]
    DeadlineExceeded {
        /// The deadline.
        deadline: Duration,
    },
    /// The source does not give what was asked for.
    #[error("cannot fetch {what}: {why}")]
    Source {
        /// What kind of refusal.
        fault: SourceFault,
        /// Path or address that was asked for.
        what: String,
        /// What it answered.
        why: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// There is no room, seen before the first byte.
    #[error(
        "no room on {path}: needs {need_bytes} bytes and {need_inodes} inodes, free are {free_bytes} bytes and {free_inodes} inodes; make room, or use a larger volume", path = .path.display()
    )]
    NoSpace {
        /// The volume.
        path: PathBuf,
        /// Bytes still to be written, with the reserve.
        need_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
        /// Files still to be made, with the reserve.
        need_inodes: u64,
        /// Inodes that are free.
        free_inodes: u64,
    },
    /// The volume became full under way.
    #[error("{path} cannot be written: the volume is full ({free_bytes} bytes free); make room, or use a larger volume", path = .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The volume cannot be written.
    #[error("{path} cannot be written: {source}; use a volume that can be written", path = .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file has other bytes than its digest says.
    #[error(
        "SHA-256 mismatch for {what}: expected {expected}, got {got}; correct the digest, or put the right file there"
    )]
    DigestMismatch {
        /// Path inside the checkpoint, or what the digest is of.
        what: String,
        /// Digits expected.
        expected: String,
        /// Digits found.
        got: String,
    },
    /// A file has another size than it should.
    #[error(
        "size mismatch for {what}: expected {expected} bytes, got {got}; correct the size, or put the right file there"
    )]
    SizeMismatch {
        /// Path inside the checkpoint.
        what: String,
        /// Bytes expected.
        expected: u64,
        /// Bytes found: at least so many where more were not read.
        got: u64,
    },
    /// The checkpoint was trained for other questions.
    #[error(
        "contract mismatch: expected {expected}, the checkpoint is for {got}; use a checkpoint of this contract"
    )]
    ContractMismatch {
        /// Contract digest asked for.
        expected: String,
        /// Contract digest of the checkpoint.
        got: String,
    },
    /// A name that leads out of its folder, a link, a device, a name twice.
    #[error("refused '{}': {why}", .path.escape_default())]
    UnsafePath {
        /// The name as it was given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The files are whole and mean nothing to the engine.
    #[error("{why}")]
    BadCheckpoint {
        /// What is wrong, with the file.
        why: String,
    },
    /// A published checkpoint is not as its manifest says.
    #[error("{digest} is damaged: {why}; `laya fetch --repair` fetches what is bad")]
    Damaged {
        /// The checkpoint.
        digest: String,
        /// First findings.
        why: String,
    },
    /// The volume belongs to somebody else, or to a newer program.
    #[error("{path}: {why}", path = .path.display())]
    NotOurs {
        /// `.store.json`.
        path: PathBuf,
        /// Whose it is and what to do.
        why: String,
        /// `NameTaken` or `SchemaMismatch`.
        reason: Reason,
    },
    /// The system refused something else.
    #[error("cannot {what} {path}: {source}", path = .path.display())]
    Io {
        /// What was attempted: `read`, `rename`, …
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl TaskError {
    /// What the system said to an attempt on a file of the volume, sorted: full and read-only are words of their own.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let free_bytes = crate::space::free_bytes_near(&path);
                Self::Full { path, free_bytes }
            }
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            // Whatever may not be written is as good as read-only; reads keep what the system said.
            io::ErrorKind::PermissionDenied if !matches!(what, "read" | "open") => {
                Self::ReadOnly { path, source }
            }
            _ => Self::Io { what, path, source },
        }
    }

    pub(crate) fn source(
        fault: SourceFault,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self::Source {
            fault,
            what: what.into(),
            why: why.into(),
            retry_after: None,
        }
    }

    /// The word for conditions; none where no condition is about it: an interruption, a wait for another writer, an
    /// unexpected refusal of the system.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        Some(match self {
            Self::Usage { .. } => Reason::InvalidSpec,
            Self::DeadlineExceeded { .. } => Reason::FetchDeadlineExceeded,
            Self::Source { fault, .. } => match fault {
                SourceFault::Unauthorized => Reason::SourceUnauthorized,
                SourceFault::NotFound => Reason::SourceNotFound,
                SourceFault::Busy => Reason::SourceBusy,
                SourceFault::Interrupted => Reason::SourceInterrupted,
            },
            Self::NoSpace { .. } | Self::Full { .. } => Reason::NoSpace,
            Self::ReadOnly { .. } => Reason::ReadOnlyVolume,
            Self::DigestMismatch { .. } => Reason::DigestMismatch,
            Self::SizeMismatch { .. } => Reason::SizeMismatch,
            Self::ContractMismatch { .. } => Reason::ContractMismatch,
            Self::UnsafePath { .. } => Reason::UnsafePath,
            Self::BadCheckpoint { .. } => Reason::BadCheckpoint,
            Self::Damaged { .. } => Reason::ModelDamaged,
            Self::NotOurs { reason, .. } => *reason,
            Self::Interrupted | Self::Locked { .. } | Self::Io { .. } => return None,
        })
    }

    /// How the task ends.
    #[must_use]
    pub const fn exit(&self) -> TaskExit {
        match self {
            Self::Usage { .. } => TaskExit::Usage,
            Self::Interrupted | Self::Locked { .. } => TaskExit::Interrupted,
            // Asking again with the same credentials is answered the same.
            Self::Source {
                fault: SourceFault::Unauthorized,
                ..
            }
            | Self::DigestMismatch { .. }
            | Self::SizeMismatch { .. }
            | Self::ContractMismatch { .. }
            | Self::UnsafePath { .. }
            | Self::BadCheckpoint { .. }
            | Self::Damaged { .. }
            | Self::NotOurs { .. } => TaskExit::Refused,
            Self::Source { .. } | Self::DeadlineExceeded { .. } => TaskExit::Source,
            Self::NoSpace { .. } | Self::Full { .. } | Self::ReadOnly { .. } => TaskExit::NoSpace,
            Self::Io { .. } => TaskExit::Failed,
        }
    }

    /// Whether the same request can succeed later.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        !matches!(self.exit(), TaskExit::Usage | TaskExit::Refused)
    }

    /// When the source wants to be asked again.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Source { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
