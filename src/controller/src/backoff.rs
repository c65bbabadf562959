//! How long an object waits after a failed pass. kube has no back-off per object: its error policy never sees a success
//! (kube 1916), so the failures in a row are counted here, by uid, and forgotten with the first pass that works.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Wait after the first failure.
pub const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
pub const LONGEST: Duration = Duration::from_secs(300);
/// Most objects that are remembered; the oldest is forgotten for a new one, which only makes it wait less.
pub const MAX_ENTRIES: usize = 10_000;

/// Failures in a row, by uid.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: Mutex<Failures>,
    seed: u64,
}

#[derive(Debug, Default)]
struct Failures {
    counts: HashMap<String, u32>,
    /// Uids in order of their first failure; may name some that are gone from `counts`.
    order: VecDeque<String>,
}

impl Backoff {
    /// Nothing failed yet. The seed spreads the waits of several processes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            failures: Mutex::default(),
            seed,
        }
    }

    /// One more failure: how long to wait.
    pub fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.lock();
        let count = if let Some(count) = failures.counts.get_mut(uid) {
            *count = count.saturating_add(1);
            *count
        } else {
            failures.insert(uid, 1);
            1
        };
        wait(count, jitter(self.seed, uid, count))
    }

    /// Only a change helps: it is remembered as one that does not work, and its next failure is the first.
    pub fn stalled(&self, uid: &str) {
        let mut failures = self.lock();
        if failures.counts.insert(uid.to_owned(), 0).is_none() {
            failures.counts.remove(uid);
            failures.insert(uid, 0);
        }
    }

    /// A pass worked, or the object is gone.
    pub fn cleared(&self, uid: &str) {
        self.lock().counts.remove(uid);
    }

    /// Objects that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().counts.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    fn insert(&mut self, uid: &str, count: u32) {
        while self.counts.len() >= MAX_ENTRIES {
            match self.order.pop_front() {
                Some(oldest) => self.counts.remove(&oldest),
                None => break,
            };
        }
        if self.order.len() >= 2 * MAX_ENTRIES {
            let counts = &self.counts;
            self.order.retain(|uid| counts.contains_key(uid));
        }
        self.counts.insert(uid.to_owned(), count);
        self.order.push_back(uid.to_owned());
    }
}

/// 1 s·2ⁿ⁻¹ for the nth failure, at most five minutes, stretched by `jitter`.
fn wait(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let plain = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    plain.mul_f64(jitter).min(LONGEST)
}

/// A factor in 0.8..1.2 that is the same for the same arguments, so that neither a test nor a replay depends on luck.
#[must_use]
pub fn jitter(seed: u64, uid: &str, count: u32) -> f64 {
    let mut hasher = DefaultHasher::new();
    (seed, uid, count).hash(&mut hasher);
    // 53 bits fit a double exactly.
    #[allow(clippy::cast_precision_loss)]
    let unit = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
    0.8 + 0.4 * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_with_each_failure_up_to_five_minutes() {
        for (failures, seconds) in [
            (1, 1),
            (2, 2),
            (3, 4),
            (9, 256),
            (10, 300),
            (4_000_000, 300),
        ] {
            assert_eq!(
                wait(failures, 1.0),
                Duration::from_secs(seconds),
                "{failures}"
            );
        }
        let backoff = Backoff::new(3);
        let mut longest = Duration::ZERO;
        for failures in 1..20 {
            let waited = backoff.failed("a");
            let plain = wait(failures, 1.0);
            assert!(
                waited >= plain.mul_f64(0.8) && waited <= LONGEST,
                "{failures}"
            );
            longest = longest.max(waited);
        }
        assert!(longest > Duration::from_secs(200));
    }

    #[test]
    fn a_success_begins_anew_and_objects_do_not_share_a_count() {
        let backoff = Backoff::new(3);
        for _ in 0..5 {
            let _ = backoff.failed("a");
        }
        assert!(backoff.failed("b") < Duration::from_millis(1_201));
        backoff.cleared("a");
        assert!(backoff.failed("a") < Duration::from_millis(1_201));
        assert_eq!(backoff.len(), 2);
    }

    #[test]
    fn fault_39_a_flood_of_failing_objects_is_remembered_within_its_bound() {
        let backoff = Backoff::new(3);
        for object in 0..100_000 {
            let _ = backoff.failed(&format!("uid-{object}"));
            if object % 3 == 0 {
                backoff.cleared(&format!("uid-{object}"));
            }
        }
        assert!(backoff.len() <= MAX_ENTRIES);
        assert!(backoff.lock().order.len() <= 2 * MAX_ENTRIES + 1);
        let again = backoff.failed("uid-99998");
        assert!(
            again > Duration::from_millis(1_500),
            "the newest are remembered: {again:?}"
        );
    }

    #[test]
    fn waits_are_spread_by_a_fifth_either_way() {
        let all: Vec<_> = (0..1_000).map(|at| jitter(9, "uid", at)).collect();
        assert!(all.iter().all(|factor| (0.8..1.2).contains(factor)));
        let mean = all.iter().sum::<f64>() / 1_000.0;
        assert!((0.98..1.02).contains(&mean), "{mean}");
    }
}
