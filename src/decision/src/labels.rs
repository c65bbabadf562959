//! The 18 labels of one request (labels.md), as learned tasks, data sets and requests carry them: read strictly, with
//! every problem reported at once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answers::{Answer, Answers, Confidence};
use crate::contract::Criteria;
use crate::relay_contract::relay_contract;
use crate::vocabulary::{Agent, Effort, QuestionId, Scope, TaskType, Tier, Validation};

/// One value for each of the 18 questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Value")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Labels {
    /// What is wanted now.
    pub task_type: TaskType,
    /// 0..=4
    #[cfg_attr(feature = "schema", schemars(range(max = 4)))]
    pub complexity: u8,
    /// The least of the codebase that must change.
    pub scope: Scope,
    /// 0..=3
    #[cfg_attr(feature = "schema", schemars(range(max = 3)))]
    pub risk: u8,
    /// 0..=2
    #[cfg_attr(feature = "schema", schemars(range(max = 2)))]
    pub ambiguity: u8,
    /// 0..=4
    #[cfg_attr(feature = "schema", schemars(range(max = 4)))]
    pub reasoning_requirement: u8,
    /// The cheapest sufficient tier.
    pub capability_tier: Tier,
    /// The least sufficient effort.
    pub reasoning_effort: Effort,
    /// Who knows what decides.
    pub agent: Agent,
    /// The weakest sufficient check.
    pub validation_level: Validation,
    /// Files are created or changed.
    pub requires_write: bool,
    /// Commands other than tests, builds and git.
    pub requires_shell: bool,
    /// A test run, type check or build.
    pub requires_tests: bool,
    /// Facts from outside that change.
    pub requires_web: bool,
    /// Something must be seen or clicked.
    pub requires_browser: bool,
    /// A database is queried or changed.
    pub requires_database: bool,
    /// Commits, branches, history.
    pub requires_git: bool,
    /// A security boundary is changed or judged.
    pub security_sensitive: bool,
}

/// One thing that is wrong with a set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelProblem {
    /// `labels` or `labels.<id>`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// Everything that is wrong with a set of labels; at least one problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LabelProblems(pub Vec<LabelProblem>);

impl fmt::Display for LabelProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, LabelProblem { path, message }) in self.0.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{path}: {message}")?;
        }
        Ok(())
    }
}

impl Labels {
    /// Reads an object of exactly the 18 labels: choices as option ids, scores as integers from 0, the rest as booleans.
    ///
    /// # Errors
    /// Every missing, unknown and invalid label.
    pub fn from_json(value: &Value) -> Result<Self, LabelProblems> {
        let Some(object) = value.as_object() else {
            let message = "expected an object of the 18 labels".to_owned();
            return Err(LabelProblems(vec![LabelProblem {
                path: "labels".to_owned(),
                message,
            }]));
        };
        let mut reader = LabelReader {
            object,
            problems: Vec::new(),
        };
        let labels = reader.labels();
        for id in object.keys().filter(|id| id.parse::<QuestionId>().is_err()) {
            reader.problem(id, "unknown label".to_owned());
        }
        match labels {
            Some(labels) if reader.problems.is_empty() => Ok(labels),
            _ => Err(LabelProblems(reader.problems)),
        }
    }

    /// The labels as answers (routing.md 2): a choice with probability 1, a score of that level, noul 1 or 0.
    #[must_use]
    pub fn to_answers(&self) -> Answers {
        let certain = Confidence {
            confidence: Some(1.0),
            answer_confidence: Some(1.0),
        };
        let pairs =
            relay_contract()
                .questions()
                .iter()
                .zip(self.values())
                .map(|(question, (_, value))| {
                    let answer = match (value, &question.criteria) {
                        (Label::Choice(word, index), _) => Answer::Choice {
                            choice: word.to_owned(),
                            index,
                            probabilities: vec![(word.to_owned(), 1.0)],
                            confidence: certain,
                        },
                        (Label::Level(level), criteria) => Answer::Score {
                            score: f64::from(level),
                            levels: if let Criteria::Score(levels) = criteria {
                                levels.len()
                            } else {
                                0
                            },
                            probabilities: vec![(level.to_string(), 1.0)],
                            confidence: certain,
                        },
                        (Label::Truth(truth), _) => Answer::Noul {
                            noul: f64::from(u8::from(truth)),
                            confidence: certain,
                        },
                    };
                    (question.id.clone(), answer)
                });
        Answers::from_pairs(pairs.collect())
    }

