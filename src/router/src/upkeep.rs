//! What goes on beside requests: following the store, removing what is older than the retention, and showing what is
//! left of providers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::policy::Policy;
use service::runtime::{ReadyHandle, Shutdown};
use service::telemetry::RepeatedError;
use store::Retention;

use crate::decide::Decider;

/// How often old records are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(10 * 60);
/// The first look, so that a router that is restarted often prunes too.
const FIRST_PRUNE: Duration = Duration::from_secs(60);
/// How often gauges are set.
const SHOW_EVERY: Duration = Duration::from_secs(5);
/// How often the store's state is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Removes what the retention does not keep, until the process drains.
pub(crate) async fn prune(decider: Arc<Decider>, errors: RepeatedError, shutdown: Shutdown) {
    let mut wait = FIRST_PRUNE;
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.draining() => return,
        }
        wait = PRUNE_EVERY;
        let days = decider.policy.current().policy.source.retention_days;
        let retention = Retention {
            days,
            ..Retention::default()
        };
        match decider.store.prune(retention, Timestamp::now()).await {
            Ok(None) => {}
            Ok(Some(pruned)) => tracing::debug!(?pruned, "old records removed"),
            Err(error) => {
                if let Some(count) = errors.occurred() {
                    tracing::warn!(%error, count, "old records cannot be removed");
                }
            }
        }
    }
}

/// Shows whether the store answers, in readiness and metrics, until the process drains.
pub(crate) async fn watch_store(decider: Arc<Decider>, ready: ReadyHandle, shutdown: Shutdown) {
    let mut before = None;
    loop {
        let up = decider.store.is_up();
        if before != Some(up) {
            decider.metrics.store_is_up(up);
            if up {
                ready.ready();
            } else {
                ready.not_ready("the store does not answer; decisions go on, outcomes do not");
            }
            match before {
                None => {}
                Some(_) if up => tracing::info!("the store answers again"),
                Some(_) => tracing::warn!("the store does not answer"),
            }
            before = Some(up);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = shutdown.draining() => return,
        }
    }
}

/// Shows what is left of providers, until the process drains.
pub(crate) async fn show_availability(decider: Arc<Decider>, shutdown: Shutdown) {
    let mut shown = providers(&decider.policy.current().policy);
    loop {
        tokio::select! {
            () = tokio::time::sleep(SHOW_EVERY) => {}
            () = shutdown.draining() => return,
        }
        let now = Timestamp::now();
        let active = decider.policy.current();
        let providers = providers(&active.policy);
        for provider in &providers {
            let share = decider.availability(&active.policy, provider, now);
            decider.metrics.provider_availability(provider, share);
        }
        // Those that only the policy before knew.
        for provider in shown.difference(&providers) {
            decider.metrics.forget_provider(provider);
        }
        shown = providers;
    }
}

fn providers(policy: &Policy) -> BTreeSet<String> {
    let entries = policy.registry.entries();
    entries
        .iter()
        .map(|entry| entry.model.provider().to_owned())
        .collect()
}

impl Decider {
    /// What is left of a provider by the policy's own share: the least of all tenants.
    fn availability(&self, policy: &Policy, provider: &str, now: Timestamp) -> f64 {
        let quota = policy.source.quota.get(provider);
        let share = quota.map_or(1.0, |quota| quota.share);
        let configured = Ratio::clamped(share).unwrap_or(Ratio::ONE);
        let tenants = self.knowledge.tenants();
        let left = tenants.iter().map(|known| {
            let history = known.history();
            history
                .availability(policy, provider, configured, now)
                .get()
        });
        left.fold(configured.get(), f64::min)
    }
}
