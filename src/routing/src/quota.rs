//! How much of a provider is left: share, budget, measured remainder and a penalty after errors that fades (routing.md
//! 10). A value and functions on it: what is stored survives a restart, so an exhausted plan is not forgotten.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bounded::{Ratio, Usd};

/// A penalty falls to 0 in this time.
const FADES_IN: SignedDuration = SignedDuration::from_secs(600);
/// A provider is never punished beyond this.
const MOST_PENALTY: f64 = 0.9;
/// `Retry-After` is obeyed for this long at most.
const LONGEST_RETRY_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// A fault of the provider that makes it less attractive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderFault {
    /// Rate limit, overload, quota.
    Exhausted,
    /// Network, 5xx.
    Unavailable,
}

impl ProviderFault {
    /// What one adds to the penalty.
    #[must_use]
    pub const fn penalty(self) -> f64 {
        match self {
            Self::Exhausted => 0.5,
            Self::Unavailable => 0.25,
        }
    }
}

/// A penalty at the moment of the last fault.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalty {
    /// Its value then.
    pub value: Ratio,
    /// When.
    #[serde(with = "crate::timestamp")]
    pub at: Timestamp,
}

impl Penalty {
    /// What is left of it; a clock that went back changes nothing.
    fn at(self, now: Timestamp) -> f64 {
        let age = now.duration_since(self.at).as_secs_f64() / FADES_IN.as_secs_f64();
        self.value.get() * (1.0 - age.clamp(0.0, 1.0))
    }
}

/// What the provider itself reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Remaining / total.
    pub left: Ratio,
    /// Until then it holds.
    #[serde(with = "crate::timestamp")]
    pub resets: Timestamp,
}

/// What was spent on a day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The UTC day.
    pub day: Date,
    /// Costs reported on it.
    pub usd: Usd,
}

/// What is stored of a provider and tenant.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaState {
    /// After errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<Penalty>,
    /// From `Retry-After`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::timestamp::optional"
    )]
    pub closed_until: Option<Timestamp>,
    /// From headers or wallet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Today's costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// Configuration and state of a provider for a tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProviderQuota {
    /// From `laya.quota`, else policy `quota[].share`.
    pub share: Ratio,
    /// Policy `quota[].budget_per_day`.
    pub budget_per_day: Option<Usd>,
    /// What is stored.
    pub state: QuotaState,
}

impl Default for ProviderQuota {
    fn default() -> Self {
        Self {
            share: Ratio::ONE,
            budget_per_day: None,
            state: QuotaState::default(),
        }
    }
}

impl ProviderQuota {
    /// min(configured, measured) × (1 − penalty), and 0 while the provider asked to be left alone.
    #[must_use]
    pub fn availability(&self, now: Timestamp) -> Ratio {
        let state = &self.state;
        if state.closed_until.is_some_and(|until| now < until) || self.budget_is_spent(now) {
            return Ratio::ZERO;
        }
        let measured = state.measured.filter(|measured| now < measured.resets);
        let left = measured.map_or(1.0, |measured| measured.left.get());
        let penalty = state.penalty.map_or(0.0, |penalty| penalty.at(now));
        Ratio::clamped(self.share.get().min(left) * (1.0 - penalty)).unwrap_or(Ratio::ZERO)
    }

    fn budget_is_spent(&self, now: Timestamp) -> bool {
        let spent = self.state.spent.filter(|spent| spent.day == utc_day(now));
        let spent = spent.map_or(Usd::LEAST, |spent| spent.usd);
        self.budget_per_day.is_some_and(|budget| spent >= budget)
    }
}

impl QuotaState {
    /// After a fault: the penalty rises and its clock restarts; `Retry-After` closes the provider, never shorter than
    /// it already is.
    #[must_use]
    pub fn after_fault(
        self,
        fault: ProviderFault,
        retry_after: Option<SignedDuration>,
        now: Timestamp,
    ) -> Self {
        let current = self.penalty.map_or(0.0, |penalty| penalty.at(now));
        let value = (current + fault.penalty()).min(MOST_PENALTY);
        let penalty = Penalty {
            value: Ratio::clamped(value).unwrap_or(Ratio::ONE),
            at: now,
        };
        let wait = retry_after.map(|wait| wait.clamp(SignedDuration::ZERO, LONGEST_RETRY_AFTER));
        let until = wait.and_then(|wait| now.checked_add(wait).ok());
        Self {
            penalty: Some(penalty),
            closed_until: until.max(self.closed_until),
            ..self
        }
    }

    /// After the provider said what is left.
    #[must_use]
    pub fn after_measure(self, left: Ratio, resets: Timestamp) -> Self {
        Self {
            measured: Some(Measured { left, resets }),
            ..self
        }
    }

    /// After an attempt whose cost is known. Clocks of replicas may differ around midnight: where another one has begun
    /// the next day already, the cost is of that day. A sum from further ahead is of a clock that was wrong.
    #[must_use]
    pub fn after_cost(self, cost: Usd, now: Timestamp) -> Self {
        let today = utc_day(now);
        let tomorrow = today.tomorrow().unwrap_or(today);
        let before = self
            .spent
            .filter(|spent| (today..=tomorrow).contains(&spent.day));
        let day = before.map_or(today, |spent| spent.day);
        let sum = before.map_or(0.0, |spent| spent.usd.get()) + cost.get();
        Self {
            spent: Some(Spent {
                day,
                usd: Usd::clamped(sum).unwrap_or(Usd::MOST),
            }),
            ..self
        }
    }
}

fn utc_day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests;
