//! How a store is opened, what is said then, and why it cannot be.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::catalog::CatalogError;

/// Bound on the file: ten thousand objects of 1 MiB, as they are and in the feed, with room to spare.
const MAX_FILE_BYTES: u64 = 32 << 30;

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a store works. The default is what `relayd` uses.
#[derive(Clone)]
pub struct ObjectStoreOptions {
    /// The CRD documents (YAML) whose kinds are served.
    pub documents: Vec<String>,
    /// The time of new objects, of changes and of their end.
    pub clock: Clock,
    /// Threads that read.
    pub readers: usize,
    /// Most bytes of the file; what does not fit is refused as on a full disk.
    pub max_file_bytes: u64,
    /// The store id to take where both the file and `instance` are lost: the one on what still runs, if that is one.
    pub recovered_id: Option<String>,
}

impl Default for ObjectStoreOptions {
    fn default() -> Self {
        let documents = api::crds::DOCUMENTS.iter();
        Self {
            documents: documents.map(|(_, text)| (*text).to_owned()).collect(),
            clock: Arc::new(Timestamp::now),
            readers: 4,
            max_file_bytes: MAX_FILE_BYTES,
            recovered_id: None,
        }
    }
}

impl fmt::Debug for ObjectStoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStoreOptions")
            .field("documents", &self.documents.len())
            .field("readers", &self.readers)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("recovered_id", &self.recovered_id)
            .finish_non_exhaustive()
    }
}

/// Something a person should know about how the store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The file was not usable; it was renamed, and a new one made. What runs is nobody's now (`relayctl up --recover`).
    SetAside {
        /// Where the old file is now.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file `instance` said another id than the store; the store's was written there.
    OtherInstance {
        /// What the file said.
        found: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside { path, reason } => write!(
                f,
                "the object store was not usable ({reason}) and is kept as {}; a new, empty one was made",
                path.display()
            ),
            Self::OtherInstance { found } => write!(
                f,
                "the file `instance` said {found:?}, which is not the id of the object store; it was written again"
            ),
        }
    }
}

/// A store that cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file or its folder.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The file, once it was open.
    #[error("cannot use the object store {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process has it open.
    #[error("the object store {} is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file with the store's id.
    #[error("cannot read or write the store id in {}: {source}", path.display())]
    Instance {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The kinds.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A thread that could not be started.
    #[error("cannot start a thread of the object store: {0}")]
    Thread(#[source] std::io::Error),
}
