//! What a candidate is worth for one request: success, cost, latency, failure, utility (routing.md 9).

use decision::vocabulary::Tier;

use super::{CostBasis, SelectionInput};
use crate::bounded::{Ratio, Runs};
use crate::history::{self, Eligible};
use crate::registry::Candidate;

/// Cost prior by tier (routing.md 9).
const COST: [f64; 4] = [0.10, 0.35, 0.60, 0.85];
/// Latency prior by tier (routing.md 9).
const LATENCY: [f64; 4] = [0.15, 0.35, 0.60, 0.85];
/// Prior success by gap to the required tier, −3..=3: +0.18 a tier below it, less above it (routing.md 9).
const P0: [Ratio; 7] = [
    Ratio::constant(0.36),
    Ratio::constant(0.54),
    Ratio::constant(0.72),
    Ratio::constant(0.90),
    Ratio::constant(0.94),
    Ratio::constant(0.96),
    Ratio::constant(0.97),
];
/// Even a harmless task fails with this risk.
const LEAST_RISK: f64 = 0.2;
/// Share of the cost weight that a full switch costs.
const SWITCH: f64 = 0.5;
/// Estimates below this are this: nothing is infinitely cheaper than the rest. USD.
const LEAST_ESTIMATE: f64 = 1e-6;

/// A candidate with everything that decided its rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Who.
    pub candidate: Candidate,
    /// Tier less required tier, −3..=3.
    pub gap: i8,
    /// Prior success.
    pub p0: f64,
    /// Posterior success S.
    pub success: f64,
    /// Optimistic bound u of success.
    pub upper: f64,
    /// Effective runs behind it, ΣS + ΣF.
    pub runs: Runs,
    /// Availability of its provider.
    pub availability: Ratio,
    /// Cost, 0..=1.
    pub cost: f64,
    /// Latency prior.
    pub latency: f64,
    /// Expected loss by failure.
    pub failure: f64,
    /// What leaving the current model takes off the utility.
    pub switch_cost: f64,
    /// What it is worth.
    pub utility: f64,
    /// May it be chosen, and why.
    pub eligible: Eligible,
    /// History keeps it out.
    pub excluded: bool,
}

/// Success of a tier where nothing is known yet (routing.md 9).
#[must_use]
pub fn prior_success(tier: Tier, required: Tier) -> Ratio {
    prior(tier, required).1
}

/// Prior success by tiers and the gap between them.
fn prior(tier: Tier, required: Tier) -> (i8, Ratio) {
    let at = 3 + tier.index() - required.index();
    (at as i8 - 3, P0[at])
}

pub(super) fn score(input: &SelectionInput<'_>, pool: &[&Candidate]) -> Vec<Scored> {
    let price_scale = PriceScale::of(input);
    let stay = input.switch.filter(|switch| {
        // A current model below the required tier, or one that cannot run this, is no reason to stay: floors,
        // escalations and provider moves ignore the price.
        pool.iter().any(|candidate| {
            candidate.model == *switch.current && candidate.tier >= input.required_tier
        })
    });
    let one = |candidate: &&Candidate| {
        let switch = stay.filter(|switch| candidate.model != *switch.current);
        let price = switch.map_or(Ratio::ZERO, |switch| switch.price);
        score_one(input, candidate, price_scale.prior(input, candidate), price)
    };
    pool.iter().map(one).collect()
}

fn score_one(
    input: &SelectionInput<'_>,
    candidate: &Candidate,
    cost_prior: f64,
    price: Ratio,
) -> Scored {
    let profile = input.profile;
    let (gap, p0) = prior(candidate.tier, input.required_tier);
    let evidence = (input.evidence)(&candidate.model);
    let standing = history::standing(p0, profile.min_success, evidence);
    let availability = (input.availability)(candidate.model.provider());
    let success = standing.posterior.mean;
    let cost = (cost_prior * (2.0 - availability.get())).min(1.0);
    let latency = LATENCY[candidate.tier.index()];
    let failure = (1.0 - success) * input.task_risk.get().max(LEAST_RISK);
    let switch_cost = profile.cost.get() * SWITCH * price.get();
    let utility = profile.quality.get() * success
        - profile.cost.get() * cost
        - profile.latency.get() * latency
        - profile.risk.get() * failure
        - switch_cost;
    Scored {
        candidate: candidate.clone(),
        gap,
        p0: p0.get(),
        success,
        upper: standing.posterior.upper,
        runs: Runs::clamped(evidence.runs()).unwrap_or(Runs::MOST),
        availability,
        cost,
        latency,
        failure,
        switch_cost,
        utility,
        eligible: standing.eligible,
        excluded: standing.excluded,
    }
}

/// Where estimates lie between the cheapest and the dearest of all candidates.
enum PriceScale {
    Tiers,
    Prices { least: f64, span: f64 },
}

impl PriceScale {
    /// Over every candidate and not only those in the pool, so that a provider that drops out moves nobody's cost.
    fn of(input: &SelectionInput<'_>) -> Self {
        if input.cost_basis == CostBasis::Tiers {
            return Self::Tiers;
        }
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for candidate in input.candidates {
            let Some(log) = log_estimate(input, candidate) else {
                return Self::Tiers;
            };
            least = least.min(log);
            most = most.max(log);
        }
        let span = most - least;
        if span > 0.0 {
            Self::Prices { least, span }
        } else {
            Self::Tiers
        }
    }

    fn prior(&self, input: &SelectionInput<'_>, candidate: &Candidate) -> f64 {
        let by_tier = COST[candidate.tier.index()];
        match (self, log_estimate(input, candidate)) {
            (Self::Prices { least, span }, Some(log)) => 0.10 + 0.75 * (log - least) / span,
            _ => by_tier,
        }
    }
}

fn log_estimate(input: &SelectionInput<'_>, candidate: &Candidate) -> Option<f64> {
    let usd = input.estimate.and_then(|estimate| estimate(candidate))?;
    Some(usd.get().max(LEAST_ESTIMATE).ln())
}
