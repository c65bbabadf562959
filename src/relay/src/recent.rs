//! The last decisions of this run, for follow-ups: those of the router too, so that a conversation goes on in this
//! process where the router goes away in between.

use std::sync::Arc;

use api::{Decision, RouteRequest};
use routing::follow_up::FollowUp;
use routing::recent::RecentDecisions;

/// Most decisions remembered within one run.
const MOST_DECISIONS: usize = 10_000;
/// One person decides here.
const TENANT: &str = "local";

/// The last decisions of this run.
#[derive(Debug)]
pub(crate) struct Recent(RecentDecisions);

impl Recent {
    pub(crate) fn new() -> Self {
        Self(RecentDecisions::new(MOST_DECISIONS))
    }

    /// The last decision of the request's conversation.
    pub(crate) fn previous(&self, request: &RouteRequest) -> Option<Arc<Decision>> {
        self.0.previous(TENANT, request)
    }

    pub(crate) fn insert(&mut self, decision: &Decision) {
        self.0.insert(TENANT, Arc::new(decision.clone()));
    }

    /// Remembers what a router decided, under the rule by which it does so itself.
    pub(crate) fn routed(&mut self, request: &RouteRequest, decision: &Decision) {
        let kept = !request.dry_run && decision.follow_up != FollowUp::Acknowledgement;
        if kept && request.conversation_id.is_some() {
            self.insert(decision);
        }
    }
}
