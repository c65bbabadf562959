//! Bounded exploration: now and then another model of the winner's tier, so that one that failed or was never tried can
//! prove itself before its history decays (routing.md 11). Never weaker than required, never where it could hurt.

use decision::vocabulary::Tier;
use jiff::{SignedDuration, Timestamp};

use super::{Scored, Selection};
use crate::assessment::TOLERANCE;
use crate::bounded::Ratio;
use crate::history::EARNED_RUNS;

/// Tasks of this risk or more are no place to explore.
const MOST_RISK: f64 = 0.66;
/// Least availability of the explored model's provider.
const LEAST_AVAILABILITY: f64 = 0.5;
/// One exploration of a class in this time.
const PAUSE: SignedDuration = SignedDuration::from_hours(24);

/// What exploration looks at besides the ranking.
#[derive(Debug, Clone, Copy)]
pub struct ExplorationInput {
    /// Share of decisions that may explore; 0 is off.
    pub rate: Ratio,
    /// Uniform random number, 0 ≤ draw < 1.
    pub draw: Ratio,
    /// Tier required by policy.
    pub required_tier: Tier,
    /// Floor of the task; strong or above means sensitive.
    pub min_tier: Tier,
    /// Risk of the task.
    pub task_risk: Ratio,
    /// The user chose a model, tier or effort.
    pub explicit: bool,
    /// Neither a follow-up of a task nor a move within one.
    pub new_task: bool,
    /// The decision will be stored.
    pub stored: bool,
    /// When this class was explored last.
    pub last_explored: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// Why nothing was explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotExplored {
    /// The draw fell elsewhere, as it mostly does.
    Draw,
    /// The user chose.
    Explicit,
    /// The middle of a task.
    SameTask,
    /// The decision is not stored, so nothing would be learned.
    NotStored,
    /// Sensitive work.
    Sensitive,
    /// Too risky.
    Risk,
    /// The class was explored within 24 hours.
    Recently,
    /// The winner is weaker than required, and so would be its equals.
    BelowRequired,
    /// No other model of the tier is excluded or little known, and available.
    Nobody,
}

/// The position in the ranking of the model to try instead of the winner.
///
/// # Errors
/// The first reason not to.
pub fn explore(selection: &Selection, input: &ExplorationInput) -> Result<usize, NotExplored> {
    let recent = |last: Timestamp| input.now.duration_since(last) < PAUSE;
    let bars = [
        (input.draw >= input.rate, NotExplored::Draw),
        (input.explicit, NotExplored::Explicit),
        (!input.new_task, NotExplored::SameTask),
        (!input.stored, NotExplored::NotStored),
        (input.min_tier >= Tier::Strong, NotExplored::Sensitive),
        (
            input.task_risk.get() >= MOST_RISK - TOLERANCE,
            NotExplored::Risk,
        ),
        (
            input.last_explored.is_some_and(recent),
            NotExplored::Recently,
        ),
    ];
    if let Some((_, bar)) = bars.iter().find(|(applies, _)| *applies) {
        return Err(*bar);
    }
    let winner = selection.winner().ok_or(NotExplored::Nobody)?;
    let tier = winner.candidate.tier;
    if tier < input.required_tier {
        return Err(NotExplored::BelowRequired);
    }
    let open = |scored: &Scored| {
        scored.candidate.tier == tier
            && scored.candidate.model != winner.candidate.model
            && scored.availability.get() >= LEAST_AVAILABILITY - TOLERANCE
            && (scored.excluded || scored.runs.get() < EARNED_RUNS - TOLERANCE)
    };
    let ranked = || {
        selection
            .ranked
            .iter()
            .enumerate()
            .filter(|(_, scored)| open(scored))
    };
    // Below the rate the draw is uniform again: its place there picks, and one random number does.
    let place = input.draw.get() / input.rate.get();
    let count = ranked().count();
    let pick = ((place * count as f64) as usize).min(count.saturating_sub(1));
    ranked()
        .nth(pick)
        .map(|(at, _)| at)
        .ok_or(NotExplored::Nobody)
}
