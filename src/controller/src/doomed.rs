//! Checkpoints that are being deleted by hand right now (`relayctl model prune`). A model of such a digest that is made
//! meanwhile waits with its fetch: it would find files that are gone a moment later.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Digests of what is being deleted. Cheap to clone, clones share.
#[derive(Debug, Clone, Default)]
pub struct Doomed(Arc<Mutex<BTreeSet<String>>>);

impl Doomed {
    /// These are, until the guard is dropped. One deletion at a time: its caller sees to that.
    #[must_use]
    pub fn during(&self, digests: &[String]) -> DoomedGuard {
        self.lock().extend(digests.iter().cloned());
        DoomedGuard(self.clone())
    }

    /// Whether a digest is.
    #[must_use]
    pub fn has(&self, digest: &str) -> bool {
        self.lock().contains(digest)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends it, however the deletion ends.
#[derive(Debug)]
pub struct DoomedGuard(Doomed);

impl Drop for DoomedGuard {
    fn drop(&mut self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_doomed_is_that_until_the_deletion_ends() {
        let doomed = Doomed::default();
        let seen = doomed.clone();
        assert!(!seen.has("sha256:a"));
        let guard = doomed.during(&["sha256:a".to_owned()]);
        assert!(seen.has("sha256:a") && !seen.has("sha256:b"));
        drop(guard);
        assert!(!seen.has("sha256:a"));
    }
}
