//! The route test: which of the learned tasks that are close enough answers for a request (routing.md 14).

use std::cmp::Ordering;

use decision::vocabulary::{Effort, Tier};
use serde::{Deserialize, Serialize};

use super::LearnedTask;
use crate::assessment::TOLERANCE;

/// Matches this far below the best one still count as equally close: among them doubt never lowers a tier.
const NEAREST_WITHIN: f64 = 0.05;

/// Why a task that is close enough did not route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Exactly one of the two texts has a negation word.
    Negation,
    /// Its labels do not fit the questions in force.
    Stale,
}

impl Guard {
    /// Every guard.
    pub const ALL: &'static [Self] = &[Self::Negation, Self::Stale];

    /// The word used in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Negation => "negation",
            Self::Stale => "stale",
        }
    }
}

/// A task that a guard kept from routing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Id of the task.
    pub task: String,
    /// How close it is, 0..=1.
    pub similarity: f64,
    /// Which guard.
    pub guard: Guard,
}

/// A learned task whose labels may answer for the request.
#[derive(Debug)]
pub struct RouteMatch<'a, L> {
    /// The task.
    pub task: &'a LearnedTask<L>,
    /// How close it is, 0..=1. It becomes the confidence of the assessment.
    pub similarity: f64,
    /// Its `capability_tier`.
    pub tier: Tier,
    /// Its `reasoning_effort`.
    pub effort: Effort,
    /// What was attached to it.
    pub labels: &'a L,
}

/// The match whose labels answer: among those within 0.05 of the best, the highest tier, then effort, similarity,
/// newest, id.
#[must_use]
pub fn choose<L>(mut matches: Vec<RouteMatch<'_, L>>) -> Option<RouteMatch<'_, L>> {
    let best = matches
        .iter()
        .map(|found| found.similarity)
        .max_by(f64::total_cmp)?;
    matches.retain(|found| found.similarity >= best - NEAREST_WITHIN - TOLERANCE);
    matches.into_iter().max_by(precedence)
}

fn precedence<L>(one: &RouteMatch<'_, L>, other: &RouteMatch<'_, L>) -> Ordering {
    (one.tier, one.effort)
        .cmp(&(other.tier, other.effort))
        .then_with(|| one.similarity.total_cmp(&other.similarity))
        .then_with(|| newness(one.task, other.task))
}

/// Orders tasks by time, then by id, so that the result never depends on the order of rows.
pub(super) fn newness<L>(one: &LearnedTask<L>, other: &LearnedTask<L>) -> Ordering {
    one.created
        .cmp(&other.created)
        .then_with(|| one.id.cmp(&other.id))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::Standing;
    use super::*;

    fn task(id: &str, tier: Tier, effort: Effort, second: i64) -> LearnedTask<()> {
        LearnedTask {
            id: id.to_owned(),
            request: "Fix the date parser".to_owned(),
            lesson: None,
            created: Timestamp::from_second(second).unwrap(),
            standing: Standing::InForce {
                tier,
                effort,
                labels: (),
            },
        }
    }

    #[test]
    fn doubt_never_lowers_a_tier() {
        use Effort::{Low, Medium};
        use Tier::{Fast, Strong};
        type Row = (
            &'static str,
            &'static [(&'static str, f64, Tier, Effort, i64)],
            &'static str,
        );
        let rows: &[Row] = &[
            (
                "23.7: within 0.05 the stronger",
                &[("a", 0.71, Fast, Low, 1), ("b", 0.68, Strong, Low, 1)],
                "b",
            ),
            (
                "23.7: farther away the closer",
                &[("a", 0.71, Fast, Low, 1), ("b", 0.65, Strong, Low, 1)],
                "a",
            ),
            (
                "exactly 0.05 is within",
                &[("a", 0.71, Fast, Low, 1), ("b", 0.66, Strong, Low, 1)],
                "b",
            ),
            (
                "then effort",
                &[("a", 0.71, Fast, Low, 1), ("b", 0.70, Fast, Medium, 1)],
                "b",
            ),
            (
                "then similarity",
                &[("a", 0.70, Fast, Low, 9), ("b", 0.71, Fast, Low, 1)],
                "b",
            ),
            (
                "then newest",
                &[("b", 0.70, Fast, Low, 2), ("a", 0.70, Fast, Low, 1)],
                "b",
            ),
            (
                "then id",
                &[
                    ("s00002", 0.70, Fast, Low, 1),
                    ("s00001", 0.70, Fast, Low, 1),
                ],
                "s00002",
            ),
        ];
        for (name, matches, expected) in rows {
            let tasks: Vec<_> = matches
                .iter()
                .map(|(id, similarity, tier, effort, at)| {
                    (task(id, *tier, *effort, *at), *similarity, *tier, *effort)
                })
                .collect();
            let chosen = choose(
                tasks
                    .iter()
                    .map(|(task, similarity, tier, effort)| RouteMatch {
                        task,
                        similarity: *similarity,
                        tier: *tier,
                        effort: *effort,
                        labels: &(),
                    })
                    .collect(),
            );
            assert_eq!(chosen.unwrap().task.id, *expected, "{name}");
        }
        assert!(choose::<()>(Vec::new()).is_none());
    }
}
