//! The last decisions, in memory, so that a follow-up finds the task it goes on with. Bounded; the oldest goes first;
//! gone with the process. A decision is found only by the tenant it was made for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use api::{Decision, RouteRequest};
use service::http::Tenant;
use uuid::Uuid;

/// Decisions kept. At a few kilobytes each this is about 10 MB.
const CAPACITY: usize = 2048;

#[derive(Debug, Default)]
struct Kept {
    oldest_first: VecDeque<(Arc<str>, Arc<Decision>)>,
    by_id: HashMap<Uuid, (Arc<str>, Arc<Decision>)>,
    /// Newest of each conversation of each tenant.
    by_conversation: HashMap<(Arc<str>, String), Uuid>,
}

/// The last decisions of all tenants.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    kept: Mutex<Kept>,
}

impl Recent {
    /// The decision that a request follows: the one it names, else the last of its conversation.
    pub(crate) fn previous(
        &self,
        tenant: &Tenant,
        request: &RouteRequest,
    ) -> Option<Arc<Decision>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match (&request.previous_decision_id, &request.conversation_id) {
            (Some(id), _) => *id,
            (None, Some(conversation)) => *kept
                .by_conversation
                .get(&(tenant.0.clone(), conversation.clone()))?,
            (None, None) => return None,
        };
        let (owner, decision) = kept.by_id.get(&id)?;
        (*owner == tenant.0).then(|| decision.clone())
    }

    /// Keeps a decision, and lets the oldest go if there are too many.
    pub(crate) fn remember(&self, tenant: &Tenant, decision: Arc<Decision>) {
        let owner = tenant.0.clone();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.oldest_first.len() >= CAPACITY
            && let Some((owner, oldest)) = kept.oldest_first.pop_front()
        {
            kept.by_id.remove(&oldest.id);
            if let Some(conversation) = &oldest.conversation_id {
                let key = (owner, conversation.clone());
                if kept.by_conversation.get(&key) == Some(&oldest.id) {
                    kept.by_conversation.remove(&key);
                }
            }
        }
        if let Some(conversation) = &decision.conversation_id {
            kept.by_conversation
                .insert((owner.clone(), conversation.clone()), decision.id);
        }
        kept.by_id
            .insert(decision.id, (owner.clone(), decision.clone()));
        kept.oldest_first.push_back((owner, decision));
    }
}
