//! `POST /v1/learn`: tasks that an agent labelled, checked and turned into rows (training.md 2.3, 2.4). All or nothing,
//! with every problem named at once.

use std::collections::HashMap;

use decision::contract::{Digest, DigestError};
use decision::labels::Labels;
use decision::vocabulary::QuestionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evidence::{EVIDENCE_BYTES, Evidence};
use super::origin::{LabelSource, Source, Split};
use super::row::{NewRow, Row};
use super::secrets::{Secret, find_secrets, redact};
use super::split::SessionSplits;
use super::standing::InForce;
use super::view::{DatasetView, Edit, Finding, LabelChange};
use crate::memory::merge_key;
use crate::policy::Policy;
use crate::request::{FieldError, MAX_REQUEST_UNITS};
use crate::rules::{self, RuleId};
use crate::text;

/// Most tasks in one body.
pub const MAX_EXERCISES: usize = 200;
/// Longest lesson, in UTF-16 units.
pub const LESSON_UNITS: usize = 600;
/// Longest note, in UTF-16 units.
pub const NOTE_UNITS: usize = 2000;
/// Longest name of a session (an id or a path), in UTF-16 units.
pub const SESSION_UNITS: usize = 1024;

/// Body of `POST /v1/learn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LearnBody {
    /// Where the tasks were done.
    pub session: String,
    /// Digest of the questions without wording, under which they were labelled.
    pub shape: String,
    /// 1..=200 of them.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = "MAX_EXERCISES")))]
    pub exercises: Vec<Exercise>,
    /// Whether to train on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<bool>,
}

/// One labelled task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exercise {
    /// What the user asked for.
    pub request: String,
    /// All 18 labels.
    #[cfg_attr(feature = "schema", schemars(with = "Labels"))]
    pub labels: Value,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the task taught; at most 600 UTF-16 units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesson: Option<String>,
    /// How it went; at most 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// Answer of `POST /v1/learn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnAnswer {
    /// New rows.
    pub added: usize,
    /// Rows that took the place of one of the same task.
    pub updated: usize,
    /// Learned tasks there are now.
    pub total: usize,
    /// How many of them are not used, since the questions changed.
    pub stale: usize,
    /// For each exercise the id of its row.
    pub ids: Vec<String>,
    /// What became of the wish to train.
    pub training: TrainingAnswer,
    /// Labels that choose a model and were other ones before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LabelChange>,
    /// What is allowed and worth a look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
}

/// What became of the wish to train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingAnswer {
    /// Name of the run that was started.
    pub run: Option<String>,
    /// Why none was.
    pub reason: Option<String>,
}

impl LearnAnswer {
    /// The answer to an edit that was applied to `rows` (as they were before it).
    #[must_use]
    pub fn of(edit: &Edit, rows: &[Row], in_force: &InForce, training: TrainingAnswer) -> Self {
        let (total, stale) = edit.learned_tasks(rows, in_force);
        Self {
            added: edit.added,
            updated: edit.updated,
            total,
            stale,
            ids: edit.ids.clone(),
            training,
            changes: edit.changes.clone(),
            warnings: edit.warnings.clone(),
        }
    }
}

/// Why a body is refused whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnRefusal {
    /// It was labelled under other questions (`contract-mismatch`, 409).
    #[error("labelled under the questions {got}, in force are {expected}")]
    ContractMismatch {
        /// Shape in force.
        expected: Digest,
        /// Shape of the body.
        got: Digest,
    },
    /// Fields are wrong (`invalid-request`, 422); at least one.
    #[error("{} fields are refused, first {}", .0.len(), .0.first().map(ToString::to_string).unwrap_or_default())]
    Invalid(Vec<FieldError>),
}

/// The deterministic rules that fire on a text under a policy, as [`learn`] asks for them.
pub fn rules_of(policy: &Policy) -> impl Fn(&str) -> Vec<RuleId> + '_ {
    |text| {
        rules::fired(
            &policy.keywords().scan(text),
            &policy.added_rule_ids(),
            &policy.source.disabled_rules,
        )
    }
}

