//! From the wanted effort to the thinking level a model is given (routing.md 6.6). Knows which efforts there are and
//! which a model supports, not why one is wanted.

use decision::vocabulary::Effort;
use serde::{Deserialize, Serialize};

/// The efforts a model supports; never empty. `max` is no effort of ours and cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Vec<Effort>", into = "Vec<Effort>")]
#[cfg_attr(feature = "schema", schemars(extend("minItems" = 1, "uniqueItems" = true)))]
pub struct EffortSet(u8);

/// A list of supported efforts without an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a model must support at least one effort")]
pub struct NoEffort;

impl EffortSet {
    /// All five, the default of an entry that names none.
    pub const ALL: Self = Self((1 << Effort::ALL.len()) - 1);

    /// The efforts of a list; order and repetition do not matter.
    ///
    /// # Errors
    /// When the list is empty.
    pub fn new(efforts: &[Effort]) -> Result<Self, NoEffort> {
        match efforts
            .iter()
            .fold(0, |set, effort| set | 1 << effort.index())
        {
            0 => Err(NoEffort),
            set => Ok(Self(set)),
        }
    }

    /// Whether the model supports it.
    #[must_use]
    pub const fn contains(self, effort: Effort) -> bool {
        self.0 & (1 << effort.index()) != 0
    }

    /// The supported efforts, least first.
    #[must_use]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Effort> {
        Effort::ALL
            .iter()
            .copied()
            .filter(move |effort| self.contains(*effort))
    }

    /// The highest supported effort not above the wanted one, else the lowest supported.
    #[must_use]
    pub fn clamp(self, wanted: Effort) -> Effort {
        let not_above = self.iter().rev().find(|effort| *effort <= wanted);
        not_above.or_else(|| self.iter().next()).unwrap_or(wanted)
    }

    /// The highest supported effort.
    #[must_use]
    pub fn highest(self) -> Effort {
        self.clamp(Effort::ExtraHigh)
    }
}

impl Default for EffortSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl TryFrom<Vec<Effort>> for EffortSet {
    type Error = NoEffort;

    fn try_from(efforts: Vec<Effort>) -> Result<Self, NoEffort> {
        Self::new(&efforts)
    }
}

impl From<EffortSet> for Vec<Effort> {
    fn from(set: EffortSet) -> Self {
        set.iter().collect()
    }
}

/// What a model is told to think, and whether that is less or more than was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinking {
    /// The effort in force, one the model supports.
    pub effort: Effort,
    /// Its word for clients: `minimal`, `low`, `medium`, `high` or `xhigh`.
    pub level: &'static str,
    /// The model does not support what was wanted.
    pub effort_clamped: bool,
}

/// The thinking level for a wanted effort on a model (routing.md 6.6).
#[must_use]
pub fn thinking(wanted: Effort, supported: EffortSet) -> Thinking {
    let effort = supported.clamp(wanted);
    Thinking {
        effort,
        level: effort.thinking_level(),
        effort_clamped: effort != wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_to_the_highest_supported_level_not_above_the_wanted_one() {
        use Effort::{ExtraHigh, High, Low, Medium, Minimal};
        for (name, wanted, supported, effort, level, clamped) in [
            (
                "supported",
                Medium,
                &[Low, Medium, High][..],
                Medium,
                "medium",
                false,
            ),
            (
                "next below",
                ExtraHigh,
                &[Low, Medium, High],
                High,
                "high",
                true,
            ),
            ("gap", High, &[Minimal, ExtraHigh], Minimal, "minimal", true),
            (
                "all above",
                Minimal,
                &[High, Medium],
                Medium,
                "medium",
                true,
            ),
            (
                "extra high has its own word",
                ExtraHigh,
                &[ExtraHigh],
                ExtraHigh,
                "xhigh",
                false,
            ),
        ] {
            let set = EffortSet::new(supported).unwrap();
            assert_eq!(
                thinking(wanted, set),
                Thinking {
                    effort,
                    level,
                    effort_clamped: clamped
                },
                "{name}"
            );
        }
    }

    #[test]
    fn is_never_empty_and_reads_as_a_list() {
        assert_eq!(EffortSet::new(&[]), Err(NoEffort));
        assert!(serde_json::from_str::<EffortSet>("[]").is_err());
        assert!(serde_json::from_str::<EffortSet>(r#"["max"]"#).is_err());
        let set: EffortSet = serde_json::from_str(r#"["high","low","high"]"#).unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"["low","high"]"#);
        assert_eq!(EffortSet::ALL.iter().collect::<Vec<_>>(), Effort::ALL);
    }
}
