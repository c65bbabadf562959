//! What the router knows beyond a request, per tenant, in memory: history, quota, explorations and learned tasks. The
//! store is the truth; this follows its feed of changes, so that every replica knows the same within a second.

mod history;
mod memory;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use jiff::Timestamp;
use service::runtime::Shutdown;
use service::telemetry::RepeatedError;
use store::{Event, Store, StoreError};

pub(crate) use history::{AtMoment, History};
pub(crate) use memory::Memory;

/// How often other replicas' changes are looked for. Well below the second within which they must be seen.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Everything known of all tenants.
#[derive(Debug)]
pub(crate) struct Knowledge {
    store: Store,
    tenants: RwLock<HashMap<Arc<str>, Arc<TenantKnowledge>>>,
    /// Up to where the feed was read. Held while it is read, so that changes are taken in once and in order.
    seen: tokio::sync::Mutex<u64>,
    /// Whose learned tasks changed since they were indexed, and to which revision.
    changed: Mutex<BTreeMap<Arc<str>, u64>>,
}

/// Everything known of one tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantKnowledge {
    history: RwLock<History>,
    memory: RwLock<Option<Arc<Memory>>>,
    /// One build at a time.
    building: tokio::sync::Mutex<()>,
}

impl TenantKnowledge {
    /// History as it stands; held for the microseconds of one decision.
    pub(crate) fn history(&self) -> RwLockReadGuard<'_, History> {
        self.history.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes history.
    pub(crate) fn change(&self, change: impl FnOnce(&mut History)) {
        change(&mut self.history.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// The learned tasks, if there are any.
    pub(crate) fn memory(&self) -> Option<Arc<Memory>> {
        self.memory
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the learned tasks of a revision, or of a later one, are indexed.
    fn knows_revision(&self, revision: u64) -> bool {
        self.memory()
            .is_some_and(|memory| memory.revision() >= revision)
    }

    fn put_memory(&self, memory: Arc<Memory>) {
        let mut slot = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        // A slower build of an older revision must not undo a newer one.
        if slot
            .as_ref()
            .is_none_or(|current| current.revision() <= memory.revision())
        {
            *slot = Some(memory);
        }
    }
}

impl Knowledge {
    /// Knows nothing yet.
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            tenants: RwLock::default(),
            seen: tokio::sync::Mutex::new(0),
            changed: Mutex::default(),
        }
    }

    /// What is known of a tenant; an unknown one starts with nothing.
    pub(crate) fn of(&self, tenant: &Arc<str>) -> Arc<TenantKnowledge> {
        let known = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(tenant) {
            return known.clone();
        }
        drop(known);
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        tenants.entry(tenant.clone()).or_default().clone()
    }

    /// Everything known, tenant by tenant.
    pub(crate) fn tenants(&self) -> Vec<Arc<TenantKnowledge>> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.values().cloned().collect()
    }

    /// Takes in what the store has that is not known yet, but for learned tasks, which [`Self::refresh_memory`] reads.
    /// Once it returns, everything that was committed before the call is known.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        let mut seen = self.seen.lock().await;
        loop {
            let changes = self.store.changes(*seen).await?;
            // By number, not by what was readable: changes of a later version must not stop the feed.
            if changes.last <= *seen {
                return Ok(());
            }
            let now = Timestamp::now();
            for (tenant, event) in changes.events {
                self.take_in(&tenant, event, now);
            }
            *seen = changes.last;
        }
    }

    fn take_in(&self, tenant: &Arc<str>, event: Event, now: Timestamp) {
        let known = self.of(tenant);
        match event {
            Event::Evidence(event) => known.change(|history| history.learn(event, now)),
            Event::Explored { class, at } => known.change(|history| history.explored(class, at)),
            Event::Quota { provider, state } => {
                known.change(|history| history.set_quota(provider, state));
            }
            Event::Dataset { revision } => self.note_change(tenant.clone(), revision),
        }
    }

    /// Indexes the learned tasks of every tenant where they changed.
    ///
    /// # Errors
    /// When the store does not answer; it is tried again by the next call.
    pub(crate) async fn refresh_memory(&self) -> Result<(), StoreError> {
        let changed = {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *changed)
        };
        let mut failed = None;
        for (tenant, revision) in changed {
            // Whoever made the change has often read it already.
            if self.of(&tenant).knows_revision(revision) {
                continue;
            }
            // One tenant's trouble is not that of those after it.
            if let Err(error) = self.rebuild_memory(&tenant).await {
                self.note_change(tenant, revision);
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn note_change(&self, tenant: Arc<str>, revision: u64) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = changed.entry(tenant).or_insert(revision);
        *newest = revision.max(*newest);
    }

    /// Reads the tenant's dataset again, and indexes it unless that revision is known already.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn rebuild_memory(&self, tenant: &Arc<str>) -> Result<(), StoreError> {
        let known = self.of(tenant);
        let _one = known.building.lock().await;
        let dataset = self.store.dataset(tenant).await?;
        if known
            .memory()
            .is_some_and(|memory| memory.revision() == dataset.revision)
        {
            return Ok(());
        }
        let built = tokio::task::spawn_blocking(move || Memory::build(&dataset)).await;
        match built {
            Ok(memory) => known.put_memory(Arc::new(memory)),
            Err(error) => {
                tracing::error!(%error, "learned tasks could not be indexed; the earlier ones stay in use");
            }
        }
        Ok(())
    }

    /// Follows the store until the process drains.
    pub(crate) async fn follow(self: Arc<Self>, errors: RepeatedError, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = shutdown.draining() => return,
            }
            let caught_up = async {
                self.catch_up().await?;
                self.refresh_memory().await
            };
            match caught_up.await {
                Ok(()) => {
                    let _ = errors.recovered();
                }
                // The store itself reports being away, once.
                Err(error) if error.retryable() => {
                    tracing::debug!(%error, "changes cannot be read");
                }
                Err(error) => {
                    if let Some(count) = errors.occurred() {
                        tracing::error!(%error, count, "changes cannot be read");
                    }
                }
            }
        }
    }
}