/// Checks a body and makes the change that saves it. `fired` gives the deterministic rules that fire on a request
/// ([`rules_of`] the policy); rules that a policy added say nothing about security and are
/// left out of account. `now` becomes `created`.
///
/// # Errors
/// When the body was made for other questions, or anything in it is refused. Nothing is saved then.
pub fn learn(
    view: &DatasetView<'_>,
    body: &LearnBody,
    now: Timestamp,
    in_force: &InForce,
    fired: impl Fn(&str) -> Vec<RuleId>,
) -> Result<Edit, LearnRefusal> {
    let mut errors = Vec::new();
    check_body(body, &mut errors);
    match body.shape.parse::<Digest>() {
        Ok(got) if got == in_force.shape => {}
        Ok(got) => {
            let expected = in_force.shape.clone();
            return Err(LearnRefusal::ContractMismatch { expected, got });
        }
        Err(error @ DigestError { .. }) => errors.push(FieldError::new("shape", error.to_string())),
    }
    let mut warnings = Vec::new();
    let checked: Vec<Option<Checked<'_>>> = body
        .exercises
        .iter()
        .take(MAX_EXERCISES)
        .enumerate()
        .map(|(at, exercise)| {
            let mut check = Check {
                at,
                errors: &mut errors,
                warnings: &mut warnings,
            };
            check.exercise(exercise, &fired)
        })
        .collect();
    if !errors.is_empty() {
        return Err(LearnRefusal::Invalid(errors));
    }
    let mut edit = merge(view, &body.session, &checked, now, in_force);
    edit.warnings = warnings;
    Ok(edit)
}

fn check_body(body: &LearnBody, errors: &mut Vec<FieldError>) {
    let units = text::units(&body.session);
    if body.session.trim().is_empty() {
        errors.push(FieldError::new("session", "must not be blank"));
    } else if units > SESSION_UNITS {
        let message = format!("has {units} UTF-16 units, limit {SESSION_UNITS}");
        errors.push(FieldError::new("session", message));
    }
    let count = body.exercises.len();
    if count == 0 || count > MAX_EXERCISES {
        let message = format!("has {count} exercises, allowed are 1..{MAX_EXERCISES}");
        errors.push(FieldError::new("exercises", message));
    }
}

/// An exercise without a problem, as it is kept.
struct Checked<'a> {
    request: String,
    labels: Labels,
    note: Option<String>,
    lesson: Option<&'a str>,
    evidence: Option<decision::json::Value>,
}

/// One exercise under examination.
struct Check<'a> {
    at: usize,
    errors: &'a mut Vec<FieldError>,
    warnings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    fn error(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(FieldError::new(self.path(field), message));
    }

    fn path(&self, field: &str) -> String {
        format!("exercises[{}].{field}", self.at)
    }

    /// The exercise as it is kept, once all of it was looked at.
    fn exercise<'b>(
        &mut self,
        exercise: &'b Exercise,
        fired: &impl Fn(&str) -> Vec<RuleId>,
    ) -> Option<Checked<'b>> {
        let before = self.errors.len();
        let request = self.request(&exercise.request);
        let labels = self.labels(exercise, fired);
        self.length("note", exercise.note.as_deref(), NOTE_UNITS);
        self.lesson(exercise.lesson.as_deref());
        let evidence = self.evidence(exercise.evidence.as_ref());
        let labels = labels.filter(|_| self.errors.len() == before)?;
        let note = exercise
            .note
            .as_deref()
            .map(|note| redact(note).into_owned());
        Some(Checked {
            request,
            labels,
            note,
            lesson: exercise.lesson.as_deref(),
            evidence,
        })
    }

    /// The evidence as it is kept; what is too long is not looked at any further.
    fn evidence(&mut self, evidence: Option<&Evidence>) -> Option<decision::json::Value> {
        let evidence = evidence?;
        let mut bytes = evidence.bytes();
        if bytes <= EVIDENCE_BYTES {
            let value = evidence.to_value();
            bytes = decision::json::write(&value).len();
            if bytes <= EVIDENCE_BYTES {
                return (!value.is_null()).then_some(value);
            }
        }
        self.error(
            "evidence",
            format!("has {bytes} bytes, limit {EVIDENCE_BYTES}"),
        );
        None
    }

    fn request(&mut self, request: &str) -> String {
        let units = text::units(request);
        if request.trim().is_empty() {
            self.error("request", "must not be blank");
        } else if units > MAX_REQUEST_UNITS {
            self.error(
                "request",
                format!("has {units} UTF-16 units, limit {MAX_REQUEST_UNITS}"),
            );
            return String::new();
        }
        let clean = redact(request);
        if clean != request {
            let path = self.path("request");
            self.warnings
                .push(Finding::new(path, "a credential was taken out"));
        }
        clean.into_owned()
    }

    fn labels(
        &mut self,
        exercise: &Exercise,
        fired: &impl Fn(&str) -> Vec<RuleId>,
    ) -> Option<Labels> {
        let labels = match Labels::from_json(&exercise.labels) {
            Ok(labels) => labels,
            Err(problems) => {
                for problem in problems.0 {
                    self.error(&problem.path, problem.message);
                }
                return None;
            }
        };
        if !labels.security_sensitive && text::units(&exercise.request) <= MAX_REQUEST_UNITS {
            let rules = fired(&exercise.request);
            let rules: Vec<&str> = rules
                .iter()
                .filter(|rule| rule.is_builtin())
                .map(RuleId::as_str)
                .collect();
            if !rules.is_empty() {
                let message = format!("must be true: the request fires {}", rules.join(", "));
                self.error("labels.security_sensitive", message);
            }
        }
        if let Some(evidence) = &exercise.evidence {
            for (label, message) in evidence.contradictions(&labels) {
                self.error(&format!("labels.{label}"), message);
            }
            for (label, message) in evidence.doubts(&labels) {
                let path = self.path(&format!("labels.{label}"));
                self.warnings.push(Finding::new(path, message));
            }
        }
        Some(labels)
    }

    /// Whether a text keeps its limit.
    fn length(&mut self, field: &str, text: Option<&str>, limit: usize) -> bool {
        let units = text.map_or(0, |text| text::units(text.trim()));
        if units > limit {
            self.error(field, format!("has {units} UTF-16 units, limit {limit}"));
        }
        units <= limit
    }

    fn lesson(&mut self, lesson: Option<&str>) {
        if self.length("lesson", lesson, LESSON_UNITS)
            && let Some(problem) = lesson.and_then(lesson_problem)
        {
            self.error("lesson", problem);
        }
    }
}

