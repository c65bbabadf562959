//! What earlier attempts say about a model at a class of task: observations, their weights and decay, and the posterior
//! that selection uses (routing.md 11). Observations are given; where they are stored is not known here.

mod ledger;

use std::fmt;
use std::str::FromStr;

use decision::vocabulary::TaskType;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use ledger::{Ledger, MOST_OBSERVATIONS};

use crate::assessment::TOLERANCE;
use crate::bounded::{OutOfRange, Ratio, Runs};

/// Strength of the prior in runs: α = 5·p0, β = 5·(1 − p0).
pub const PRIOR_RUNS: f64 = 5.0;
/// An observation weighs half after this many seconds (14 days).
pub const HALF_LIFE_SECONDS: f64 = 14.0 * 86_400.0;
/// Observations older than this many days are ignored.
pub const KEPT_DAYS: i64 = 90;
/// A model below the required tier needs this many effective runs to be earned.
pub const EARNED_RUNS: f64 = 3.0;

/// Class of tasks that share their history, per tenant: task type and complexity in fifths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HistoryKey {
    /// Type of the task.
    pub task_type: TaskType,
    /// Complexity level, 0..=4.
    level: u8,
}

/// The class of a task: `<task type>:<round(complexity·4)>`, halves rounded up.
#[must_use]
pub fn key(task_type: TaskType, complexity: Ratio) -> HistoryKey {
    let rounded = (complexity.get() * 4.0).round();
    let level = (0..4u8)
        .find(|level| rounded <= f64::from(*level))
        .unwrap_or(4);
    HistoryKey { task_type, level }
}

impl HistoryKey {
    /// Complexity level, 0..=4.
    #[must_use]
    pub const fn level(self) -> u8 {
        self.level
    }
}

impl fmt::Display for HistoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.task_type, self.level)
    }
}

/// A text that is no history key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no history key: expected `<task type>:<0..4>`")]
pub struct BadHistoryKey(String);

impl FromStr for HistoryKey {
    type Err = BadHistoryKey;

    fn from_str(text: &str) -> Result<Self, BadHistoryKey> {
        let bad = || BadHistoryKey(text.to_owned());
        let (task_type, level) = text.split_once(':').ok_or_else(bad)?;
        let task_type = task_type.parse().map_err(|_| bad())?;
        match level.as_bytes() {
            [digit @ b'0'..=b'4'] => Ok(Self {
                task_type,
                level: digit - b'0',
            }),
            _ => Err(bad()),
        }
    }
}

impl Serialize for HistoryKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HistoryKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// What the checks of a task said at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// The last check passed.
    Passed,
    /// The last check failed.
    Failed,
    /// There was something to check and no check ran.
    NotRun,
    /// Validation level `none`.
    NothingToCheck,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The agent finished.
    Finished(Checks),
    /// It finished, and the user's next message said it was wrong.
    Corrected(Checks),
    /// An error that is not the provider's.
    AgentError,
    /// Another model took over after failures.
    EscalatedAway,
    /// The provider's fault; feeds section 10.
    ProviderError,
    /// The user stopped it.
    Aborted,
    /// The user's steering replaced it.
    Superseded,
    /// The user did not allow a tool.
    PermissionDenied,
}

/// What an observation counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counts {
    /// For the model.
    Success,
    /// Against the model.
    Failure,
}

/// What is observed of an attempt, and its weight before decay; nothing for ends that say nothing about the model.
#[must_use]
pub fn weigh(end: AttemptEnd) -> Option<(Counts, Ratio)> {
    const HALF: Ratio = Ratio::constant(0.5);
    match end {
        AttemptEnd::Finished(Checks::Passed | Checks::NothingToCheck) => {
            Some((Counts::Success, Ratio::ONE))
        }
        AttemptEnd::Finished(Checks::NotRun) => Some((Counts::Success, HALF)),
        AttemptEnd::Finished(Checks::Failed)
        | AttemptEnd::Corrected(Checks::Failed)
        | AttemptEnd::AgentError
        | AttemptEnd::EscalatedAway => Some((Counts::Failure, Ratio::ONE)),
        AttemptEnd::Corrected(_) => Some((Counts::Failure, HALF)),
        AttemptEnd::ProviderError
        | AttemptEnd::Aborted
        | AttemptEnd::Superseded
        | AttemptEnd::PermissionDenied => None,
    }
}