    /// Every label with its question, in contract order.
    #[must_use]
    pub fn values(&self) -> [(QuestionId, Label); 18] {
        use QuestionId as Q;
        [
            (
                Q::TaskType,
                Label::Choice(self.task_type.as_str(), self.task_type.index()),
            ),
            (Q::Complexity, Label::Level(self.complexity)),
            (
                Q::Scope,
                Label::Choice(self.scope.as_str(), self.scope.index()),
            ),
            (Q::Risk, Label::Level(self.risk)),
            (Q::Ambiguity, Label::Level(self.ambiguity)),
            (
                Q::ReasoningRequirement,
                Label::Level(self.reasoning_requirement),
            ),
            (
                Q::CapabilityTier,
                Label::Choice(self.capability_tier.as_str(), self.capability_tier.index()),
            ),
            (
                Q::ReasoningEffort,
                Label::Choice(
                    self.reasoning_effort.as_str(),
                    self.reasoning_effort.index(),
                ),
            ),
            (
                Q::Agent,
                Label::Choice(self.agent.as_str(), self.agent.index()),
            ),
            (
                Q::ValidationLevel,
                Label::Choice(
                    self.validation_level.as_str(),
                    self.validation_level.index(),
                ),
            ),
            (Q::RequiresWrite, Label::Truth(self.requires_write)),
            (Q::RequiresShell, Label::Truth(self.requires_shell)),
            (Q::RequiresTests, Label::Truth(self.requires_tests)),
            (Q::RequiresWeb, Label::Truth(self.requires_web)),
            (Q::RequiresBrowser, Label::Truth(self.requires_browser)),
            (Q::RequiresDatabase, Label::Truth(self.requires_database)),
            (Q::RequiresGit, Label::Truth(self.requires_git)),
            (Q::SecuritySensitive, Label::Truth(self.security_sensitive)),
        ]
    }
}

/// The value of one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// An option id and its position, from 0.
    Choice(&'static str, usize),
    /// A level, from 0.
    Level(u8),
    /// Whether the statement holds.
    Truth(bool),
}

impl TryFrom<Value> for Labels {
    type Error = LabelProblems;

    fn try_from(value: Value) -> Result<Self, LabelProblems> {
        Self::from_json(&value)
    }
}

/// Collects problems while it reads, so that one pass reports them all.
struct LabelReader<'a> {
    object: &'a serde_json::Map<String, Value>,
    problems: Vec<LabelProblem>,
}

