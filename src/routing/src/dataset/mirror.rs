//! A dataset file that somebody else wrote or changed, taken into the dataset (training.md 2.6): the mirror on a laptop
//! between two uses, and the file that an older installation left.

use std::collections::{HashMap, HashSet};

use super::file::{RejectedLine, RowFile, read_file};
use super::learn::LESSON_UNITS;
use super::origin::{Source, Split};
use super::row::Row;
use super::secrets::{has_secret, redact};
use super::standing::{InForce, RowStanding};
use super::view::{DatasetView, Edit, Finding, number};
use crate::text;

/// A file to take in.
#[derive(Debug, Clone, Copy)]
pub struct Mirror<'a> {
    /// Its text.
    pub text: &'a str,
    /// Ids that were in the file when we wrote it last: only those can have been deleted in it. None stands for every
    /// row there is; an empty set imports without forgetting anything.
    pub written: Option<&'a HashSet<String>>,
}

/// What a file changes, and what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    /// The change.
    pub edit: Edit,
    /// Lines that are no rows, for `dataset.jsonl.rejected`.
    pub rejected: Vec<RejectedLine>,
    /// Lines that were looked at, blank ones left out.
    pub lines: usize,
    /// Rows that are as they were.
    pub unchanged: usize,
    /// Rows that are missing in the file and were kept all the same, since a rejected line may be theirs.
    pub kept: usize,
}

/// Takes in a file: added and changed rows, and the forgetting of those that are gone. Rows without a digest of their
/// questions are checked against those in force and stamped. The split of a session row that is here already stays.
#[must_use]
pub fn import_mirror(view: &DatasetView<'_>, mirror: Mirror<'_>, in_force: &InForce) -> Import {
    let RowFile { rows, rejected } = read_file(mirror.text);
    let mut intake = Intake {
        view,
        in_force,
        by_id: view.positions(),
        by_task: view.tasks(),
        edit: view.edit(),
        saved: HashMap::new(),
        saved_tasks: HashMap::new(),
        seen: HashSet::new(),
        unchanged: 0,
    };
    let lines = rows.len() + rejected.len();
    for row in rows {
        intake.take(row);
    }
    let Intake {
        mut edit,
        seen,
        unchanged,
        ..
    } = intake;
    let missing = view.rows.iter().map(Row::id).filter(|id| {
        !seen.contains(*id) && mirror.written.is_none_or(|written| written.contains(*id))
    });
    let mut kept = 0;
    for id in missing {
        if rejected.iter().any(|line| may_be(line, id)) {
            kept += 1;
        } else {
            edit.removes.push(id.to_owned());
        }
    }
    Import {
        edit,
        rejected,
        lines,
        unchanged,
        kept,
    }
}

/// Whether a line that is no row may once have been the row with this id. One whose id cannot be read may be any.
fn may_be(line: &RejectedLine, id: &str) -> bool {
    let value = line.text.split_once("\"id\"").and_then(|(_, rest)| {
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        rest.strip_prefix('"')?.split_once('"')
    });
    value.is_none_or(|(found, _)| found == id)
}

struct Intake<'a> {
    view: &'a DatasetView<'a>,
    in_force: &'a InForce,
    by_id: HashMap<&'a str, usize>,
    by_task: HashMap<String, usize>,
    edit: Edit,
    /// Where the row with an id stands among the puts.
    saved: HashMap<String, usize>,
    /// Which id a task of this file got.
    saved_tasks: HashMap<String, String>,
    seen: HashSet<String>,
    unchanged: usize,
}

impl Intake<'_> {
    fn take(&mut self, row: Row) {
        let task = row.merge_key();
        let by_id = self
            .by_id
            .get(row.id())
            .copied()
            .filter(|_| !row.id().is_empty());
        let place = by_id.or_else(|| self.by_task.get(&task).copied());
        let old = place.and_then(|at| self.view.rows.get(at));
        let id = match (old, self.saved_tasks.get(&task)) {
            (Some(old), _) => old.id().to_owned(),
            (None, Some(id)) => id.clone(),
            (None, None) if row.id().is_empty() => self.next_id(row.source()),
            (None, None) => row.id().to_owned(),
        };
        let row = self.clean(row, &id);
        let row = self.settled(row, &id, old);
        self.seen.insert(id.clone());
        self.saved_tasks.insert(task, id.clone());
        if let Some(number) = number(&id, 's') {
            self.edit.highest_session_number = self.edit.highest_session_number.max(number);
        }
        if old == Some(&row) {
            self.unchanged += 1;
            return;
        }
        if let Some(at) = self.saved.get(&id) {
            self.edit.puts[*at] = row;
            return;
        }
        match old {
            Some(_) => self.edit.updated += 1,
            None => self.edit.added += 1,
        }
        self.saved.insert(id.clone(), self.edit.puts.len());
        self.edit.ids.push(id);
        self.edit.puts.push(row);
    }

    /// A taught row without credentials, and without a lesson that nobody would have been let teach (training.md 2.3).
    fn clean(&mut self, row: Row, id: &str) -> Row {
        if !row.is_session() {
            return row;
        }
        let mut row = row;
        let request = redact(row.request()).into_owned();
        if request != row.request() {
            self.warn(id, "a credential was taken out of the request");
            row = row.with_request(&request);
        }
        let too_long = |lesson: &str| text::units(lesson) > LESSON_UNITS;
        if row
            .lesson()
            .is_some_and(|lesson| has_secret(lesson) || too_long(lesson))
        {
            self.warn(
                id,
                "the lesson holds a credential or is too long, and was left out",
            );
            row = row.with_lesson(None);
        }
        row
    }

    fn warn(&mut self, id: &str, message: &str) {
        self.edit
            .warnings
            .push(Finding::new(id.to_owned(), message));
    }

    /// The row as it is kept: under its id, with the split it has to have and the digests of its questions.
    fn settled(&mut self, row: Row, id: &str, old: Option<&Row>) -> Row {
        // Found by its text under another id: taught anew elsewhere, without what was learned here.
        let taught_anew = row.id() != id;
        let mut row = if taught_anew { row.with_id(id) } else { row };
        let fixed = old
            .filter(|old| old.is_session() && row.is_session())
            .and_then(Row::split);
        match (fixed, row.split()) {
            (Some(fixed), Some(other)) if fixed != other => {
                let message = format!(
                    "split stays {}: that of a learned task never changes",
                    fixed.as_str()
                );
                self.edit.warnings.push(Finding::new(id, message));
                row = row.with_split(fixed);
            }
            (Some(fixed), None) => row = row.with_split(fixed),
            // Older installations trained on all their session rows, so none of them can be held out any more.
            (None, None) if row.is_session() => row = row.with_split(Split::Train),
            _ => {}
        }
        let lesson = old.and_then(Row::lesson);
        if let Some(lesson) = lesson.filter(|_| taught_anew && row.lesson().is_none()) {
            row = row.with_lesson(Some(lesson));
        }
        match (row.shape(), row.standing(self.in_force)) {
            (None, RowStanding::InForce(_) | RowStanding::TierOnly(_)) => {
                row.stamped(self.in_force)
            }
            _ => row,
        }
    }

    /// An id for a row that has none.
    fn next_id(&mut self, source: &Source) -> String {
        let letter = match source {
            Source::Session => return self.edit.next_session_id(),
            Source::Evaluation => 'e',
            _ => 'r',
        };
        let rows = self.view.rows.iter().chain(&self.edit.puts);
        let highest = rows.filter_map(|row| number(row.id(), letter)).max();
        format!("{letter}{:05}", highest.unwrap_or(0) + 1)
    }
}
