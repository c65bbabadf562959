//! What earlier requests taught: evidence, quota, explorations. The caller takes a snapshot; nothing here waits.

use jiff::Timestamp;

use crate::bounded::Ratio;
use crate::estimate::Tokens;
use crate::history::{Evidence, HistoryKey};
use crate::registry::ModelRef;

/// A snapshot of what is known beyond the request. Answers must not change while one decision is made.
pub trait State {
    /// Availability of a provider, given what its plan was configured to (routing.md 10).
    fn availability(&self, provider: &str, configured: Ratio) -> Ratio;
    /// Decayed evidence of a model for a class of tasks (11).
    fn evidence(&self, class: HistoryKey, model: &ModelRef) -> Evidence;
    /// Tokens that tasks of the class took, if that is known (8).
    fn tokens(&self, class: HistoryKey) -> Option<Tokens>;
    /// When the class was last explored (11).
    fn last_explored(&self, class: HistoryKey) -> Option<Timestamp>;
    /// Whether decisions are stored; without a store nothing is explored.
    fn stores(&self) -> bool;
}

/// Nothing is known and nothing is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingKnown;

impl State for NothingKnown {
    fn availability(&self, _: &str, configured: Ratio) -> Ratio {
        configured
    }

    fn evidence(&self, _: HistoryKey, _: &ModelRef) -> Evidence {
        Evidence::NONE
    }

    fn tokens(&self, _: HistoryKey) -> Option<Tokens> {
        None
    }

    fn last_explored(&self, _: HistoryKey) -> Option<Timestamp> {
        None
    }

    fn stores(&self) -> bool {
        false
    }
}
