//! Compiles a spec: raw to checked, pure. The result of compiling is remembered per object and generation, because an
//! unchanged policy is looked at every five minutes and its answer depends on nothing but the spec and the date.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::kinds::{PolicySummary, RoutingPolicy, RoutingPolicySpec};
use api::reason::Reason;
use api::routing_policy::PolicyError;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kube::ResourceExt;
use routing::policy::{Policy, Problem, ProblemReason, Severity};

use super::inputs::ServerState;
use super::revision::revision_of;
use crate::clock::Now;

/// Most policies whose result is remembered.
const MAX_REMEMBERED: usize = 10_000;

/// A policy and what it references, checked.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What compiling found.
    pub compiled: Arc<Compiled>,
    /// The server it names.
    pub server: ServerState,
}

/// What compiling a spec found.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// First ten hex digits of the digest of the canonical spec.
    pub revision: String,
    /// Whether it may be used.
    pub verdict: Verdict,
}

/// Whether a spec may be used.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It may.
    Accepts {
        /// What is in it.
        summary: PolicySummary,
        /// What somebody should know.
        warnings: Vec<Problem>,
    },
    /// It may not.
    Refuses {
        /// The word for the first error.
        reason: Reason,
        /// Errors, and warnings beside them.
        problems: Vec<Problem>,
    },
}

/// Compiles a spec as it stood on a day.
#[must_use]
pub fn compile(name: &str, spec: &RoutingPolicySpec, today: Date) -> Compiled {
    let revision = revision_of(spec);
    let verdict = match spec.compile(name, today) {
        Ok(policy) => Verdict::Accepts {
            summary: summary(&policy),
            warnings: policy.warnings,
        },
        Err(PolicyError::Problems(problems)) => refused(problems),
        Err(PolicyError::Document(error)) => refused(vec![Problem {
            path: "spec".to_owned(),
            message: error.to_string(),
            severity: Severity::Error,
            reason: ProblemReason::InvalidSpec,
        }]),
    };
    Compiled { revision, verdict }
}

fn refused(mut problems: Vec<Problem>) -> Verdict {
    // Errors first: only so many fit into a status.
    problems.sort_by_key(|problem| problem.severity == Severity::Warning);
    let first = problems.first().map(|problem| problem.reason);
    Verdict::Refuses {
        reason: first.map_or(Reason::InvalidSpec, Reason::from),
        problems,
    }
}

fn summary(policy: &Policy) -> PolicySummary {
    let entries = policy.registry.entries();
    let mut tiers: Vec<_> = entries.iter().map(|entry| entry.tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let count = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    PolicySummary {
        tiers: count(tiers.len()),
        models: count(entries.len()),
        rules: count(policy.source.rules.len()),
    }
}

/// Results by uid.
#[derive(Debug, Default)]
pub struct Memo {
    results: Mutex<HashMap<String, Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    generation: Option<i64>,
    today: Date,
    compiled: Arc<Compiled>,
}

impl Memo {
    /// The result for an object on the day of `now`.
    #[must_use]
    pub fn compiled(&self, object: &RoutingPolicy, now: &Now) -> Arc<Compiled> {
        let today = now.wall.to_zoned(TimeZone::UTC).date();
        let generation = object.metadata.generation;
        let uid = object.uid().unwrap_or_default();
        if let Some(known) = self.lock().get(&uid)
            && known.today == today
            && known.generation == generation
            && generation.is_some()
        {
            return known.compiled.clone();
        }
        let compiled = Arc::new(compile(&object.name_any(), &object.spec, today));
        let mut results = self.lock();
        if results.len() >= MAX_REMEMBERED {
            results.clear();
        }
        let remembered = Remembered {
            generation,
            today,
            compiled: compiled.clone(),
        };
        results.insert(uid, remembered);
        compiled
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
