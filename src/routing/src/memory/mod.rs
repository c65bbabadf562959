//! Memory of learned tasks (routing.md 14): which earlier task a request is close to, whether its labels may answer
//! for the request, and which lessons are worth showing. Pure functions over rows that somebody else has loaded and
//! validated; it knows neither the store nor the contract, only what a row attaches to a task.

mod index;
mod merge_key;
mod route;
mod vector;
mod words;

pub use index::{Match, MemoryIndex, Recall, Thresholds};
pub use merge_key::merge_key;
pub use route::{Guard, RouteMatch, Skipped, choose};
pub use vector::{Vector, Weights, similarity};
pub use words::{folded_words, is_negated, words};

use decision::vocabulary::{Effort, Tier};
use jiff::Timestamp;

/// A task the user taught (a row with `source = "session"`), with whatever the caller needs back when it answers.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedTask<L> {
    /// Id of the row, for example `s00012`.
    pub id: String,
    /// The request as it was given.
    pub request: String,
    /// What the task taught, if anything. Blank counts as nothing.
    pub lesson: Option<String>,
    /// When it was labelled.
    pub created: Timestamp,
    /// Whether its labels may be used.
    pub standing: Standing<L>,
}

/// Whether the labels of a learned task fit the questions in force.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing<L> {
    /// They validate against the shape in force.
    InForce {
        /// Label of `capability_tier`.
        tier: Tier,
        /// Label of `reasoning_effort`.
        effort: Effort,
        /// What the caller attaches, for example the assessment made of all 18 labels.
        labels: L,
    },
    /// They do not: the row is kept and listed, and neither routes nor teaches.
    Stale,
}

impl<L> LearnedTask<L> {
    /// The lesson this task may show: the trimmed text of a task in force.
    #[must_use]
    pub fn usable_lesson(&self) -> Option<&str> {
        let lesson = self
            .lesson
            .as_deref()
            .map(str::trim)
            .filter(|lesson| !lesson.is_empty());
        match self.standing {
            Standing::InForce { .. } => lesson,
            Standing::Stale => None,
        }
    }
}
