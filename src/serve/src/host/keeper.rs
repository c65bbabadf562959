//! What happens to checkpoints without a request: the preload, new tries of what failed once its cause may be gone, and
//! unloading after idleness.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Host, Problem};

/// How often failures are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long until a load that failed by the system's fault is tried again though nothing changed.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The start cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{problem}")]
pub struct Fatal {
    /// Exit code.
    pub code: u8,
    /// Why.
    pub problem: Arc<Problem>,
}

/// Preloads, then watches over what is loaded. `in_flight` says how many requests are being answered, `ready` is called
/// once, when the preload is complete. Never returns but with an error. Cancel safe.
///
/// # Errors
/// A checkpoint that is refused at start.
pub async fn keep(
    host: Arc<Host>,
    in_flight: impl Fn() -> usize,
    ready: impl FnOnce(),
) -> Result<(), Fatal> {
    let mut ready = Some(ready);
    for name in host.loading.preload.clone() {
        if let Err(problem) = host.load(&name).await
            && let Some(code) = problem.ends_start_with()
        {
            return Err(Fatal { code, problem });
        }
    }
    let every = host
        .loading
        .idle_unload
        .map_or(LOOK_EVERY, |idle| look_every(idle).min(LOOK_EVERY));
    let mut looked: Option<Instant> = None;
    loop {
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            looked = Some(Instant::now());
            retry(&host).await;
        }
        if ready.is_some() && host.is_preloaded() {
            host.readiness.started();
            if let Some(ready) = ready.take() {
                ready();
            }
        }
        if let Some(limit) = host.loading.idle_unload
            && in_flight() == 0
            && host.idle().is_some_and(|idle| idle >= limit)
            && !host.lock().resident.is_empty()
        {
            host.unload_all();
        }
        tokio::time::sleep(every).await;
    }
}

/// How often idleness is looked at (wire.md 3).
fn look_every(idle: Duration) -> Duration {
    (idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
}

async fn retry(host: &Arc<Host>) {
    let failed: Vec<_> = {
        let state = host.lock();
        state
            .failed
            .iter()
            .map(|(name, failure)| (name.clone(), failure.clone()))
            .collect()
    };
    for (name, failure) in failed {
        let changed = host.fingerprint(&name) != failure.seen;
        let by_the_system = match &*failure.problem {
            Problem::Load(error) => error.retryable(),
            Problem::System(_) => true,
            _ => false,
        };
        if changed || (by_the_system && failure.at.elapsed() >= RETRY_AFTER) {
            // Its outcome is noted where everybody sees it.
            let _ = host.load(&name).await;
        }
    }
}

impl Host {
    /// Whether nothing that should be preloaded has failed.
    fn is_preloaded(&self) -> bool {
        let state = self.lock();
        self.loading
            .preload
            .iter()
            .all(|name| !state.failed.contains_key(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_idleness_often_enough() {
        for (idle, every) in [(0.1, 0.05), (1.0, 0.25), (600.0, 5.0)] {
            assert_eq!(
                look_every(Duration::from_secs_f64(idle)),
                Duration::from_secs_f64(every)
            );
        }
    }
}
