//! The last decisions, in memory, so that a follow-up finds the task it goes on with; gone with the process.

use std::sync::{Arc, Mutex, PoisonError};

use api::{Decision, RouteRequest};
use routing::recent::RecentDecisions;
use service::http::Tenant;
use uuid::Uuid;

/// Decisions kept. At a few kilobytes each this is about 10 MB.
const CAPACITY: usize = 2048;

/// The last decisions of all tenants.
#[derive(Debug)]
pub(crate) struct Recent(Mutex<RecentDecisions>);

impl Default for Recent {
    fn default() -> Self {
        Self(Mutex::new(RecentDecisions::new(CAPACITY)))
    }
}

impl Recent {
    /// The decision that a request follows: the one it names, else the last of its conversation.
    pub(crate) fn previous(
        &self,
        tenant: &Tenant,
        request: &RouteRequest,
    ) -> Option<Arc<Decision>> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.previous(&tenant.0, request)
    }

    /// The decision of that id, if it is the tenant's.
    pub(crate) fn named(&self, tenant: &Tenant, id: Uuid) -> Option<Arc<Decision>> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.named(&tenant.0, id)
    }

    /// Keeps a decision, and lets the oldest go if there are too many.
    pub(crate) fn remember(&self, tenant: &Tenant, decision: Arc<Decision>) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.insert(&tenant.0, decision);
    }
}
