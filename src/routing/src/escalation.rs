//! When a task that keeps failing moves to a stronger model, and where to (routing.md 12). Counts failures it is given;
//! recognising them is done elsewhere.

use decision::vocabulary::{Effort, Tier};
use serde::{Deserialize, Serialize};

use crate::assessment::TOLERANCE;
use crate::bounded::Score;
use crate::reason::Reason;

/// Same tool, arguments and error as the failure before.
const REPEATED: f64 = 1.5;
/// Most escalations of one task.
pub const MOST_ESCALATIONS: u32 = 5;
/// Highest effort that an escalation to another tier raises to.
const RAISED_TO: Effort = Effort::High;

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A command recognised as a check exited non-zero.
    CheckFailed,
    /// The harness asked for evidence.
    EvidenceRequest,
    /// An edit was rejected.
    EditRejected,
    /// Another command exited non-zero.
    CommandFailed,
    /// A tool refused its arguments.
    InvalidArguments,
    /// Another tool error.
    Other,
    /// A search without hits, a file or URL that is not there.
    LookupMiss,
    /// The user did not allow it.
    Denied,
    /// Cancelled.
    Cancelled,
    /// The provider's fault.
    ProviderError,
    /// The tool is not there.
    ToolUnavailable,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::CheckFailed,
        Self::EvidenceRequest,
        Self::EditRejected,
        Self::CommandFailed,
        Self::InvalidArguments,
        Self::Other,
        Self::LookupMiss,
        Self::Denied,
        Self::Cancelled,
        Self::ProviderError,
        Self::ToolUnavailable,
    ];

    /// What one of it adds to the sum (routing.md 12).
    #[must_use]
    pub const fn weight(self) -> f64 {
        match self {
            Self::CheckFailed | Self::EvidenceRequest | Self::EditRejected => 1.0,
            Self::CommandFailed | Self::InvalidArguments | Self::Other => 0.5,
            Self::LookupMiss => 0.25,
            Self::Denied | Self::Cancelled | Self::ProviderError | Self::ToolUnavailable => 0.0,
        }
    }

    const fn is_check(self) -> bool {
        matches!(self, Self::CheckFailed | Self::EvidenceRequest)
    }
}

/// One failure since the last real user message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What.
    pub kind: FailureKind,
    /// In which tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Stands for arguments and error; without one, no failure is taken for a repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Failure {
    fn repeats(&self, before: &Self) -> bool {
        self.signature.is_some() && self == before
    }
}

/// The sum of failures and what it calls for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// Sum of weights since the last user message, with what a correction carried over.
    pub score: Score,
    /// Why to escalate, if it is time to.
    pub escalate: Option<Reason>,
}

/// Adds up failures.
///
/// `carried` is what a correction brought along, `at_last_escalation` the score of the last escalation (0 before the
/// first), `threshold` the setting `laya.escalateAfterFailures` (0 is off).
#[must_use]
pub fn tally(
    failures: &[Failure],
    carried: Score,
    at_last_escalation: Score,
    threshold: u32,
) -> Tally {
    let (mut score, mut check_in_new_part) = (carried.get(), false);
    let last = at_last_escalation.get();
    let mut before = None;
    for failure in failures {
        let repeated = before.is_some_and(|before| failure.repeats(before));
        score += failure.kind.weight() * if repeated { REPEATED } else { 1.0 };
        check_in_new_part |= failure.kind.is_check() && score > last + TOLERANCE;
        before = Some(failure);
    }
    let due = threshold > 0 && score - last >= f64::from(threshold) - TOLERANCE;
    let reason = if check_in_new_part {
        Reason::TestFailure
    } else {
        Reason::RepeatedFailure
    };
    Tally {
        score: Score::clamped(score).unwrap_or(Score::MOST),
        escalate: due.then_some(reason),
    }
}

/// Where a task stands when it has to move up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Tier of the current model.
    pub tier: Tier,
    /// Effort in force.
    pub effort: Effort,
    /// Highest effort the current model supports.
    pub highest_effort: Effort,
    /// Strongest tier among the candidates.
    pub strongest: Tier,
    /// Escalations of the task so far.
    pub escalations: u32,
}

/// What an escalation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Decide again with this as required and minimum tier.
    Up {
        /// The next tier.
        tier: Tier,
        /// One more, up to high; never lowered.
        effort: Effort,
    },
    /// The same model thinks longer.
    ThinkMore {
        /// One more.
        effort: Effort,
    },
    /// There is nothing above: stay, and the user is asked.
    Exhausted,
}

/// The next step up.
#[must_use]
pub fn next(standing: &Standing) -> Move {
    if standing.escalations >= MOST_ESCALATIONS {
        Move::Exhausted
    } else if standing.tier < standing.strongest {
        Move::Up {
            tier: standing.tier.up(),
            effort: raised(standing.effort),
        }
    } else if standing.effort < standing.highest_effort {
        Move::ThinkMore {
            effort: standing.effort.up(),
        }
    } else {
        Move::Exhausted
    }
}

/// One effort more, up to high; never lowered.
#[must_use]
pub fn raised(effort: Effort) -> Effort {
    effort.up().min(RAISED_TO).max(effort)
}

#[cfg(test)]
mod tests;
