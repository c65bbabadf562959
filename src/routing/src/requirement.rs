//! From an assessment to what a model must at least be (routing.md 6): floors, doubt, sensitivity. Pure arithmetic
//! over closed lists; which rules fired is decided elsewhere.

use decision::vocabulary::{Effort, TaskType, Tier, Validation};
use serde::{Deserialize, Serialize};

use crate::assessment::{Assessment, TOLERANCE};
use crate::reason::Reason;

/// Complexity from which an architecture task has a floor.
const ARCHITECTURE_COMPLEXITY: f64 = 0.75;
/// The tier, effort and validation of sensitive work.
const SENSITIVE: Floor = Floor {
    tier: Tier::Strong,
    effort: Effort::Medium,
    validation: Validation::Review,
};

/// What a rule demands at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// Capability.
    pub tier: Tier,
    /// Thinking.
    pub effort: Effort,
    /// Check.
    pub validation: Validation,
}

impl Floor {
    /// The floor of the built-in rules: strong, medium, review.
    pub const BUILT_IN: Self = SENSITIVE;
}

/// A rule that fired on the text of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredRule {
    /// Its id.
    pub id: String,
    /// Its own floor if the policy added it with one; the built-in rules have none of their own.
    pub own_floor: Option<Floor>,
}

/// Numbers of the policy that this step needs, in 0..=1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequirementThresholds {
    /// Confidence below this (strictly) asks for one tier more.
    pub min_confidence: f64,
    /// Risk from which the floor is strong.
    pub high_risk: f64,
}

/// How a result must be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidationRequirement {
    /// Whether it may not be left out.
    pub required: bool,
    /// The weakest check that counts.
    pub level: Validation,
}

/// A raise of the tier and why, as a decision lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Raise {
    /// Why.
    pub reason: Reason,
    /// Before.
    pub from: Tier,
    /// After.
    pub to: Tier,
}

/// What the model of a task must at least be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// What the assessment asked for.
    pub recommended_tier: Tier,
    /// What selection aims at.
    pub required_tier: Tier,
    /// Nothing below this is taken while anything at or above it exists.
    pub min_tier: Tier,
    /// How much thinking.
    pub effort: Effort,
    /// How the result is checked.
    pub validation: ValidationRequirement,
    /// Ids of the rules that fired, in order.
    pub rules: Vec<String>,
    /// Why the required tier lies above the recommended one; empty when it does not.
    pub notes: Vec<Reason>,
    /// The same, step by step.
    pub raises: Vec<Raise>,
    /// Whether the floor is strong or above.
    pub sensitive: bool,
}

/// Applies routing.md 6.1–6.5 to an assessment.
#[must_use]
pub fn require(
    assessment: &Assessment,
    fired: &[FiredRule],
    thresholds: RequirementThresholds,
) -> Requirement {
    let recommended = assessment.recommendation.tier;
    let (floor_tier, floor_note) = floor(assessment, fired, thresholds.high_risk);
    let own = fired.iter().filter_map(|rule| rule.own_floor);
    let min_tier = own
        .clone()
        .map(|floor| floor.tier)
        .fold(floor_tier, Tier::max);

    let mut raises = Vec::new();
    let mut required = recommended.max(min_tier);
    if let Some(reason) = floor_note
        && recommended < floor_tier
    {
        raises.push(Raise {
            reason,
            from: recommended,
            to: floor_tier,
        });
    }
    let doubtful = assessment.confidence < thresholds.min_confidence - TOLERANCE;
    if doubtful && required < Tier::Frontier {
        let from = required;
        required = required.up();
        raises.push(Raise {
            reason: Reason::InsufficientConfidence,
            from,
            to: required,
        });
    }
    // A floor that lifted nothing is still the reason for the sensitivity, so its note stays while the tier rose.
    let notes = if required > recommended {
        let doubt = (doubtful
            && raises
                .last()
                .is_some_and(|raise| raise.reason == Reason::InsufficientConfidence))
        .then_some(Reason::InsufficientConfidence);
        floor_note.into_iter().chain(doubt).collect()
    } else {
        Vec::new()
    };

    let sensitive = min_tier >= Tier::Strong;
    let mut effort = assessment.recommendation.effort;
    let mut level = assessment.validation;
    for floor in own.chain(sensitive.then_some(SENSITIVE)) {
        effort = effort.max(floor.effort);
        level = level.max(floor.validation);
    }
    Requirement {
        recommended_tier: recommended,
        required_tier: required,
        min_tier,
        effort,
        validation: ValidationRequirement {
            required: sensitive || level != Validation::None,
            level,
        },
        rules: fired.iter().map(|rule| rule.id.clone()).collect(),
        notes,
        raises,
        sensitive,
    }
}

/// The first floor that applies, without the floors of added rules.
fn floor(assessment: &Assessment, fired: &[FiredRule], high_risk: f64) -> (Tier, Option<Reason>) {
    let task = &assessment.task;
    let rule = fired.iter().any(|rule| rule.own_floor.is_none());
    if rule || assessment.security_sensitive || task.task_type == TaskType::Security {
        (Tier::Strong, Some(Reason::SecuritySensitive))
    } else if task.risk >= high_risk - TOLERANCE {
        (Tier::Strong, Some(Reason::HighRisk))
    } else if task.task_type == TaskType::Architecture
        && task.complexity >= ARCHITECTURE_COMPLEXITY - TOLERANCE
    {
        (Tier::Strong, Some(Reason::ArchitectureComplexity))
    } else {
        (Tier::Fast, None)
    }
}
