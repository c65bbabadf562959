//! What can be done about a server: something on the engine, or a document beside the object.

use std::time::Duration;

use backend::RevisionInputs;

use crate::driver::{ACTION_DEADLINE, ENGINE_DEADLINE};
use crate::reconciler::{Destroys, Effect};

/// One thing to do about a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// On the engine.
    Backend {
        /// Name of the back end, of its capabilities: the label of metrics.
        on: &'static str,
        /// What. Boxed: the others are small.
        action: Box<backend::Action>,
    },
    /// Stores what makes a revision, as document `ls-<name>-<revision>`.
    StoreRevision {
        /// [`RevisionInputs::revision`] of `inputs`.
        revision: String,
        /// What was hashed.
        inputs: Box<RevisionInputs>,
    },
    /// Stores the end of the log of a revision that was taken back, as document `ls-<name>-<revision>-log`.
    StoreLog {
        /// Which revision.
        revision: String,
        /// Which of its replicas.
        ordinal: u32,
        /// The end of its output as it was seen: what is stored where the engine cannot read it now.
        seen: String,
    },
    /// Removes a document of a revision that status names no more.
    DeleteRevision {
        /// Its name.
        name: String,
        /// Its uid: nothing else of that name is removed.
        uid: String,
    },
}

impl Action {
    /// Something on the engine of this name.
    #[must_use]
    pub fn on(name: &'static str, action: backend::Action) -> Self {
        Self::Backend {
            on: name,
            action: Box::new(action),
        }
    }

    /// What is done on the engine, if it is.
    #[must_use]
    pub fn backend_action(&self) -> Option<&backend::Action> {
        match self {
            Self::Backend { action, .. } => Some(action),
            Self::StoreRevision { .. } | Self::StoreLog { .. } | Self::DeleteRevision { .. } => {
                None
            }
        }
    }
}

/// Name of the document that holds what makes a revision.
#[must_use]
pub fn document_name(server: &str, revision: &str) -> String {
    format!("ls-{server}-{revision}")
}

impl Effect for Action {
    fn backend(&self) -> &'static str {
        match self {
            Self::Backend { on, .. } => on,
            Self::StoreRevision { .. } | Self::StoreLog { .. } | Self::DeleteRevision { .. } => {
                "objects"
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Backend { action, .. } => action.name(),
            Self::StoreRevision { .. } => "StoreRevision",
            Self::StoreLog { .. } => "StoreLog",
            Self::DeleteRevision { .. } => "DeleteRevision",
        }
    }

    fn destroys(&self) -> Destroys {
        let destroys = match self {
            Self::Backend { action, .. } => action.destroys(),
            Self::StoreRevision { .. } | Self::StoreLog { .. } => false,
            Self::DeleteRevision { .. } => true,
        };
        if destroys {
            Destroys::Something
        } else {
            Destroys::Nothing
        }
    }

    fn deadline(&self) -> Duration {
        match self {
            // The log is read from the engine.
            Self::Backend { .. } | Self::StoreLog { .. } => ENGINE_DEADLINE,
            Self::StoreRevision { .. } | Self::DeleteRevision { .. } => ACTION_DEADLINE,
        }
    }

    fn target(&self) -> String {
        match self {
            Self::Backend { action, .. } => action.target(),
            Self::StoreRevision { revision, .. } => format!("revision {revision}"),
            Self::StoreLog {
                revision, ordinal, ..
            } => format!("log of revision {revision} replica {ordinal}"),
            Self::DeleteRevision { name, .. } => format!("ControllerRevision {name}"),
        }
    }
}
