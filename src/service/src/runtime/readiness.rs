//! Whether the process can do its job now: named checks that parts of it switch, and the list of reasons while one is
//! off. `/readyz` and `/ready` show it; it never asks another system.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Why the process is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotReady {
    /// Which check.
    pub check: &'static str,
    /// What is missing and what to do.
    pub message: String,
}

/// What `/readyz` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadinessReport {
    /// Whether every check is on.
    pub ready: bool,
    /// The checks that are off, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<NotReady>,
}

/// All checks of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    checks: Arc<Mutex<BTreeMap<&'static str, Option<String>>>>,
}

impl Readiness {
    /// Adds a check, off with `starting` until its handle says otherwise. The same name twice is one check.
    #[must_use]
    pub fn check(&self, name: &'static str) -> ReadyHandle {
        self.lock().insert(name, Some("starting".to_owned()));
        ReadyHandle {
            name,
            readiness: self.clone(),
        }
    }

    /// What holds now.
    #[must_use]
    pub fn report(&self) -> ReadinessReport {
        let reasons: Vec<_> = self
            .lock()
            .iter()
            .filter_map(|(check, off)| off.clone().map(|message| NotReady { check, message }))
            .collect();
        ReadinessReport {
            ready: reasons.is_empty(),
            reasons,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<String>>> {
        // The map is valid between any two statements, so a panic elsewhere does not spoil it.
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Switches one check.
#[derive(Debug, Clone)]
pub struct ReadyHandle {
    name: &'static str,
    readiness: Readiness,
}

impl ReadyHandle {
    /// The check holds.
    pub fn ready(&self) {
        self.readiness.lock().insert(self.name, None);
    }

    /// The check does not hold, and why.
    pub fn not_ready(&self, message: impl Into<String>) {
        self.readiness
            .lock()
            .insert(self.name, Some(message.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ready_when_every_check_is_and_names_the_others() {
        let readiness = Readiness::default();
        assert!(readiness.report().ready, "nothing to wait for");
        let policy = readiness.check("policy");
        let store = readiness.check("store");
        store.ready();
        assert_eq!(
            readiness.report().reasons,
            [NotReady {
                check: "policy",
                message: "starting".to_owned()
            }]
        );
        policy.ready();
        assert!(readiness.report().ready);
        store.not_ready("the database does not answer");
        assert_eq!(readiness.report().reasons[0].check, "store");
    }
}
