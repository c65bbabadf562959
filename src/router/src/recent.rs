//! The last decisions, in memory, so that a follow-up finds the task it goes on with; gone with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{Decision, RouteRequest};
use routing::provider_error::ErrorClass;
use routing::recent::RecentDecisions;
use service::http::Tenant;
use uuid::Uuid;

/// Decisions kept. At a few kilobytes each this is about 10 MB.
const CAPACITY: usize = 2048;

/// Longest client side that is remembered, in bytes: with [`CAPACITY`] at most 32 MiB.
const MOST_CLIENT: usize = 16 << 10;

/// What goes with a decision while its task goes on.
#[derive(Debug, Clone)]
pub(crate) struct Aside {
    /// What the client said of itself.
    pub(crate) client: Option<String>,
    /// Score at which failures made it.
    pub(crate) born_score: f64,
    /// The last class of provider errors, and how many came in a row.
    pub(crate) faults: Option<(ErrorClass, u32)>,
    /// Whether what comes of it may be recorded.
    pub(crate) records: bool,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            client: None,
            born_score: 0.0,
            faults: None,
            records: true,
        }
    }
}

/// The last decisions of all tenants.
#[derive(Debug)]
pub(crate) struct Recent(Mutex<Remembered>);

#[derive(Debug)]
struct Remembered {
    decisions: RecentDecisions,
    asides: HashMap<Uuid, Aside>,
    order: VecDeque<Uuid>,
}

impl Default for Recent {
    fn default() -> Self {
        Self(Mutex::new(Remembered {
            decisions: RecentDecisions::new(CAPACITY),
            asides: HashMap::new(),
            order: VecDeque::new(),
        }))
    }
}

impl Recent {
    /// The decision that a request follows: the one it names, else the last of its conversation.
    pub(crate) fn previous(
        &self,
        tenant: &Tenant,
        request: &RouteRequest,
    ) -> Option<Arc<Decision>> {
        self.lock().decisions.previous(&tenant.0, request)
    }

    /// The decision of that id with what goes with it, if it is the tenant's.
    pub(crate) fn named(&self, tenant: &Tenant, id: Uuid) -> Option<(Arc<Decision>, Aside)> {
        let recent = self.lock();
        let decision = recent.decisions.named(&tenant.0, id)?;
        let aside = recent.asides.get(&id).cloned().unwrap_or_default();
        Some((decision, aside))
    }

    /// Keeps a decision, and lets the oldest go if there are too many.
    pub(crate) fn remember(&self, tenant: &Tenant, decision: Arc<Decision>, mut aside: Aside) {
        aside.client = aside.client.filter(|client| client.len() <= MOST_CLIENT);
        let mut recent = self.lock();
        let id = decision.id;
        recent.decisions.insert(&tenant.0, decision);
        recent.asides.insert(id, aside);
        recent.order.push_back(id);
        if recent.order.len() > CAPACITY
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.asides.remove(&oldest);
        }
    }

    /// One more error of a provider; how many of its class came in a row. 1 for a decision that is not remembered.
    pub(crate) fn fault(&self, id: Uuid, class: ErrorClass) -> u32 {
        let mut recent = self.lock();
        let Some(aside) = recent.asides.get_mut(&id) else {
            return 1;
        };
        let count = match aside.faults {
            Some((before, count)) if before == class => count.saturating_add(1),
            _ => 1,
        };
        aside.faults = Some((class, count));
        count
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
