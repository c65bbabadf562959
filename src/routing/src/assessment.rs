//! What a request is believed to need: the answers of a source turned into typed facts (routing.md 2). Types only;
//! `answers` and `derive` make them.

use std::collections::BTreeMap;

use decision::vocabulary::{Agent, Effort, QuestionId, Scope, TaskType, Tier, Validation};
use serde::{Deserialize, Serialize};

/// Comparisons of probabilities use this tolerance: `x ≥ y` means `x ≥ y − TOLERANCE`.
pub const TOLERANCE: f64 = 1e-9;

/// Where an assessment came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A learned task that is close enough.
    Memory,
    /// The decision model.
    Model,
    /// The keyword rules.
    Rules,
}

impl Source {
    /// Every source, in the order they are asked.
    pub const ALL: &'static [Self] = &[Self::Memory, Self::Model, Self::Rules];

    /// The word used in JSON and in metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Model => "model",
            Self::Rules => "rules",
        }
    }
}

/// What the task is. The four numbers lie in 0..=1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// What is wanted now.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// How much of the codebase it touches.
    pub scope: Scope,
    /// How much has to be got right; level / 4.
    pub complexity: f64,
    /// The worst credible result; level / 3.
    pub risk: f64,
    /// How much is left open; level / 2.
    pub ambiguity: f64,
    /// How much thinking it needs; level / 4.
    pub reasoning: f64,
}

/// What the source itself would choose, before policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// Capability.
    pub tier: Tier,
    /// Thinking.
    pub effort: Effort,
}

/// Which kinds of tools the task needs (`requires_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolNeeds {
    /// Files are created or changed.
    pub requires_write: bool,
    /// Commands other than tests, builds and git.
    pub requires_shell: bool,
    /// A test run, type check or build.
    pub requires_tests: bool,
    /// Facts from outside.
    pub requires_web: bool,
    /// Something must be seen or clicked.
    pub requires_browser: bool,
    /// A database is queried or changed.
    pub requires_database: bool,
    /// Commits, branches, history.
    pub requires_git: bool,
}

impl ToolNeeds {
    /// Each need with the noun people read for it (routing.md 15), in contract order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, bool); 7] {
        [
            ("file edits", self.requires_write),
            ("shell", self.requires_shell),
            ("tests", self.requires_tests),
            ("web", self.requires_web),
            ("browser", self.requires_browser),
            ("database", self.requires_database),
            ("git", self.requires_git),
        ]
    }
}

/// Typed facts about one request, with confidences and where they came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Assessment {
    /// Who answered.
    pub source: Source,
    /// What the task is.
    pub task: Task,
    /// What the source would choose.
    pub recommendation: Recommendation,
    /// Role.
    pub agent: Agent,
    /// Weakest sufficient check.
    pub validation: Validation,
    /// Tools.
    pub tools: ToolNeeds,
    /// Whether a security boundary, secrets, payments or production data are changed or judged.
    pub security_sensitive: bool,
    /// 0..=1, over the three answers that choose the model.
    pub confidence: f64,
    /// 0..=1 per question.
    pub confidences: BTreeMap<QuestionId, f64>,
}

impl Assessment {
    /// The same confidence for all 18 questions, as memory and rules have it.
    #[must_use]
    pub fn uniform_confidences(confidence: f64) -> BTreeMap<QuestionId, f64> {
        QuestionId::ALL.iter().map(|id| (*id, confidence)).collect()
    }
}
