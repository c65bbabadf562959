//! Whether a row fits the questions in force (routing.md 1.3).

use decision::contract::Digest;
use decision::labels::{LabelProblems, Labels};
use decision::vocabulary::Tier;
use decision::{Contract, json};
use jiff::Timestamp;

use super::origin::Source;
use super::row::Row;
use crate::memory::{LearnedTask, Standing};

/// Digests of the questions in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Without wording: what rows are compared with.
    pub shape: Digest,
    /// With wording.
    pub contract: Digest,
}

impl InForce {
    /// The digests of a contract.
    #[must_use]
    pub fn of(contract: &Contract) -> Self {
        Self {
            shape: contract.shape_digest().clone(),
            contract: contract.digest().clone(),
        }
    }
}

/// Whether a row may be used under the questions in force (routing.md 1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowStanding {
    /// All 18 labels are valid.
    InForce(Labels),
    /// A `harness` row: the tier alone is known.
    TierOnly(Tier),
    /// Kept and listed, never used.
    Stale(StaleReason),
}

impl RowStanding {
    /// Whether the row is kept without being used.
    #[must_use]
    pub const fn is_stale(&self) -> bool {
        matches!(self, Self::Stale(_))
    }
}

/// Why a row is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StaleReason {
    /// It was labelled under other questions.
    #[error("labelled under the questions {shape}")]
    OtherShape {
        /// As the row has it.
        shape: String,
    },
    /// Its labels do not fit.
    #[error(transparent)]
    Labels(LabelProblems),
}

impl Row {
    /// Reads the labels: all 18, and nothing else.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn labels(&self) -> Result<Labels, LabelProblems> {
        let labels = self.expected().iter();
        let labels = labels.map(|(id, value)| (id.to_string_lossy(), plain(value)));
        Labels::from_json(&serde_json::Value::Object(labels.collect()))
    }

    /// Whether the row may be used under the questions in force.
    #[must_use]
    pub fn standing(&self, in_force: &InForce) -> RowStanding {
        if let Some(shape) = self.shape().filter(|shape| !is_shape(shape, in_force)) {
            let shape = shape.to_owned();
            return RowStanding::Stale(StaleReason::OtherShape { shape });
        }
        if let Some(tier) = self.only_tier() {
            return RowStanding::TierOnly(tier);
        }
        match self.labels() {
            Ok(labels) => RowStanding::InForce(labels),
            Err(problems) => RowStanding::Stale(StaleReason::Labels(problems)),
        }
    }

    /// The tier of a `harness` row that has no other label.
    fn only_tier(&self) -> Option<Tier> {
        let expected = self.expected();
        let only = *self.source() == Source::Harness && expected.len() == 1;
        let tier = expected
            .get("capability_tier")
            .and_then(json::Value::as_str);
        tier.filter(|_| only)?.parse().ok()
    }

    /// The row as memory has it; none for a row that was not taught in a session.
    #[must_use]
    pub fn learned(&self, in_force: &InForce) -> Option<LearnedTask<Labels>> {
        if !self.is_session() {
            return None;
        }
        let standing = match self.standing(in_force) {
            RowStanding::InForce(labels) => Standing::InForce {
                tier: labels.capability_tier,
                effort: labels.reasoning_effort,
                labels,
            },
            RowStanding::TierOnly(_) | RowStanding::Stale(_) => Standing::Stale,
        };
        Some(LearnedTask {
            id: self.id().to_owned(),
            request: self.request().to_owned(),
            lesson: self.lesson().map(str::to_owned),
            created: self.created().unwrap_or(Timestamp::UNIX_EPOCH),
            standing,
        })
    }
}

/// Whether a row's text of a digest is the shape in force; compared without writing the latter out.
fn is_shape(text: &str, in_force: &InForce) -> bool {
    text.parse::<Digest>()
        .is_ok_and(|shape| shape == in_force.shape)
}

/// A label as the reader of labels takes it. Labels are words, numbers and truths; anything else goes through its text,
/// and what even that cannot say (`NaN`) is no label either way.
fn plain(value: &json::Value) -> serde_json::Value {
    match value {
        json::Value::Bool(truth) => (*truth).into(),
        json::Value::String(word) => word.to_string_lossy().into(),
        json::Value::Integer(level) if level.as_i64().is_some() => level.as_i64().into(),
        other => serde_json::from_str(&json::write(other)).unwrap_or_default(),
    }
}
