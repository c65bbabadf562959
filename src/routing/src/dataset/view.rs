//! What an operation on a dataset is given and what it gives back: the rows as they are, and the change to make. The
//! store applies a change in one transaction and keeps the versions before it; nothing here is done in halves.

use std::collections::{HashMap, HashSet};

use decision::vocabulary::QuestionId;
use serde::{Deserialize, Serialize};

use super::row::Row;
use super::standing::InForce;

/// The dataset of one tenant at one revision.
#[derive(Debug, Clone, Copy)]
pub struct DatasetView<'a> {
    /// Every row, each id once.
    pub rows: &'a [Row],
    /// The highest number a session id ever had, forgotten rows included; 0 when there was none.
    pub highest_session_number: u64,
}

/// A change to a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    /// Rows to write, each id once: in the place of the row with that id, or behind the others.
    pub puts: Vec<Row>,
    /// Ids of rows to take away.
    pub removes: Vec<String>,
    /// How many of the rows are new.
    pub added: usize,
    /// How many were there before.
    pub updated: usize,
    /// For each thing that was asked to be saved, in its order, the id of its row.
    pub ids: Vec<String>,
    /// Labels that were other ones before, of those that choose a model.
    pub changes: Vec<LabelChange>,
    /// What a person should know.
    pub warnings: Vec<Finding>,
    /// [`DatasetView::highest_session_number`] from now on.
    pub highest_session_number: u64,
}

/// Something that is allowed and worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// A path in the body (`exercises[2].labels.requires_tests`), or an id or a line of a file.
    pub path: String,
    /// What it is.
    pub message: String,
}

impl Finding {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// A label that replaced another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelChange {
    /// Id of the row.
    pub id: String,
    /// `capability_tier` or `reasoning_effort`.
    pub question: QuestionId,
    /// Before.
    pub from: String,
    /// Now.
    pub to: String,
}

impl DatasetView<'_> {
    /// Where each id stands.
    pub(super) fn positions(&self) -> HashMap<&str, usize> {
        let ids = self.rows.iter().map(Row::id);
        ids.enumerate().map(|(at, id)| (id, at)).collect()
    }

    /// Where each task stands, by its merge key; of two rows of one task the last.
    pub(super) fn tasks(&self) -> HashMap<String, usize> {
        let keys = self.rows.iter().map(Row::merge_key);
        keys.enumerate().map(|(at, key)| (key, at)).collect()
    }

    /// An edit that changes nothing yet.
    pub(super) fn edit(&self) -> Edit {
        let numbers = self.rows.iter().filter_map(|row| number(row.id(), 's'));
        Edit {
            highest_session_number: numbers.max().unwrap_or(0).max(self.highest_session_number),
            ..Edit::default()
        }
    }
}

impl Edit {
    /// Whether the dataset stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.removes.is_empty()
    }

    /// A session id that no row ever had.
    pub(super) fn next_session_id(&mut self) -> String {
        self.highest_session_number += 1;
        format!("s{:05}", self.highest_session_number)
    }

    /// The rows after this edit, in order.
    #[must_use]
    pub fn applied(&self, rows: &[Row]) -> Vec<Row> {
        let mut puts: HashMap<&str, &Row> = self.puts.iter().map(|row| (row.id(), row)).collect();
        let removes: HashSet<&str> = self.removes.iter().map(String::as_str).collect();
        let kept = rows.iter().filter(|row| !removes.contains(row.id()));
        let mut after: Vec<Row> = kept
            .map(|row| puts.remove(row.id()).unwrap_or(row).clone())
            .collect();
        let new = self.puts.iter().filter(|row| puts.contains_key(row.id()));
        after.extend(new.cloned());
        after
    }

    /// Learned tasks after this edit, and how many of them are stale.
    #[must_use]
    pub fn learned_tasks(&self, rows: &[Row], in_force: &InForce) -> (usize, usize) {
        let after = self.applied(rows);
        let learned = after.iter().filter(|row| row.is_session());
        learned.fold((0, 0), |(all, stale), row| {
            (
                all + 1,
                stale + usize::from(row.standing(in_force).is_stale()),
            )
        })
    }
}

/// The number of an id like `s00012` with this letter.
pub(super) fn number(id: &str, letter: char) -> Option<u64> {
    let digits = id.strip_prefix(letter)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}
