//! The policy in force: from a file, from a stored object, or the built-in one. A policy that does not compile is refused
//! with the place of every problem. Another one can take its place at any time; a request keeps the one it began with.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use api::document::{DocumentError, MAX_BYTES};
use api::routing_policy::{PolicyError, RoutingPolicy, RoutingPolicySpec};
use files::{ReadError, TextFile};
use jiff::civil::Date;
use routing::policy::Policy;
use serde_json::Value;

/// Name of the policy that holds when nobody wrote one.
const BUILT_IN_NAME: &str = "default";

/// A compiled policy and the document it came from.
#[derive(Debug)]
pub struct ActivePolicy {
    /// What decides.
    pub policy: Policy,
    /// The spec with its defaults.
    pub spec: Value,
}

/// Where the policy in force lies; every clone is the same place.
#[derive(Debug, Clone)]
pub struct PolicyInForce {
    slot: Arc<RwLock<Arc<ActivePolicy>>>,
}

impl PolicyInForce {
    /// A place with its first policy.
    #[must_use]
    pub fn new(policy: Arc<ActivePolicy>) -> Self {
        Self {
            slot: Arc::new(RwLock::new(policy)),
        }
    }

    /// The policy now. Who decides asks once and keeps the answer, so that no decision is made by two policies.
    #[must_use]
    pub fn current(&self) -> Arc<ActivePolicy> {
        self.slot
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts another policy in force for every request that begins from now on.
    pub fn replace(&self, policy: Arc<ActivePolicy>) {
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }
}

/// A policy cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file cannot be read.
    #[error("cannot read policy {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The file is no policy document.
    #[error("policy {}", path.display())]
    NoDocument {
        /// Which file.
        path: PathBuf,
        /// Why, with the place.
        source: DocumentError,
    },
    /// The policy has problems.
    #[error("policy {}", path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// Which problems.
        source: PolicyError,
    },
    /// The built-in policy has problems, which a test rules out.
    #[error("the built-in policy does not compile")]
    BuiltIn {
        /// Which problems.
        source: PolicyError,
    },
}

impl ActivePolicy {
    /// The built-in policy. `today` decides which prices are stale.
    ///
    /// # Errors
    /// When the built-in data is damaged, which a test rules out.
    pub fn built_in(today: Date) -> Result<Self, PolicyFileError> {
        let spec = RoutingPolicySpec::default();
        let policy = spec
            .compile(BUILT_IN_NAME, today)
            .map_err(|source| PolicyFileError::BuiltIn { source })?;
        Ok(Self {
            policy,
            spec: spec.tree(),
        })
    }

    /// The policy of a document that was accepted and stored under a name.
    ///
    /// # Errors
    /// When it does not compile: it was accepted by another version of this program.
    pub fn of_spec(name: &str, spec: &RoutingPolicySpec, today: Date) -> Result<Self, PolicyError> {
        Ok(Self {
            policy: spec.compile(name, today)?,
            spec: spec.tree(),
        })
    }

    /// The policy of a file: one `RoutingPolicy` document, YAML or JSON, at most 1 MiB.
    ///
    /// # Errors
    /// When the file cannot be read, is no such document, or its policy does not compile.
    pub fn of_file(path: &Path, today: Date) -> Result<Self, PolicyFileError> {
        let TextFile { text, metadata: _ } =
            files::read_text(path, MAX_BYTES as u64).map_err(|source| {
                PolicyFileError::Unreadable {
                    path: path.to_owned(),
                    source,
                }
            })?;
        let document =
            RoutingPolicy::read(&text).map_err(|source| PolicyFileError::NoDocument {
                path: path.to_owned(),
                source,
            })?;
        let policy = document
            .compile(today)
            .map_err(|source| PolicyFileError::Refused {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            policy,
            spec: document.spec.tree(),
        })
    }
}
