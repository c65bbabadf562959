//! What outcomes taught a tenant, ready for the next decision: evidence by class and model, tokens by class, what is left
//! of providers, and when something was last explored. Folded from the store's feed of changes; holds nothing that the
//! feed would not bring back after a restart.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use routing::bounded::{Ratio, Usd};
use routing::decide::State;
use routing::estimate::{Tokens, Used};
use routing::history::{Evidence, HistoryKey, Ledger};
use routing::outcome::EvidenceEvent;
use routing::policy::Policy;
use routing::quota::{ProviderQuota, QuotaState};
use routing::registry::ModelRef;

/// Most finished tasks of a class whose tokens are averaged; older ones weigh little.
const MOST_USED: usize = 64;

/// Most models of a class that are remembered. Clients may name any model, and memory must not grow with what they name.
const MOST_MODELS: usize = 256;
/// Most providers whose plans are remembered, for the same reason.
const MOST_PROVIDERS: usize = 256;

/// Evidence, quota and explorations of one tenant.
#[derive(Debug, Default)]
pub(crate) struct History {
    ledgers: HashMap<HistoryKey, HashMap<ModelRef, Ledger>>,
    used: HashMap<HistoryKey, VecDeque<Used>>,
    quota: HashMap<String, QuotaState>,
    explored: HashMap<HistoryKey, Timestamp>,
}

impl History {
    /// Takes in what an attempt said.
    pub(crate) fn learn(&mut self, event: EvidenceEvent, now: Timestamp) {
        let EvidenceEvent {
            class,
            model,
            observation,
            replaces,
            used,
        } = event;
        if let Some(seen) = observation {
            let models = self.ledgers.entry(class).or_default();
            if models.len() >= MOST_MODELS && !models.contains_key(&model) {
                forget_oldest(models);
            }
            let ledger = models
                .entry(model)
                .or_insert_with(|| Ledger::new(Vec::new(), now));
            match replaces {
                Some(old) => ledger.replace(&old, seen, now),
                None => ledger.record(seen, now),
            }
        }
        if let Some(used) = used {
            let all = self.used.entry(class).or_default();
            if all.len() == MOST_USED {
                all.pop_front();
            }
            all.push_back(used);
        }
    }

    /// Takes in what is left of a provider.
    pub(crate) fn set_quota(&mut self, provider: String, state: QuotaState) {
        if self.quota.len() >= MOST_PROVIDERS
            && !self.quota.contains_key(&provider)
            && let Some(other) = self.quota.keys().next().cloned()
        {
            self.quota.remove(&other);
        }
        self.quota.insert(provider, state);
    }

    /// Takes in an exploration.
    pub(crate) fn explored(&mut self, class: HistoryKey, at: Timestamp) {
        let last = self.explored.entry(class).or_insert(at);
        *last = at.max(*last);
    }

    /// What is stored of a provider.
    pub(crate) fn quota(&self, provider: &str) -> QuotaState {
        self.quota.get(provider).copied().unwrap_or_default()
    }

    /// What is known of a model at a class of tasks.
    pub(crate) fn evidence(&self, class: HistoryKey, model: &ModelRef, now: Timestamp) -> Evidence {
        self.ledgers
            .get(&class)
            .and_then(|models| models.get(model))
            .map_or(Evidence::NONE, |ledger| ledger.evidence(now))
    }

    /// What is left of a provider under a policy.
    pub(crate) fn availability(
        &self,
        policy: &Policy,
        provider: &str,
        configured: Ratio,
        now: Timestamp,
    ) -> Ratio {
        let budget = policy.source.quota.get(provider);
        let budget = budget.and_then(|quota| quota.budget_per_day);
        ProviderQuota {
            share: configured,
            budget_per_day: budget.and_then(|usd| Usd::clamped(usd).ok()),
            state: self.quota(provider),
        }
        .availability(now)
    }
}

/// Forgets the model that nobody reported on for the longest time.
fn forget_oldest(models: &mut HashMap<ModelRef, Ledger>) {
    let last = |ledger: &Ledger| ledger.observations().last().map(|seen| seen.at);
    let oldest = models.iter().min_by_key(|(_, ledger)| last(ledger));
    if let Some(model) = oldest.map(|(model, _)| model.clone()) {
        models.remove(&model);
    }
}

/// A history at one moment under one policy, as a decision asks for it.
#[derive(Clone, Copy)]
pub(crate) struct AtMoment<'a> {
    pub(crate) history: &'a History,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Timestamp,
    /// Whether the store answers: what cannot be stored must not be explored.
    pub(crate) stores: bool,
}

impl State for AtMoment<'_> {
    fn availability(&self, provider: &str, configured: Ratio) -> Ratio {
        self.history
            .availability(self.policy, provider, configured, self.now)
    }

    fn evidence(&self, class: HistoryKey, model: &ModelRef) -> Evidence {
        self.history.evidence(class, model, self.now)
    }

    fn tokens(&self, class: HistoryKey) -> Option<Tokens> {
        Tokens::mean(self.history.used.get(&class)?, self.now)
    }

    fn last_explored(&self, class: HistoryKey) -> Option<Timestamp> {
        self.history.explored.get(&class).copied()
    }

    fn stores(&self) -> bool {
        self.stores
    }
}

#[cfg(test)]
mod tests {
    use routing::history::{Counts, Observation};

    use super::*;

    fn event(at: Timestamp, counts: Counts, replaces: Option<Observation>) -> EvidenceEvent {
        EvidenceEvent {
            class: "bug_fix:2".parse().unwrap(),
            model: "a/b".parse().unwrap(),
            observation: Some(Observation {
                at,
                counts,
                weight: Ratio::ONE,
            }),
            replaces,
            used: Some(Used {
                at,
                tokens: Tokens {
                    input: 1000,
                    cached_input: 0,
                    cache_write: 0,
                    output: 10,
                },
            }),
        }
    }

    #[test]
    fn folds_evidence_corrections_and_tokens() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let (class, model) = ("bug_fix:2".parse().unwrap(), "a/b".parse().unwrap());
        let mut history = History::default();
        let success = event(now, Counts::Success, None);
        history.learn(success.clone(), now);
        let evidence = history.evidence(class, &model, now);
        assert_eq!(
            (evidence.successes.get(), evidence.failures.get()),
            (1.0, 0.0)
        );
        history.learn(event(now, Counts::Failure, success.observation), now);
        let evidence = history.evidence(class, &model, now);
        assert_eq!(
            (evidence.successes.get(), evidence.failures.get()),
            (0.0, 1.0)
        );
        for _ in 0..200 {
            history.learn(event(now, Counts::Success, None), now);
        }
        assert_eq!(history.used[&class].len(), MOST_USED);
    }
}
