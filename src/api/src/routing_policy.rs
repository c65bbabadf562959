//! `RoutingPolicy`: the policy as a document (control-plane 6). Its form and limits; what it means is `routing::policy`.

mod convert;
mod limits;
mod scalar;
mod spec;

use std::collections::BTreeMap;

use jiff::civil::Date;
use routing::policy::{Policy, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use scalar::{Decimal, Ratio};
#[cfg(feature = "kinds")]
pub use spec::RoutingPolicyResource;
pub use spec::{
    CostBasisSpec, DeadlinesSpec, FloorSpec, KeywordSpec, ModelSpec, OnFloorUnmetSpec, PricesSpec,
    PrivacySpec, ProfileSpec, QuotaSpec, Reference, RequestTextSpec, RoutingPolicySpec, RuleSpec,
    ThresholdsSpec, TierSpec, ToolRoutingSpec,
};

use crate::FieldError;
use crate::document::{self, DocumentError};

/// `apiVersion` of every object of ours.
pub const API_VERSION: &str = "relay.dev/v1alpha1";
/// `kind` of this one.
pub const KIND: &str = "RoutingPolicy";

/// A policy document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoutingPolicy {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Name and the like.
    pub metadata: Metadata,
    /// The policy.
    #[serde(default)]
    pub spec: RoutingPolicySpec,
    /// What a control plane wrote; not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The part of `metadata` that is ours to read; what an API server adds is accepted and not read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// At most 40 characters of `a-z`, `0-9` and `-`, starting with a letter.
    pub name: String,
    /// Where it lives in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// What a server made the name of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Set by an old server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_link: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<Value>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Set by a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<Value>,
}

/// Why a policy document is not used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// It is no document of this kind.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is one, and what it says does not hold.
    #[error("{}", .0.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect::<Vec<_>>().join("; "))]
    Problems(Vec<Problem>),
}

impl RoutingPolicy {
    /// Reads one document and checks its form and limits.
    ///
    /// # Errors
    /// The place in the text, or the path of the field.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let tree = document::read_yaml(text)?;
        if let Some(error) = limits::check_tree(&tree) {
            return Err(error.into());
        }
        let policy: Self = document::typed(tree)?;
        match limits::check(&policy) {
            None => Ok(policy),
            Some(error) => Err(error.into()),
        }
    }

    /// Compiles what was read.
    ///
    /// # Errors
    /// Every problem, with its path below `spec`.
    pub fn compile(&self, today: Date) -> Result<Policy, PolicyError> {
        self.spec.compile(&self.metadata.name, today)
    }
}

impl RoutingPolicySpec {
    /// Digest of the spec with its defaults: the same policy has the same digest, however much of it was written.
    #[must_use]
    pub fn digest(&self) -> String {
        document::digest(&self.tree())
    }

    /// The spec with its defaults as a tree.
    #[must_use]
    pub fn tree(&self) -> Value {
        // Cannot fail: the type holds strings, integers, lists and structs only.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Compiles the spec under a name. Warnings have their path below `spec` too.
    ///
    /// # Errors
    /// Every problem, with its path below `spec`.
    pub fn compile(&self, name: &str, today: Date) -> Result<Policy, PolicyError> {
        let source = convert::source(self).map_err(DocumentError::from)?;
        match Policy::compile(name, &self.digest(), source, today) {
            Ok(mut policy) => {
                below_spec(&mut policy.warnings);
                Ok(policy)
            }
            Err(mut problems) => {
                below_spec(&mut problems);
                Err(PolicyError::Problems(problems))
            }
        }
    }
}

/// Paths as in the document, warnings too: people look for them in a file.
fn below_spec(problems: &mut [Problem]) {
    for problem in problems {
        problem.path = format!("spec.{}", problem.path);
    }
}

/// Checks the name of an object of ours (control-plane 1.1).
///
/// # Errors
/// The path and the rule.
pub fn check_name(path: &str, name: &str) -> Result<(), FieldError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(allowed);
    if good {
        Ok(())
    } else {
        let rule = "must be 1 to 40 characters of a-z, 0-9 and `-`, start with a letter and not end with `-`";
        Err(FieldError::new(path, rule))
    }
}
