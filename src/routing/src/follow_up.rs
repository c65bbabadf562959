//! Whether a message goes on with the task before it, and what it takes over from it (routing.md 13). Looks at facts
//! about the text, which the keyword lists fill in, and never at the lists.

use decision::vocabulary::{Effort, QuestionId, Tier};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::assessment::{Assessment, Recommendation, Task, ToolNeeds};
use crate::bounded::{Ratio, Score};
use crate::escalation;
use crate::text;

/// A conversation older than this is no context.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(6);
/// An amendment follows within this time.
const AMENDED_WITHIN: SignedDuration = SignedDuration::from_mins(30);
/// Longest continuation, in words.
const CONTINUATION_WORDS: usize = 12;
/// Longest correction, in words.
const CORRECTION_WORDS: usize = 40;
/// Longest amendment without an adding word, in content words.
const AMENDMENT_WORDS: usize = 4;
/// Longest amendment with one.
const ADDED_WORDS: usize = 8;
/// What is kept of "previous ⏎ new", in UTF-16 units.
const COMBINED_UNITS: usize = 2000;
/// Failures a correction adds to the task.
pub const CORRECTION_FAILURES: Score = Score::constant(1.5);
/// A provider keeps a conversation in its cache this long after its last use.
const CACHED_FOR: SignedDuration = SignedDuration::from_secs(300);
/// This many cached tokens or more have the full switching price.
const FULL_PRICE_TOKENS: f64 = 200_000.0;

/// What the keyword lists say about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextFacts {
    /// The whole text is greeting or thanks (`mark.chat`).
    pub is_chat: bool,
    /// The whole text is go-on words (`follow.go_on`, at least one) and stop words.
    pub only_go_on_words: bool,
    /// Words.
    pub word_count: usize,
    /// Words of two characters or more outside the stop list.
    pub content_words: usize,
    /// Has a correction mark (`follow.wrong`).
    pub correction_mark: bool,
    /// Starts with an adding word (`follow.add`).
    pub adding_word: bool,
}

/// How a message relates to the last decision of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FollowUp {
    /// Thanks; nothing to do.
    Acknowledgement,
    /// Go on.
    Continuation,
    /// It was wrong.
    Correction,
    /// The same task with something more.
    Amendment,
    /// Something else.
    New,
}

impl FollowUp {
    /// Every kind, in the order they are tried.
    pub const ALL: &'static [Self] = &[
        Self::Acknowledgement,
        Self::Continuation,
        Self::Correction,
        Self::Amendment,
        Self::New,
    ];

    /// The word used in JSON and in metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgement => "acknowledgement",
            Self::Continuation => "continuation",
            Self::Correction => "correction",
            Self::Amendment => "amendment",
            Self::New => "new",
        }
    }
}

/// The kind of a message; `previous_age` is the age of the conversation's last decision, if there is one.
#[must_use]
pub fn classify(facts: &TextFacts, previous_age: Option<SignedDuration>) -> FollowUp {
    let Some(age) = previous_age.filter(|age| *age <= REMEMBERED) else {
        return FollowUp::New;
    };
    let few = match facts.adding_word {
        true => ADDED_WORDS,
        false => AMENDMENT_WORDS,
    };
    if facts.is_chat {
        FollowUp::Acknowledgement
    } else if facts.only_go_on_words && facts.word_count <= CONTINUATION_WORDS {
        FollowUp::Continuation
    } else if facts.correction_mark && facts.word_count <= CORRECTION_WORDS {
        FollowUp::Correction
    } else if age <= AMENDED_WITHIN && facts.content_words <= few {
        FollowUp::Amendment
    } else {
        FollowUp::New
    }
}

/// What the decision before was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    /// Tier of its task now, escalations included.
    pub tier: Tier,
    /// Effort of its task now, escalations included.
    pub effort: Effort,
    /// Tier its assessment required, without escalations.
    pub required_tier: Tier,
    /// Effort its assessment required, without escalations.
    pub required_effort: Effort,
}

