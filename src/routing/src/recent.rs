//! The last decisions of conversations, bounded: what a follow-up needs where no store is there or none answers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use uuid::Uuid;

use crate::record::Decision;
use crate::request::RouteRequest;

/// Most text of clients in what is remembered, in bytes: a decision quotes names and text of its request, which may have
/// a megabyte.
const MOST_TEXT: usize = 16 << 20;

/// Remembers the newest decisions; the oldest is forgotten first.
#[derive(Debug)]
pub struct RecentDecisions {
    limit: usize,
    /// Bytes of clients' text in all of them, at most [`MOST_TEXT`].
    text: usize,
    by_id: HashMap<Uuid, Arc<Decision>>,
    /// The last decision of each conversation of a tenant.
    by_conversation: HashMap<(String, String), Uuid>,
    owners: HashMap<Uuid, String>,
    order: VecDeque<Uuid>,
}

impl RecentDecisions {
    /// Remembers at most `limit` decisions.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            text: 0,
            by_id: HashMap::new(),
            by_conversation: HashMap::new(),
            owners: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The decision a request follows: the one it names, else the last of its conversation. Only decisions of the same
    /// tenant are seen.
    #[must_use]
    pub fn previous(&self, tenant: &str, request: &RouteRequest) -> Option<Arc<Decision>> {
        let named = request
            .previous_decision_id
            .and_then(|id| self.named(tenant, id));
        let last = || {
            let conversation = request.conversation_id.clone()?;
            self.by_conversation
                .get(&(tenant.to_owned(), conversation))
                .copied()
        };
        named.or_else(|| self.by_id.get(&last()?).cloned())
    }

    /// The decision of that id, if it is the tenant's.
    #[must_use]
    pub fn named(&self, tenant: &str, id: Uuid) -> Option<Arc<Decision>> {
        let own = self.owners.get(&id).is_some_and(|owner| owner == tenant);
        self.by_id.get(&id).filter(|_| own).cloned()
    }

    /// Remembers a decision of a tenant.
    pub fn insert(&mut self, tenant: &str, decision: Arc<Decision>) {
        let text = text_of(&decision);
        if self.limit == 0 || text > MOST_TEXT {
            return;
        }
        while self.by_id.len() >= self.limit || self.text + text > MOST_TEXT {
            self.forget_oldest();
        }
        self.text += text;
        if let Some(conversation) = &decision.conversation_id {
            let key = (tenant.to_owned(), conversation.clone());
            self.by_conversation.insert(key, decision.id);
        }
        let id = decision.id;
        self.owners.insert(id, tenant.to_owned());
        self.order.push_back(id);
        self.by_id.insert(id, decision);
    }

    fn forget_oldest(&mut self) {
        let Some(id) = self.order.pop_front() else {
            return;
        };
        let (Some(tenant), Some(decision)) = (self.owners.remove(&id), self.by_id.remove(&id))
        else {
            return;
        };
        self.text -= text_of(&decision);
        if let Some(conversation) = &decision.conversation_id {
            let key = (tenant, conversation.clone());
            if self.by_conversation.get(&key) == Some(&id) {
                self.by_conversation.remove(&key);
            }
        }
    }

    /// Number of decisions remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// Bytes of a decision that its client chose the number of.
fn text_of(decision: &Decision) -> usize {
    let texts = [&decision.request, &decision.plan, &decision.lessons];
    let names = decision.skills.iter().chain(&decision.tools.deactivate);
    texts
        .into_iter()
        .flatten()
        .chain(names)
        .map(String::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Client, Explain, Judgement, Moment, NothingKnown, decide, prepare};
    use crate::policy::{Policy, PolicySource};

    fn decision(conversation: &str, seed: u8) -> Arc<Decision> {
        let today = "2026-11-30".parse().unwrap();
        let policy = Policy::compile("test", "", PolicySource::default(), today).unwrap();
        let request = RouteRequest {
            conversation_id: Some(conversation.to_owned()),
            ..RouteRequest::new("Fix the pager")
        };
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let prepared = prepare(&request, &policy, Client::Own, None, now).unwrap();
        let moment = Moment::new(now, [seed; 28], &|| 0.0, Explain::No);
        let judgement = Judgement::Rules { fallback: None };
        let decided = decide(&prepared, judgement, &NothingKnown, moment).unwrap();
        Arc::new(decided.decision)
    }

    fn asks(conversation: &str) -> RouteRequest {
        RouteRequest {
            conversation_id: Some(conversation.to_owned()),
            ..RouteRequest::new("continue")
        }
    }

    #[test]
    fn finds_the_last_of_a_conversation_and_a_named_one() {
        let mut recent = RecentDecisions::new(8);
        let (first, second) = (decision("c", 1), decision("c", 2));
        recent.insert("t", first.clone());
        recent.insert("t", second.clone());
        assert_eq!(recent.previous("t", &asks("c")), Some(second));
        assert_eq!(recent.previous("t", &asks("d")), None);
        assert_eq!(
            recent.previous("other", &asks("c")),
            None,
            "tenants do not see each other"
        );
        let named = RouteRequest {
            previous_decision_id: Some(first.id),
            ..asks("c")
        };
        assert_eq!(recent.previous("t", &named), Some(first.clone()));
        let foreign = RouteRequest {
            previous_decision_id: Some(first.id),
            ..RouteRequest::new("x")
        };
        assert_eq!(recent.previous("other", &foreign), None);
    }

    #[test]
    fn forgets_the_oldest_and_stays_bounded() {
        let mut recent = RecentDecisions::new(2);
        for seed in 1..=5 {
            recent.insert("t", decision(&format!("c{seed}"), seed));
        }
        assert_eq!(recent.len(), 2);
        assert_eq!(recent.by_conversation.len(), 2);
        assert_eq!(recent.order.len(), 2);
        assert!(recent.previous("t", &asks("c3")).is_none());
        assert!(recent.previous("t", &asks("c5")).is_some());
    }

    #[test]
    fn forgets_the_oldest_when_clients_sent_much_text() {
        let mut recent = RecentDecisions::new(100);
        for seed in 1..=20 {
            let mut large = (*decision("c", seed)).clone();
            large.tools.deactivate = vec!["x".repeat(1 << 20)];
            recent.insert("t", Arc::new(large));
        }
        assert!((10..=16).contains(&recent.len()), "{}", recent.len());
        assert!(recent.text <= MOST_TEXT);
        let mut too_large = (*decision("c", 21)).clone();
        too_large.request = Some("x".repeat(MOST_TEXT + 1));
        recent.insert("t", Arc::new(too_large));
        assert!(
            (10..=16).contains(&recent.len()),
            "nothing is forgotten for what cannot be kept"
        );
    }
}
