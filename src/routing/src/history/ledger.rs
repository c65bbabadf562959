//! The observations of one class and model, ready to be asked at any moment: one exponential and two searches instead of
//! a walk over all of them, as every candidate of every decision asks.

use jiff::{SignedDuration, Timestamp};

use super::{Counts, Evidence, HALF_LIFE_SECONDS, KEPT_DAYS, Observation};
use crate::bounded::Runs;

/// Most observations of one class and model; the oldest go first.
pub const MOST_OBSERVATIONS: usize = 4096;
/// Times further apart than this are nonsense, and their scale would leave the range of a float. Half-lives.
const WIDEST: f64 = 900.0;

/// Observations in order of time, with running sums.
///
/// An observation's weight at `now` is w·2^((at − now)/H) = w·2^((at − origin)/H) · 2^((origin − now)/H): the first
/// factor does not depend on `now` and is summed once.
#[derive(Debug, Clone)]
pub struct Ledger {
    observations: Vec<Observation>,
    /// `sums[i]` is over the first i observations.
    sums: Vec<Sums>,
    /// When the sums were made, so that no nonsense time in the observations sets their scale.
    origin: Timestamp,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Scaled by 2^((at − origin)/H), successes and failures.
    scaled: [f64; 2],
    /// As recorded; for times in the future, which count as age 0.
    plain: [f64; 2],
}

impl Ledger {
    /// Takes observations in any order.
    #[must_use]
    pub fn new(observations: Vec<Observation>, now: Timestamp) -> Self {
        let mut ledger = Self {
            observations,
            sums: Vec::new(),
            origin: now,
        };
        ledger.rebuild(now);
        ledger
    }

    /// Adds an observation.
    pub fn record(&mut self, observation: Observation, now: Timestamp) {
        let in_order = self
            .observations
            .last()
            .is_none_or(|last| last.at <= observation.at);
        self.observations.push(observation);
        let fits = self.observations.len() <= MOST_OBSERVATIONS
            && half_lives(self.origin, now).abs() < WIDEST / 2.0;
        if in_order && fits {
            self.add_to_sums(observation);
        } else {
            self.rebuild(now);
        }
    }

    /// Puts one observation in the place of an equal one, as a correction does; adds it if there is none.
    pub fn replace(&mut self, old: &Observation, new: Observation, now: Timestamp) {
        match self
            .observations
            .iter_mut()
            .rev()
            .find(|known| **known == *old)
        {
            Some(known) => {
                *known = new;
                self.rebuild(now);
            }
            None => self.record(new, now),
        }
    }

    /// The observations in order of time.
    #[must_use]
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// The decayed sums at a moment; equal to [`Evidence::of`] over the observations.
    #[must_use]
    pub fn evidence(&self, now: Timestamp) -> Evidence {
        if self.observations.is_empty() {
            return Evidence::NONE;
        }
        let from = self.observations.partition_point(|seen| expired(seen, now));
        let to = self.observations.partition_point(|seen| seen.at <= now);
        let now_scale = (-half_lives(self.origin, now)).exp2();
        let all = self.observations.len();
        let [successes, failures] = [0, 1].map(|side| {
            let past = (self.sums[to].scaled[side] - self.sums[from].scaled[side]) * now_scale;
            let future = self.sums[all].plain[side] - self.sums[to].plain[side];
            Runs::clamped((past + future).max(0.0)).unwrap_or(Runs::MOST)
        });
        Evidence {
            successes,
            failures,
        }
    }

    fn rebuild(&mut self, now: Timestamp) {
        self.origin = now;
        self.observations.retain(|seen| !expired(seen, now));
        self.observations.sort_by_key(|seen| seen.at);
        // Room for a quarter more before the next walk, or a full ledger would be walked on every record.
        let over = self.observations.len().saturating_sub(MOST_OBSERVATIONS);
        if over > 0 {
            self.observations.drain(..over + MOST_OBSERVATIONS / 4);
        }
        self.sums = vec![Sums::default()];
        for at in 0..self.observations.len() {
            self.add_to_sums(self.observations[at]);
        }
    }

    fn add_to_sums(&mut self, observation: Observation) {
        let mut sums = self.sums.last().copied().unwrap_or_default();
        let side = match observation.counts {
            Counts::Success => 0,
            Counts::Failure => 1,
        };
        let weight = observation.weight.get();
        sums.scaled[side] += weight * half_lives(self.origin, observation.at).exp2();
        sums.plain[side] += weight;
        self.sums.push(sums);
    }
}

fn expired(observation: &Observation, now: Timestamp) -> bool {
    now.duration_since(observation.at) > SignedDuration::from_hours(24 * KEPT_DAYS)
}

fn half_lives(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from).as_secs_f64() / HALF_LIFE_SECONDS).clamp(-WIDEST, WIDEST)
}
