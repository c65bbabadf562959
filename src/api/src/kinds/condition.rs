//! A condition as every kind has them (control-plane 1.3): the shape of `meta/v1`, with our bounds.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest message, in characters.
pub const MAX_MESSAGE: usize = 1024;
/// Most conditions of one object.
pub const MAX_CONDITIONS: usize = 16;

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows now, or a newer program wrote a word that this one does not know.
    #[serde(other)]
    Unknown,
}

impl ConditionStatus {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One observation about the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed, for example Ready.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z]+$"))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When status changed last.
    pub last_transition_time: Timestamp,
    /// Why, in one word.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z]+$"))]
    pub reason: String,
    /// Why, for people; the last sentence says what to do.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub message: String,
}