/// What is wrong with the words of a lesson: it holds a credential. The credential itself is not repeated.
pub(super) fn lesson_problem(lesson: &str) -> Option<String> {
    let Secret { kind, .. } = find_secrets(lesson).into_iter().next()?;
    Some(format!(
        "has {}: lessons must not hold credentials",
        kind.as_str()
    ))
}

/// Saves checked exercises one after the other, so that a task that occurs twice ends as one row.
fn merge(
    view: &DatasetView<'_>,
    session: &str,
    checked: &[Option<Checked<'_>>],
    now: Timestamp,
    in_force: &InForce,
) -> Edit {
    let mut edit = view.edit();
    let mut splits = SessionSplits::of(view.rows);
    let known = view.tasks();
    let mut saved: HashMap<String, usize> = HashMap::new();
    for exercise in checked.iter().flatten() {
        let key = merge_key(&exercise.request);
        let put = saved.get(&key).copied();
        let old = match put {
            Some(at) => edit.puts.get(at).cloned(),
            None => known.get(&key).and_then(|at| view.rows.get(*at)).cloned(),
        };
        let (id, split) = match &old {
            Some(row) if row.is_session() => {
                (row.id().to_owned(), row.split().unwrap_or(Split::Train))
            }
            Some(row) => (row.id().to_owned(), splits.assign(&exercise.request)),
            None => (edit.next_session_id(), splits.assign(&exercise.request)),
        };
        let lesson = exercise.lesson.filter(|lesson| !lesson.trim().is_empty());
        let row = Row::new(NewRow {
            id: &id,
            request: &exercise.request,
            labels: &exercise.labels,
            source: Source::Session,
            split: Some(split),
            session: Some(session),
            label_source: Some(LabelSource::Agent),
            note: exercise.note.as_deref(),
            lesson: lesson.or_else(|| old.as_ref().and_then(Row::lesson)),
            created: Some(now),
            in_force,
            evidence: exercise.evidence.clone(),
        });
        if let Some(old) = &old {
            edit.changes.extend(changes(old, &exercise.labels));
        }
        match (put, old) {
            (Some(at), _) => edit.puts[at] = row,
            (None, old) => {
                saved.insert(key, edit.puts.len());
                edit.puts.push(row);
                if old.is_some() {
                    edit.updated += 1;
                } else {
                    edit.added += 1;
                }
            }
        }
        edit.ids.push(id);
    }
    edit
}

/// The labels that choose a model and are no longer what they were.
fn changes(old: &Row, labels: &Labels) -> Vec<LabelChange> {
    let now = [
        (QuestionId::CapabilityTier, labels.capability_tier.as_str()),
        (
            QuestionId::ReasoningEffort,
            labels.reasoning_effort.as_str(),
        ),
    ];
    let change = |(question, to): (QuestionId, &str)| {
        let before = old.expected().get(question.as_str())?.as_str()?;
        (before != to).then(|| LabelChange {
            id: old.id().to_owned(),
            question,
            from: before.to_owned(),
            to: to.to_owned(),
        })
    };
    now.into_iter().filter_map(change).collect()
}
