//! `dataset.jsonl` as a file: lines to rows and rows to lines. What is no row is told from what is, by line number.

use std::collections::HashSet;

use super::row::{Row, RowError};

/// A line that is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLine {
    /// From 1.
    pub line: usize,
    /// As it stands in the file.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// A dataset file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFile {
    /// Its rows, in order.
    pub rows: Vec<Row>,
    /// Its other lines, for `dataset.jsonl.rejected`.
    pub rejected: Vec<RejectedLine>,
}

/// Reads a dataset file. Blank lines count as nothing; a line that is no row, or repeats an id, is rejected by its number.
#[must_use]
pub fn read_file(text: &str) -> RowFile {
    let mut file = RowFile::default();
    let mut ids = HashSet::new();
    for (number, line) in lines(text) {
        let row = Row::read(line).and_then(|row| {
            if !row.id().is_empty() && !ids.insert(row.id().to_owned()) {
                return Err(RowError::RepeatedId {
                    id: row.id().to_owned(),
                });
            }
            Ok(row)
        });
        match row {
            Ok(row) => file.rows.push(row),
            Err(error) => file.rejected.push(RejectedLine {
                line: number,
                text: line.to_owned(),
                reason: error.to_string(),
            }),
        }
    }
    file
}

/// The lines of a JSONL file that are not blank, with their numbers from 1.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty())
}

/// The rows as a file: one line each, a final line break.
#[must_use]
pub fn write_file<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(row.line());
        text.push('\n');
    }
    text
}
