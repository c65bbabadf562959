//! What to do about a policy (control-plane 6, table of states). Pure.
//!
//! Facts come first, deletions later: a revision is stored, seen, then named in status; only what a later pass finds
//! beyond the newest ten, and not in force, is removed, one at a time.

use std::cmp::Reverse;

use api::kinds::RoutingPolicy;
use jiff::Timestamp;
use kube::ResourceExt;

use super::RoutingPolicies;
use super::documents::Document;
use super::revision::document_name;
use super::status;
use super::validate::{Checked, Verdict};
use crate::clock::Now;
use crate::failure::Failure;
use crate::reconciler::{Destroys, Effect, Evidence, Plan, Requeue, Seen};

/// Revisions that are kept beside the accepted one.
pub const KEPT: usize = 10;

/// What was found of a policy's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The document of the revision that the spec has now.
    pub wanted: Presence,
    /// Documents of the policy's name.
    pub documents: Vec<Document>,
}

impl Evidence for Observation {}

/// What is under the name of the wanted document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    Absent,
    /// The revision, of this very policy.
    Stored,
    /// Ours, but of a policy that had the name before, or not holding what its name says.
    Unusable {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Ours, and being deleted.
    Leaving {
        /// Its name.
        name: String,
    },
    /// Somebody else's.
    Stranger {
        /// Its name.
        name: String,
    },
}

/// Why a document is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is beyond the newest ten.
    TooOld,
    /// Its policy is gone; another one has the name.
    OtherOwner,
    /// It does not hold what its name says.
    Unusable,
}

/// What can be done about a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Stores the spec as it is.
    StoreRevision {
        /// Its revision.
        revision: String,
    },
    /// Removes a document.
    DeleteRevision {
        /// Its name.
        name: String,
        /// Its uid: nothing else of that name is removed.
        uid: String,
        /// Why.
        because: Kept,
    },
}

impl Effect for Action {
    fn backend(&self) -> &'static str {
        "objects"
    }

    fn name(&self) -> &'static str {
        match self {
            Self::StoreRevision { .. } => "StoreRevision",
            Self::DeleteRevision { .. } => "DeleteRevision",
        }
    }

    fn destroys(&self) -> Destroys {
        match self {
            Self::StoreRevision { .. } => Destroys::Nothing,
            Self::DeleteRevision { .. } => Destroys::Something,
        }
    }

    fn target(&self) -> String {
        match self {
            Self::StoreRevision { revision } => format!("revision {revision}"),
            Self::DeleteRevision { name, .. } => format!("ControllerRevision {name}"),
        }
    }
}

pub(super) fn plan(
    policy: &RoutingPolicy,
    checked: &Checked,
    seen: &Seen<Observation>,
    now: &Now,
) -> Plan<RoutingPolicies> {
    if policy.metadata.deletion_timestamp.is_some() {
        return Plan {
            actions: Vec::new(),
            status: seen.status(status::deleting(policy, now)),
            events: Vec::new(),
            requeue: Requeue::Never,
        };
    }
    match &checked.compiled.verdict {
        Verdict::Refuses { reason, problems } => {
            let status = status::refused(policy, *reason, problems, now);
            Plan {
                actions: Vec::new(),
                events: status::refusal(policy, &status),
                status: seen.status(status),
                requeue: Requeue::Stalled,
            }
        }
        Verdict::Accepts { summary, warnings } => match &seen.get().wanted {
            Presence::Stored => {
                let status = status::settled(policy, checked, *summary, warnings, now);
                Plan {
                    actions: prune(policy, &checked.compiled.revision, &seen.get().documents),
                    events: status::acceptance(policy, &status),
                    status: seen.status(status),
                    requeue: Requeue::Steady,
                }
            }
            wanted => store(policy, checked, wanted, seen, now),
        },
    }
}

/// The way to a stored revision.
fn store(
    policy: &RoutingPolicy,
    checked: &Checked,
    wanted: &Presence,
    seen: &Seen<Observation>,
    now: &Now,
) -> Plan<RoutingPolicies> {
    let revision = &checked.compiled.revision;
    let (actions, status, requeue) = match wanted {
        Presence::Stranger { name } => {
            let resource = format!("ControllerRevision {name}");
            let taken = Failure::NameTaken { resource };
            (
                Vec::new(),
                status::failed(policy, &taken, now),
                Requeue::Stalled,
            )
        }
        Presence::Unusable { name, uid } => {
            let delete = Action::DeleteRevision {
                name: name.clone(),
                uid: uid.clone(),
                because: Kept::Unusable,
            };
            (
                vec![delete],
                status::storing(policy, revision, now),
                Requeue::Waiting,
            )
        }
        Presence::Leaving { .. } => (
            Vec::new(),
            status::storing(policy, revision, now),
            Requeue::Waiting,
        ),
        Presence::Absent | Presence::Stored => {
            let store = Action::StoreRevision {
                revision: revision.clone(),
            };
            (
                vec![store],
                status::storing(policy, revision, now),
                Requeue::Waiting,
            )
        }
    };
    Plan {
        actions,
        status: seen.status(status),
        events: Vec::new(),
        requeue,
    }
}

/// At most one document to remove, once the revision in force is the wanted one.
fn prune(policy: &RoutingPolicy, revision: &str, documents: &[Document]) -> Vec<Action> {
    let accepted = policy
        .status
        .as_ref()
        .and_then(|status| status.accepted_revision.as_deref());
    if accepted != Some(revision) {
        return Vec::new();
    }
    let delete = |document: &Document, because: Kept| Action::DeleteRevision {
        name: document.name.clone(),
        uid: document.uid.clone(),
        because,
    };
    let uid = policy.uid();
    let born = policy
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    // Only what was there before this policy: a cache that still shows a deleted policy must not remove what its
    // successor stored.
    let mut older = documents
        .iter()
        .filter(|document| document.owner != uid && document.created <= born);
    if let Some(document) = older.next() {
        return vec![delete(document, Kept::OtherOwner)];
    }
    let in_force = document_name(&policy.name_any(), revision);
    let mut own: Vec<_> = documents
        .iter()
        .filter(|document| document.owner == uid)
        .collect();
    own.sort_by_key(|document| Reverse((document.created, document.version, &document.name)));
    let mut beyond = own
        .iter()
        .skip(KEPT)
        .filter(|document| document.name != in_force);
    let oldest = beyond.next_back();
    oldest
        .map(|document| delete(document, Kept::TooOld))
        .into_iter()
        .collect()
}
