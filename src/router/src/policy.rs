//! The policy in force: from a file, or the built-in one. A policy that does not compile is refused at start with the
//! place of every problem.

use std::path::{Path, PathBuf};

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