/// What becomes of a message and the task before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// The current model answers with this effort; nothing is recorded.
    Answer {
        /// Minimal.
        effort: Effort,
    },
    /// The task goes on as it was: assessment, tier, effort and model; no classification. A model that is gone is
    /// selected again at this tier.
    GoOn {
        /// Of the task.
        tier: Tier,
        /// Of the task.
        effort: Effort,
    },
    /// The task goes on, the earlier attempt was corrected.
    Repair {
        /// The tier now in force.
        min_tier: Tier,
        /// One more, up to high.
        effort: Effort,
        /// Added to the task's failures.
        failures: Score,
    },
    /// Assess the combined text; the result may not fall below these.
    Extend {
        /// Least required tier.
        tier: Tier,
        /// Least effort.
        effort: Effort,
    },
    /// Assess afresh.
    Fresh,
}

/// What a kind of message does, given the decision before it.
#[must_use]
pub fn effect(kind: FollowUp, previous: &Previous) -> Effect {
    match kind {
        FollowUp::Acknowledgement => Effect::Answer {
            effort: Effort::Minimal,
        },
        FollowUp::Continuation => Effect::GoOn {
            tier: previous.tier,
            effort: previous.effort,
        },
        FollowUp::Correction => Effect::Repair {
            min_tier: previous.tier,
            effort: escalation::raised(previous.effort),
            failures: CORRECTION_FAILURES,
        },
        FollowUp::Amendment => Effect::Extend {
            tier: previous.required_tier,
            effort: previous.required_effort,
        },
        FollowUp::New => Effect::Fresh,
    }
}

/// The text an amendment is assessed by: the previous request, a line break, the new one; the last 2000 units.
#[must_use]
pub fn combine(previous: &str, new: &str) -> String {
    let whole = format!("{previous}\n{new}");
    text::suffix(&whole, COMBINED_UNITS).to_owned()
}

/// Per field the higher of two assessments, for amendments whose previous text was not kept. What has no order (type,
/// agent) comes from the one that recommends more, and from the previous one if they recommend the same, as the task is
/// the previous one.
#[must_use]
pub fn higher_of(previous: &Assessment, new: &Assessment) -> Assessment {
    let weight = |assessment: &Assessment| {
        (
            assessment.recommendation.tier,
            assessment.recommendation.effort,
        )
    };
    let lead = if weight(new) > weight(previous) {
        new
    } else {
        previous
    };
    let confidence = |id: &QuestionId| {
        let of = |assessment: &Assessment| assessment.confidences.get(id).copied().unwrap_or(0.0);
        (*id, of(previous).max(of(new)))
    };
    let (a, b) = (&previous.task, &new.task);
    Assessment {
        source: new.source,
        task: Task {
            task_type: lead.task.task_type,
            scope: a.scope.max(b.scope),
            complexity: a.complexity.max(b.complexity),
            risk: a.risk.max(b.risk),
            ambiguity: a.ambiguity.max(b.ambiguity),
            reasoning: a.reasoning.max(b.reasoning),
        },
        recommendation: Recommendation {
            tier: previous.recommendation.tier.max(new.recommendation.tier),
            effort: previous
                .recommendation
                .effort
                .max(new.recommendation.effort),
        },
        agent: lead.agent,
        validation: previous.validation.max(new.validation),
        tools: either(previous.tools, new.tools),
        security_sensitive: previous.security_sensitive || new.security_sensitive,
        confidence: previous.confidence.max(new.confidence),
        confidences: QuestionId::ALL.iter().map(confidence).collect(),
    }
}

fn either(a: ToolNeeds, b: ToolNeeds) -> ToolNeeds {
    ToolNeeds {
        requires_write: a.requires_write || b.requires_write,
        requires_shell: a.requires_shell || b.requires_shell,
        requires_tests: a.requires_tests || b.requires_tests,
        requires_web: a.requires_web || b.requires_web,
        requires_browser: a.requires_browser || b.requires_browser,
        requires_database: a.requires_database || b.requires_database,
        requires_git: a.requires_git || b.requires_git,
    }
}

/// What leaving the current model costs: cached tokens / 200 000, at most 1, if its last use was less than 300 s ago.
#[must_use]
pub fn switch_price(cached_tokens: u64, last_used: Timestamp, now: Timestamp) -> Ratio {
    if now.duration_since(last_used) >= CACHED_FOR {
        return Ratio::ZERO;
    }
    Ratio::clamped(cached_tokens as f64 / FULL_PRICE_TOKENS).unwrap_or(Ratio::ONE)
}

#[cfg(test)]
mod tests;