impl LabelReader<'_> {
    /// None where any label was unreadable, after all of them were looked at.
    fn labels(&mut self) -> Option<Labels> {
        use QuestionId as Q;
        let task_type = self.word::<TaskType>(Q::TaskType);
        let complexity = self.level(Q::Complexity);
        let scope = self.word::<Scope>(Q::Scope);
        let risk = self.level(Q::Risk);
        let ambiguity = self.level(Q::Ambiguity);
        let reasoning_requirement = self.level(Q::ReasoningRequirement);
        let capability_tier = self.word::<Tier>(Q::CapabilityTier);
        let reasoning_effort = self.word::<Effort>(Q::ReasoningEffort);
        let agent = self.word::<Agent>(Q::Agent);
        let validation_level = self.word::<Validation>(Q::ValidationLevel);
        let requires_write = self.truth(Q::RequiresWrite);
        let requires_shell = self.truth(Q::RequiresShell);
        let requires_tests = self.truth(Q::RequiresTests);
        let requires_web = self.truth(Q::RequiresWeb);
        let requires_browser = self.truth(Q::RequiresBrowser);
        let requires_database = self.truth(Q::RequiresDatabase);
        let requires_git = self.truth(Q::RequiresGit);
        let security_sensitive = self.truth(Q::SecuritySensitive);
        Some(Labels {
            task_type: task_type?,
            complexity: complexity?,
            scope: scope?,
            risk: risk?,
            ambiguity: ambiguity?,
            reasoning_requirement: reasoning_requirement?,
            capability_tier: capability_tier?,
            reasoning_effort: reasoning_effort?,
            agent: agent?,
            validation_level: validation_level?,
            requires_write: requires_write?,
            requires_shell: requires_shell?,
            requires_tests: requires_tests?,
            requires_web: requires_web?,
            requires_browser: requires_browser?,
            requires_database: requires_database?,
            requires_git: requires_git?,
            security_sensitive: security_sensitive?,
        })
    }

    fn word<T: FromStr<Err: fmt::Display>>(&mut self, id: QuestionId) -> Option<T> {
        self.read(id, |value| match value.as_str() {
            Some(word) => word.parse().map_err(|error: T::Err| error.to_string()),
            None => Err(format!("expected an option id, got {value}")),
        })
    }

    fn level(&mut self, id: QuestionId) -> Option<u8> {
        let levels = match relay_contract()
            .question(id.as_str())
            .map(|question| &question.criteria)
        {
            Some(Criteria::Score(levels)) => levels.len(),
            _ => 0,
        };
        self.read(id, |value| {
            let level = value.as_u64().and_then(|level| u8::try_from(level).ok());
            level
                .filter(|level| usize::from(*level) < levels)
                .ok_or_else(|| {
                    format!(
                        "expected an integer 0..{}, got {value}",
                        levels.saturating_sub(1)
                    )
                })
        })
    }

    fn truth(&mut self, id: QuestionId) -> Option<bool> {
        self.read(id, |value| {
            value
                .as_bool()
                .ok_or_else(|| format!("expected true or false, got {value}"))
        })
    }

    fn read<T>(
        &mut self,
        id: QuestionId,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let parsed = self
            .object
            .get(id.as_str())
            .ok_or_else(|| "is missing".to_owned())
            .and_then(parse);
        parsed
            .map_err(|message| self.problem(id.as_str(), message))
            .ok()
    }

    fn problem(&mut self, id: &str, message: String) {
        self.problems.push(LabelProblem {
            path: format!("labels.{id}"),
            message,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked example 7 of labels.md.
    fn go_ahead() -> Value {
        serde_json::from_str(
            r#"{"task_type":"feature","complexity":2,"scope":"module","risk":1,"ambiguity":2,"reasoning_requirement":2,
            "capability_tier":"balanced","reasoning_effort":"medium","agent":"software-engineer",
            "validation_level":"unit_test","requires_write":true,"requires_shell":true,"requires_tests":true,
            "requires_web":false,"requires_browser":false,"requires_database":false,"requires_git":false,
            "security_sensitive":false}"#,
        )
        .expect("JSON")
    }

    #[test]
    fn reads_and_writes_the_18_labels_in_order() {
        let labels = Labels::from_json(&go_ahead()).expect("valid");
        assert_eq!(labels.capability_tier, Tier::Balanced);
        assert_eq!(
            labels.values().map(|(id, _)| id).as_slice(),
            QuestionId::ALL
        );
        let text = serde_json::to_string(&labels).expect("writes");
        assert!(
            text.starts_with(r#"{"task_type":"feature","complexity":2,"scope":"module","#),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<Labels>(&text).expect("reads"),
            labels
        );
    }

    #[test]
    fn reports_every_problem_with_its_path() {
        let mut value = go_ahead();
        value["task_type"] = "chore".into();
        value["complexity"] = 5.into();
        value["risk"] = 1.5.into();
        value["ambiguity"] = Value::Bool(true);
        value["agent"] = 3.into();
        value["requires_git"] = "no".into();
        value["urgency"] = 1.into();
        value.as_object_mut().expect("object").remove("scope");
        let LabelProblems(problems) = Labels::from_json(&value).expect_err("invalid");
        let seen: Vec<_> = problems
            .iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect();
        assert_eq!(
            seen,
            [
                "labels.task_type: unknown task type `chore`: expected one of question, code_edit, bug_fix, refactor, \
                 feature, test, architecture, debugging, security, research, documentation",
                "labels.complexity: expected an integer 0..4, got 5",
                "labels.scope: is missing",
                "labels.risk: expected an integer 0..3, got 1.5",
                "labels.ambiguity: expected an integer 0..2, got true",
                "labels.agent: expected an option id, got 3",
                "labels.requires_git: expected true or false, got \"no\"",
                "labels.urgency: unknown label",
            ]
        );
    }

    #[test]
    fn refuses_what_is_no_object() {
        let error = Labels::from_json(&Value::Null).expect_err("invalid");
        assert_eq!(
            error.to_string(),
            "labels: expected an object of the 18 labels"
        );
    }

    #[test]
    fn becomes_certain_answers() {
        let answers = Labels::from_json(&go_ahead()).expect("valid").to_answers();
        assert_eq!(answers.len(), 18);
        assert!(
            answers
                .iter()
                .all(|(_, answer)| answer.answer_probability() >= 1.0)
        );
        let get = |id| answers.get(id).expect("labelled").clone();
        assert_eq!(get("capability_tier").choice(), Some("balanced"));
        assert!((get("complexity").score_fraction() - 0.5).abs() < 1e-12);
        assert!((get("ambiguity").score_fraction() - 1.0).abs() < 1e-12);
        assert!(get("requires_shell").holds() && !get("requires_web").holds());
    }
}