/// One attempt's say about a model at a class of task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// When the attempt ended.
    #[serde(with = "crate::timestamp")]
    pub at: Timestamp,
    /// For or against.
    pub counts: Counts,
    /// Before decay.
    pub weight: Ratio,
}

/// Decayed sums of observations: ΣS and ΣF.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// ΣS.
    pub successes: Runs,
    /// ΣF.
    pub failures: Runs,
}

impl Evidence {
    /// No observation at all.
    pub const NONE: Self = Self {
        successes: Runs::LEAST,
        failures: Runs::LEAST,
    };

    /// Sums from outside.
    ///
    /// # Errors
    /// When one is not finite or negative.
    pub fn new(successes: f64, failures: f64) -> Result<Self, OutOfRange> {
        Ok(Self {
            successes: Runs::new(successes)?,
            failures: Runs::new(failures)?,
        })
    }

    /// The sums of observations of one class and model at a moment.
    #[must_use]
    pub fn of<'a>(observations: impl IntoIterator<Item = &'a Observation>, now: Timestamp) -> Self {
        let (mut successes, mut failures) = (0.0, 0.0);
        for observation in observations {
            let weight = observation.weight.get() * decay(observation.at, now);
            match observation.counts {
                Counts::Success => successes += weight,
                Counts::Failure => failures += weight,
            }
        }
        // At most 1 each: finite, and beyond 10⁹ observations the difference is nothing.
        Self {
            successes: Runs::clamped(successes).unwrap_or(Runs::MOST),
            failures: Runs::clamped(failures).unwrap_or(Runs::MOST),
        }
    }

    /// Effective runs, ΣS + ΣF.
    #[must_use]
    pub fn runs(self) -> f64 {
        self.successes.get() + self.failures.get()
    }
}

/// What is left of an observation's weight: 0.5^(age / 14 days), 1 for times in the future, 0 beyond 90 days.
#[must_use]
pub fn decay(at: Timestamp, now: Timestamp) -> f64 {
    let age = now.duration_since(at);
    if age.is_negative() {
        1.0
    } else if age > jiff::SignedDuration::from_hours(24 * KEPT_DAYS) {
        0.0
    } else {
        (-age.as_secs_f64() / HALF_LIFE_SECONDS).exp2()
    }
}

/// Beta posterior of success.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posterior {
    /// m = α/(α+β).
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// u = min(1, m + sd).
    pub upper: f64,
}

/// The posterior of a prior success `p0` and evidence.
#[must_use]
pub fn posterior(p0: Ratio, evidence: Evidence) -> Posterior {
    let alpha = PRIOR_RUNS * p0.get() + evidence.successes.get();
    let beta = PRIOR_RUNS * (1.0 - p0.get()) + evidence.failures.get();
    let runs = alpha + beta;
    let mean = alpha / runs;
    let sd = (alpha * beta / (runs * runs * (runs + 1.0))).sqrt();
    Posterior {
        mean,
        sd,
        upper: (mean + sd).min(1.0),
    }
}

/// Whether a model may be chosen for a class of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eligible {
    /// Its tier promises enough.
    ByTier,
    /// Its tier does not, its history does.
    Earned,
    /// Neither, or its history speaks against it.
    No,
}

/// What history makes of a model: posterior and the two verdicts of routing.md 11.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Posterior of success.
    pub posterior: Posterior,
    /// May it be chosen.
    pub eligible: Eligible,
    /// p0 would do, but even the optimistic bound is below the minimum.
    pub excluded: bool,
}

/// Judges a prior and evidence against the profile's minimum.
#[must_use]
pub fn standing(p0: Ratio, minimum: Ratio, evidence: Evidence) -> Standing {
    let posterior = posterior(p0, evidence);
    let reaches = |value: f64| value >= minimum.get() - TOLERANCE;
    let by_tier = reaches(p0.get());
    let excluded = by_tier && !reaches(posterior.upper);
    let earned = !by_tier && evidence.runs() >= EARNED_RUNS - TOLERANCE && reaches(posterior.mean);
    let eligible = match (by_tier && !excluded, earned) {
        (true, _) => Eligible::ByTier,
        (false, true) => Eligible::Earned,
        (false, false) => Eligible::No,
    };
    Standing {
        posterior,
        eligible,
        excluded,
    }
}

#[cfg(test)]
mod tests;
