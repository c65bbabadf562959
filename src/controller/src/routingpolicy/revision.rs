//! Stored revisions: an `apps/v1 ControllerRevision` per accepted spec, in both worlds. It is immutable, and its name has
//! the digest of what it holds, so a document can be told from a forged or damaged one.

use std::collections::BTreeMap;

use api::field_manager;
use api::group::Kind;
use api::kinds::{RoutingPolicy, RoutingPolicySpec};
use api::label;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use serde::Deserialize;

use super::plan::Presence;
use crate::stored;

/// Digits of a revision.
const REVISION_DIGITS: usize = 10;

/// The revision of a spec: the first ten hex digits of the digest of its canonical form, as decisions name it.
#[must_use]
pub fn revision_of(spec: &RoutingPolicySpec) -> String {
    let digest = spec.digest();
    let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
    hex.chars().take(REVISION_DIGITS).collect()
}

/// Name of the document that holds a revision of a policy.
#[must_use]
pub fn document_name(policy: &str, revision: &str) -> String {
    format!("{}-{policy}-{revision}", Kind::RoutingPolicy.abbreviation())
}

/// The document of a policy's spec as it is.
pub(super) fn document(policy: &RoutingPolicy, revision: &str) -> ControllerRevision {
    let name = document_name(&policy.name_any(), revision);
    let held = policy.spec.tree();
    stored::of_revision(Kind::RoutingPolicy, policy, name, revision, held)
}

/// What a document of that name is to a policy.
pub(super) fn presence(
    policy: &RoutingPolicy,
    revision: &str,
    read: Option<&ControllerRevision>,
) -> Presence {
    let Some(document) = read else {
        return Presence::Absent;
    };
    let empty = BTreeMap::new();
    let labels = document.metadata.labels.as_ref().unwrap_or(&empty);
    let is = |key: &str, value: &str| labels.get(key).is_some_and(|found| found == value);
    let ours = is(label::MANAGED_BY, field_manager::CONTROLLER)
        && is(label::KIND, Kind::RoutingPolicy.as_str())
        && is(label::NAME, &policy.name_any());
    let name = document.metadata.name.clone().unwrap_or_default();
    if !ours {
        return Presence::Stranger { name };
    }
    let uid = document.metadata.uid.clone().unwrap_or_default();
    if document.metadata.deletion_timestamp.is_some() {
        return Presence::Leaving { name };
    }
    let owned = is(label::UID, &policy.uid().unwrap_or_default());
    match document_spec(document) {
        Some(spec) if owned && revision_of(&spec) == revision => Presence::Stored,
        _ => Presence::Unusable { name, uid },
    }
}

/// The spec that a document holds; `None` when it is none that this program can read.
#[must_use]
pub fn document_spec(document: &ControllerRevision) -> Option<RoutingPolicySpec> {
    let RawExtension(tree) = document.data.as_ref()?;
    RoutingPolicySpec::deserialize(tree).ok()
}
