//! Answers and labels turned into an assessment (routing.md 2). Total for answers to questions of our shape; anything
//! else is an error that names the question.

use std::str::FromStr;

use decision::vocabulary::QuestionId;
use decision::{Answer, Answers, Labels};

use crate::assessment::{Assessment, Recommendation, Source, Task, ToolNeeds};

/// From this probability on, a noul question is answered with yes.
const YES: f64 = 0.5;
/// The answers that choose a model; the least sure of them is the confidence of the whole.
const DECISIVE: [QuestionId; 3] = [
    QuestionId::TaskType,
    QuestionId::CapabilityTier,
    QuestionId::ReasoningEffort,
];

/// An answer that our questions do not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer to `{question}` is missing or not one of its options")]
pub struct ForeignAnswer {
    /// Which question.
    pub question: QuestionId,
}

/// The assessment that a decision model's answers stand for.
///
/// # Errors
/// The first question whose answer is missing or foreign.
pub fn from_answers(answers: &Answers) -> Result<Assessment, ForeignAnswer> {
    read(answers, Source::Model)
}

/// The assessment that labels stand for, each as sure as the other; `confidence` in 0..=1 is the similarity of a
/// learned task, or 1 for labels that came with the request.
#[must_use]
pub fn from_labels(labels: &Labels, source: Source, confidence: f64) -> Assessment {
    let fraction = |level: u8, levels: f64| f64::from(level) / levels;
    Assessment {
        source,
        task: Task {
            task_type: labels.task_type,
            scope: labels.scope,
            complexity: fraction(labels.complexity, 4.0),
            risk: fraction(labels.risk, 3.0),
            ambiguity: fraction(labels.ambiguity, 2.0),
            reasoning: fraction(labels.reasoning_requirement, 4.0),
        },
        recommendation: Recommendation {
            tier: labels.capability_tier,
            effort: labels.reasoning_effort,
        },
        agent: labels.agent,
        validation: labels.validation_level,
        tools: ToolNeeds {
            requires_write: labels.requires_write,
            requires_shell: labels.requires_shell,
            requires_tests: labels.requires_tests,
            requires_web: labels.requires_web,
            requires_browser: labels.requires_browser,
            requires_database: labels.requires_database,
            requires_git: labels.requires_git,
        },
        security_sensitive: labels.security_sensitive,
        confidence,
        confidences: Assessment::uniform_confidences(confidence),
    }
}

fn read(answers: &Answers, source: Source) -> Result<Assessment, ForeignAnswer> {
    let get = |question: QuestionId| {
        answers
            .get(question.as_str())
            .ok_or(ForeignAnswer { question })
    };
    let score = |question| Ok(get(question)?.score_fraction());
    let yes = |question| match get(question)? {
        Answer::Noul { noul, .. } => Ok(*noul >= YES - crate::assessment::TOLERANCE),
        _ => Err(ForeignAnswer { question }),
    };
    let mut confidences = std::collections::BTreeMap::new();
    for question in QuestionId::ALL {
        confidences.insert(*question, get(*question)?.answer_probability());
    }
    let confidence = DECISIVE
        .iter()
        .map(|question| confidences[question])
        .fold(1.0, f64::min);
    Ok(Assessment {
        source,
        task: Task {
            task_type: choice(answers, QuestionId::TaskType)?,
            scope: choice(answers, QuestionId::Scope)?,
            complexity: score(QuestionId::Complexity)?,
            risk: score(QuestionId::Risk)?,
            ambiguity: score(QuestionId::Ambiguity)?,
            reasoning: score(QuestionId::ReasoningRequirement)?,
        },
        recommendation: Recommendation {
            tier: choice(answers, QuestionId::CapabilityTier)?,
            effort: choice(answers, QuestionId::ReasoningEffort)?,
        },
        agent: choice(answers, QuestionId::Agent)?,
        validation: choice(answers, QuestionId::ValidationLevel)?,
        tools: ToolNeeds {
            requires_write: yes(QuestionId::RequiresWrite)?,
            requires_shell: yes(QuestionId::RequiresShell)?,
            requires_tests: yes(QuestionId::RequiresTests)?,
            requires_web: yes(QuestionId::RequiresWeb)?,
            requires_browser: yes(QuestionId::RequiresBrowser)?,
            requires_database: yes(QuestionId::RequiresDatabase)?,
            requires_git: yes(QuestionId::RequiresGit)?,
        },
        security_sensitive: yes(QuestionId::SecuritySensitive)?,
        confidence,
        confidences,
    })
}

fn choice<T: FromStr>(answers: &Answers, question: QuestionId) -> Result<T, ForeignAnswer> {
    let word = answers.get(question.as_str()).and_then(Answer::choice);
    word.and_then(|word| word.parse().ok())
        .ok_or(ForeignAnswer { question })
}
