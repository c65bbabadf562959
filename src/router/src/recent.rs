//! The last decisions, in memory, so that a follow-up finds the task it goes on with. Bounded in number and size; the
//! oldest goes first; gone with the process. A decision is found only by the tenant it was made for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use api::{Decision, RouteRequest};
use service::http::Tenant;
use uuid::Uuid;

/// Decisions kept.
const MAX_DECISIONS: usize = 2048;

/// Size of all that is kept, in bytes of JSON; in memory it is a small multiple. Most decisions have 4 KB, but one quotes
/// names and text of its request, which may have a megabyte.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
struct Entry {
    tenant: Arc<str>,
    decision: Arc<Decision>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    oldest_first: VecDeque<Uuid>,
    by_id: HashMap<Uuid, Entry>,
    /// Newest of each conversation of each tenant.
    by_conversation: HashMap<(Arc<str>, String), Uuid>,
    bytes: usize,
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
        let id = match (request.previous_decision_id, &request.conversation_id) {
            (Some(id), _) => id,
            (None, Some(conversation)) => *kept
                .by_conversation
                .get(&(tenant.0.clone(), conversation.clone()))?,
            (None, None) => return None,
        };
        let entry = kept.by_id.get(&id)?;
        (entry.tenant == tenant.0).then(|| entry.decision.clone())
    }

    /// Keeps a decision of `bytes` bytes of JSON, and lets the oldest go while there are too many.
    pub(crate) fn remember(&self, tenant: &Tenant, decision: Decision, bytes: usize) {
        if bytes > MAX_BYTES {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.oldest_first.len() >= MAX_DECISIONS || kept.bytes + bytes > MAX_BYTES {
            kept.forget_oldest();
        }
        let id = decision.id;
        if let Some(conversation) = &decision.conversation_id {
            kept.by_conversation
                .insert((tenant.0.clone(), conversation.clone()), id);
        }
        kept.bytes += bytes;
        kept.by_id.insert(
            id,
            Entry {
                tenant: tenant.0.clone(),
                decision: Arc::new(decision),
                bytes,
            },
        );
        kept.oldest_first.push_back(id);
    }
}

impl Kept {
    fn forget_oldest(&mut self) {
        let Some(entry) = self
            .oldest_first
            .pop_front()
            .and_then(|id| self.by_id.remove(&id))
        else {
            return;
        };
        self.bytes -= entry.bytes;
        if let Some(conversation) = &entry.decision.conversation_id {
            let key = (entry.tenant, conversation.clone());
            if self.by_conversation.get(&key) == Some(&entry.decision.id) {
                self.by_conversation.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::date;
    use routing::decide::{Client, Explain, Moment, NO_MODEL, NothingKnown, decide, prepare};

    use super::*;
    use crate::ActivePolicy;

    fn tenant(name: &str) -> Tenant {
        Tenant(name.into())
    }

    /// Decisions that differ in their ids and conversations.
    fn decisions(conversations: &[&str]) -> Vec<Decision> {
        let active = ActivePolicy::built_in(date(2026, 11, 30)).unwrap();
        let request = RouteRequest::new("rename a variable");
        let prepared = prepare(
            &request,
            &active.policy,
            Client::Own,
            None,
            Timestamp::UNIX_EPOCH,
        )
        .unwrap();
        let moment = Moment::new(Timestamp::UNIX_EPOCH, [0; 28], &|| 0.0, Explain::No);
        let decision = decide(&prepared, NO_MODEL, &NothingKnown, moment)
            .unwrap()
            .decision;
        let one = |(number, conversation): (usize, &&str)| Decision {
            id: Uuid::from_u128(number as u128 + 1),
            conversation_id: (!conversation.is_empty()).then(|| (*conversation).to_owned()),
            ..decision.clone()
        };
        conversations.iter().enumerate().map(one).collect()
    }

    fn of_conversation(name: &str) -> RouteRequest {
        RouteRequest {
            conversation_id: Some(name.to_owned()),
            ..RouteRequest::new("continue")
        }
    }

    fn by_id(number: u128) -> RouteRequest {
        RouteRequest {
            previous_decision_id: Some(Uuid::from_u128(number)),
            ..RouteRequest::new("continue")
        }
    }

    fn found(recent: &Recent, owner: &str, request: &RouteRequest) -> Option<u128> {
        recent
            .previous(&tenant(owner), request)
            .map(|decision| decision.id.as_u128())
    }

    #[test]
    fn finds_the_named_decision_or_the_last_of_the_conversation_of_the_same_tenant() {
        let recent = Recent::default();
        for decision in decisions(&["talk", "talk", ""]) {
            recent.remember(&tenant("red"), decision, 1);
        }
        for (name, owner, request, expected) in [
            (
                "the last of its conversation",
                "red",
                of_conversation("talk"),
                Some(2),
            ),
            ("the named one", "red", by_id(1), Some(1)),
            ("one without a conversation", "red", by_id(3), Some(3)),
            (
                "another conversation",
                "red",
                of_conversation("other"),
                None,
            ),
            (
                "another tenant's conversation",
                "blue",
                of_conversation("talk"),
                None,
            ),
            ("another tenant's decision", "blue", by_id(1), None),
            ("nothing named", "red", RouteRequest::new("continue"), None),
        ] {
            assert_eq!(found(&recent, owner, &request), expected, "{name}");
        }
    }

    #[test]
    fn the_oldest_goes_first_by_number_and_by_size() {
        let recent = Recent::default();
        let mut conversations = vec![""; MAX_DECISIONS];
        conversations[0] = "first";
        conversations.push("last");
        let mut made = decisions(&conversations).into_iter();
        for decision in made.by_ref().take(MAX_DECISIONS) {
            recent.remember(&tenant("red"), decision, 1);
        }
        assert_eq!(found(&recent, "red", &of_conversation("first")), Some(1));
        let last = made.next().unwrap();
        recent.remember(&tenant("red"), last, MAX_BYTES - 1);
        assert_eq!(found(&recent, "red", &of_conversation("first")), None);
        assert_eq!(
            found(&recent, "red", &of_conversation("last")),
            Some(MAX_DECISIONS as u128 + 1)
        );
        let kept = recent.kept.lock().unwrap();
        assert_eq!(
            (kept.by_id.len(), kept.by_conversation.len(), kept.bytes),
            (2, 1, MAX_BYTES)
        );
    }
}
