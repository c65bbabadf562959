//! RoutingPolicy (control-plane 6): a spec that compiles is stored as an immutable document, then named in status as the
//! revision in force. A spec that does not compile changes nothing in service and says why. Routers load the named
//! document and never the spec.

mod documents;
mod inputs;
mod plan;
mod revision;
mod server;
mod status;
#[cfg(test)]
mod tests;
mod validate;

use std::sync::Arc;

use api::group::Kind;
use api::kinds::{Condition, RoutingPolicy, RoutingPolicyStatus};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::{Client, ResourceExt};

pub use documents::{Document, Documents};
pub use inputs::{Inputs, ServerState};
pub use plan::{Action, KEPT, Kept, Observation, Presence};
pub use revision::{document_name, document_spec, revision_of};
pub use server::{ChampionView, ServerView};
pub use validate::{Checked, Compiled, Memo, Verdict, compile};

use crate::clock::Now;
use crate::failure::Failure;
use crate::queue::Key;
use crate::reconciler::{Observed, Plan, Reconciler, Seen};
use crate::stored;

/// Reconciles policies.
pub struct RoutingPolicies {
    client: Client,
    inputs: Inputs,
    documents: Arc<Documents>,
    memo: Memo,
}

impl RoutingPolicies {
    /// Over these caches.
    #[must_use]
    pub fn new(client: Client, inputs: Inputs, documents: Arc<Documents>) -> Self {
        Self {
            client,
            inputs,
            documents,
            memo: Memo::default(),
        }
    }

    fn revisions(&self, policy: &RoutingPolicy) -> Api<ControllerRevision> {
        let namespace = policy.namespace().unwrap_or_default();
        Api::namespaced(self.client.clone(), &namespace)
    }

    async fn look(&self, policy: &RoutingPolicy, checked: &Checked) -> Result<Presence, Failure> {
        let name = document_name(&policy.name_any(), &checked.compiled.revision);
        let read = self.revisions(policy).get_opt(&name).await;
        let read =
            read.map_err(|error| Failure::of("get", format!("ControllerRevision {name}"), &error))?;
        Ok(revision::presence(
            policy,
            &checked.compiled.revision,
            read.as_ref(),
        ))
    }
}

impl std::fmt::Debug for RoutingPolicies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoutingPolicies").finish_non_exhaustive()
    }
}

impl Reconciler for RoutingPolicies {
    const KIND: Kind = Kind::RoutingPolicy;
    type Object = RoutingPolicy;
    type Status = RoutingPolicyStatus;
    type Checked = Checked;
    type Observation = Observation;
    type Action = Action;

    fn status(object: &RoutingPolicy) -> Option<&RoutingPolicyStatus> {
        object.status.as_ref()
    }

    fn conditions(status: &RoutingPolicyStatus) -> &[Condition] {
        &status.conditions
    }

    fn check(&self, object: &RoutingPolicy, now: &Now) -> Checked {
        Checked {
            compiled: self.memo.compiled(object, now),
            server: self.inputs.server(object),
        }
    }

    async fn observe(
        &self,
        object: &RoutingPolicy,
        checked: &Checked,
    ) -> Result<Observation, Failure> {
        let documents = self.documents.of(&Key::of(object));
        let revision = &checked.compiled.revision;
        let accepted = object
            .status
            .as_ref()
            .and_then(|status| status.accepted_revision.as_ref());
        let name = document_name(&object.name_any(), revision);
        let uid = object.uid();
        let cached = documents
            .iter()
            .any(|document| document.name == name && document.owner == uid);
        // In force and in the cache: nothing to ask. On the way there the cache may be behind, so the API is asked.
        let wanted = if accepted == Some(revision) && cached {
            Presence::Stored
        } else if matches!(checked.compiled.verdict, Verdict::Accepts { .. }) {
            self.look(object, checked).await?
        } else {
            Presence::Absent
        };
        Ok(Observation { wanted, documents })
    }

    fn plan(
        object: &RoutingPolicy,
        checked: &Checked,
        seen: &Seen<Observation>,
        now: &Now,
    ) -> Plan<Self> {
        plan::plan(object, checked, seen, now)
    }

    async fn act(&self, object: &RoutingPolicy, action: &Action) -> Result<(), Failure> {
        let revisions = self.revisions(object);
        match action {
            Action::StoreRevision { revision } => {
                stored::create(&revisions, &revision::document(object, revision)).await
            }
            Action::DeleteRevision { name, uid, .. } => stored::delete(&revisions, name, uid).await,
        }
    }

    fn failed(
        object: &RoutingPolicy,
        failure: &Seen<Failure>,
        now: &Now,
    ) -> Observed<RoutingPolicyStatus> {
        failure.status(status::failed(object, failure.get(), now))
    }

    fn forget(&self, uid: &str) {
        self.memo.forget(uid);
    }
}
