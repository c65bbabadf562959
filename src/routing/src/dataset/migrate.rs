//! Rows of other questions made rows of those in force by an explicit map (training.md 2.4): questions that were dropped,
//! questions and options that were renamed. What the map does not name is not guessed: the row stays stale.

use std::collections::BTreeMap;

use decision::contract::{Criteria, Digest};
use decision::json::{Object, Value};
use decision::labels::LabelProblems;
use decision::relay_contract;
use decision::vocabulary::QuestionId;
use serde::{Deserialize, Serialize};

use super::row::Row;
use super::standing::{InForce, RowStanding};
use super::view::{DatasetView, Edit, Finding};

/// A map file, TOML or JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrationMap {
    /// Form of the file: 1.
    pub version: u32,
    /// Shape digest of the rows it is for. Without it, it is for rows that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// Old questions that have no successor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// By question in force, what it was before. Questions that were the same need no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<QuestionId, QuestionMap>,
}

/// What one question was before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionMap {
    /// Its old id, if that was another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Old option → option in force, for those that were renamed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// Why a map cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// It is no map.
    #[error("no migration map: {message}")]
    Form {
        /// What the reader says.
        message: String,
    },
    /// It is of another version.
    #[error("migration map has version {got}, this program reads 1")]
    Version {
        /// The version it has.
        got: u32,
    },
    /// It leads to an option that is not in force.
    #[error("questions.{question}.options.{old}: `{new}` is no option of {question}")]
    Option {
        /// Question in force.
        question: QuestionId,
        /// Old option.
        old: String,
        /// What it was to become.
        new: String,
    },
    /// It drops a question that another entry reads.
    #[error("drop: `{id}` is also the source of questions.{question}")]
    DroppedSource {
        /// Old question.
        id: String,
        /// Question in force.
        question: QuestionId,
    },
}

impl MigrationMap {
    /// Reads a map: JSON when it begins with `{`, else TOML.
    ///
    /// # Errors
    /// When it has another form or version, or contradicts itself or the questions in force.
    pub fn read(text: &str) -> Result<Self, MapError> {
        let form = |error: &dyn std::fmt::Display| MapError::Form {
            message: error.to_string(),
        };
        let map: Self = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| form(&error))?
        } else {
            toml::from_str(text).map_err(|error| form(&error))?
        };
        map.check()?;
        Ok(map)
    }

    fn check(&self) -> Result<(), MapError> {
        if self.version != 1 {
            return Err(MapError::Version { got: self.version });
        }
        for (question, map) in &self.questions {
            for (old, new) in &map.options {
                if !is_option(*question, new) {
                    let (old, new) = (old.clone(), new.clone());
                    return Err(MapError::Option {
                        question: *question,
                        old,
                        new,
                    });
                }
            }
            let source = map.was.as_deref().unwrap_or(question.as_str());
            if self.drop.iter().any(|id| id == source) {
                let id = source.to_owned();
                return Err(MapError::DroppedSource {
                    id,
                    question: *question,
                });
            }
        }
        Ok(())
    }

    /// Whether the map is for this row.
    fn is_for(&self, row: &Row) -> bool {
        row.shape() == self.from.as_ref().map(ToString::to_string).as_deref()
    }

    /// The old id of a question in force.
    fn source(&self, question: QuestionId) -> &str {
        let map = self.questions.get(&question);
        map.and_then(|map| map.was.as_deref())
            .unwrap_or(question.as_str())
    }

    /// The labels under the questions in force, in their order.
    fn labels(&self, expected: &Object) -> Object {
        let mapped = QuestionId::ALL.iter().filter_map(|question| {
            let value = expected.get(self.source(*question))?;
            let renamed = self
                .questions
                .get(question)
                .and_then(|map| map.options.get(value.as_str()?));
            let value = renamed.map_or_else(|| value.clone(), |new| Value::from(new.as_str()));
            Some((question.as_str(), value))
        });
        mapped.collect()
    }

    /// Old questions of a row that the map neither drops nor reads.
    fn unnamed<'a>(&self, expected: &'a Object) -> Vec<&'a str> {
        let keys = expected.keys().filter_map(|key| key.as_str());
        keys.filter(|key| {
            !self.drop.iter().any(|id| id == key)
                && !QuestionId::ALL
                    .iter()
                    .any(|question| self.source(*question) == *key)
        })
        .collect()
    }
}

fn is_option(question: QuestionId, option: &str) -> bool {
    let criteria = relay_contract()
        .question(question.as_str())
        .map(|question| &question.criteria);
    matches!(criteria, Some(Criteria::Choice(options)) if options.iter().any(|known| known.id == option))
}

/// What a map changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Migration {
    /// The rows that are in force from now on.
    pub edit: Edit,
    /// Rows the map is for and that stay stale, with the reason, by id.
    pub remaining: Vec<Finding>,
}

/// Applies a map to the stale rows it is for. A row whose labels do not all fit afterwards stays as it is.
#[must_use]
pub fn migrate(view: &DatasetView<'_>, map: &MigrationMap, in_force: &InForce) -> Migration {
    let mut migration = Migration {
        edit: view.edit(),
        remaining: Vec::new(),
    };
    let stale = view
        .rows
        .iter()
        .filter(|row| map.is_for(row) && row.standing(in_force).is_stale());
    for row in stale {
        let unnamed = map.unnamed(row.expected());
        if !unnamed.is_empty() {
            let message = format!("the map says nothing of {}", unnamed.join(", "));
            migration.remaining.push(Finding::new(row.id(), message));
            continue;
        }
        let moved = row
            .with_expected(map.labels(row.expected()))
            .stamped(in_force);
        match moved.standing(in_force) {
            RowStanding::InForce(_) | RowStanding::TierOnly(_) => {
                migration.edit.ids.push(row.id().to_owned());
                migration.edit.puts.push(moved);
                migration.edit.updated += 1;
            }
            RowStanding::Stale(_) => {
                let problems = moved.labels().err().unwrap_or(LabelProblems(Vec::new()));
                migration
                    .remaining
                    .push(Finding::new(row.id(), problems.to_string()));
            }
        }
    }
    migration
}
