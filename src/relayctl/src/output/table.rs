//! Tables in the form of `kubectl`: a server's rows under its columns, or rows of our own.

use serde_json::Value;

use crate::terminal::{Styles, escape};

/// Between two columns.
const GAP: usize = 3;
/// Widest cell, in characters; the objects have the whole text.
const MAX_CELL: usize = 200;

/// Columns and rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Which columns of a server's table are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Those of priority 0.
    Normal,
    /// All.
    Wide,
}

/// Whether a column is put in front with the namespace, since rows come from several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// Shown.
    Shown,
    /// All rows are of one.
    Hidden,
}

/// The columns of a server's table, as they were said first: a watch says them once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    shown: Vec<(usize, String)>,
    namespaces: bool,
    prefix: String,
}

/// One row of a server's table and the object it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Namespace and name.
    pub(crate) key: (String, String),
    pub(crate) cells: Vec<String>,
}

impl Columns {
    /// Of an answer of kind `Table`; `prefix` is put before names, as where several kinds are shown.
    pub(crate) fn of(answer: &Value, width: Width, namespaces: Namespaces, prefix: &str) -> Self {
        let columns = answer["columnDefinitions"].as_array();
        let shown = columns
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(_, column)| {
                width == Width::Wide || column["priority"].as_i64().unwrap_or(0) == 0
            })
            .map(|(at, column)| {
                (
                    at,
                    column["name"].as_str().unwrap_or_default().to_uppercase(),
                )
            })
            .collect();
        Self {
            shown,
            namespaces: namespaces == Namespaces::Shown,
            prefix: prefix.to_owned(),
        }
    }

    /// Whether the server said any.
    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        let namespace = self.namespaces.then(|| "NAMESPACE".to_owned());
        namespace
            .into_iter()
            .chain(self.shown.iter().map(|(_, name)| name.clone()))
            .collect()
    }

    /// The rows of an answer.
    pub(crate) fn rows(&self, answer: &Value) -> Vec<Row> {
        let rows = answer["rows"].as_array();
        rows.into_iter()
            .flatten()
            .map(|row| self.row(row))
            .collect()
    }

    fn row(&self, row: &Value) -> Row {
        let metadata = &row["object"]["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        let key = (text("namespace"), text("name"));
        let mut cells: Vec<_> = self
            .shown
            .iter()
            .map(|(at, _)| cell(&row["cells"][*at]))
            .collect();
        if let Some(name) = cells.first_mut() {
            name.insert_str(0, &self.prefix);
        }
        if self.namespaces {
            cells.insert(0, key.0.clone());
        }
        Row { key, cells }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Under the columns of a server.
    pub(crate) fn under(columns: &Columns, rows: impl IntoIterator<Item = Row>) -> Self {
        Self {
            columns: columns.headers(),
            rows: rows.into_iter().map(|row| row.cells).collect(),
        }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lines with their columns aligned.
    pub(crate) fn render(&self, headers: Headers, styles: Styles) -> String {
        self.render_beside(self, headers, styles)
    }

    /// The same, as wide as another table, so that what is appended to it stays aligned.
    pub(crate) fn render_beside(&self, other: &Self, headers: Headers, styles: Styles) -> String {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| shown(cell)).collect())
            .collect();
        let others: Vec<Vec<String>> = other
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| shown(cell)).collect())
            .collect();
        let widths = self.widths(&others);
        let mut out = String::new();
        if headers == Headers::Shown {
            out.push_str(&line(&self.columns, &widths, |text| styles.bold(text)));
        }
        for row in &rows {
            out.push_str(&line(row, &widths, |text| colour(text, styles)));
        }
        out
    }

    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let mut widths = vec![0; self.columns.len()];
        for row in std::iter::once(&self.columns).chain(rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// Whether the names of the columns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Headers {
    /// In the first line.
    Shown,
    /// Not (`--no-headers`).
    Hidden,
}

fn shown(cell: &str) -> String {
    let words: Vec<_> = cell.split('\n').map(str::trim_end).collect();
    let text = escape(&words.join(" ")).into_owned();
    match text.char_indices().nth(MAX_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Statuses stand out; anything else is as it is.
fn colour(text: &str, styles: Styles) -> String {
    match text {
        "True" | "ok" => styles.green(text),
        "False" | "fail" => styles.red(text),
        "Unknown" | "Warning" | "warn" => styles.yellow(text),
        other => other.to_owned(),
    }
}

fn line(cells: &[String], widths: &[usize], style: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in cells.iter().zip(widths) {
        if !cell.is_empty() {
            out.push_str(&" ".repeat(owed));
            owed = 0;
            out.push_str(&style(cell));
        }
        owed += width.saturating_sub(cell.chars().count()) + GAP;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        json!({"kind": "Table", "columnDefinitions": [
            {"name": "Name", "priority": 0}, {"name": "Accepted", "priority": 0}, {"name": "Server", "priority": 1}],
            "rows": [
                {"cells": ["default", "True", null], "object": {"metadata": {"name": "default", "namespace": "team"}}},
                {"cells": ["a-longer-name", "\u{1b}[31mx", 3], "object": {"metadata": {"name": "a-longer-name", "namespace": "t"}}}]})
    }

    fn text(width: Width, namespaces: Namespaces, headers: Headers, prefix: &str) -> String {
        let answer = answer();
        let columns = Columns::of(&answer, width, namespaces, prefix);
        Table::under(&columns, columns.rows(&answer)).render(headers, Styles::PLAIN)
    }

    #[test]
    fn columns_are_those_of_the_server() {
        assert_eq!(
            text(Width::Normal, Namespaces::Hidden, Headers::Shown, ""),
            "NAME            ACCEPTED\ndefault         True\na-longer-name   \\u{1b}[31mx\n"
        );
        assert_eq!(
            text(
                Width::Wide,
                Namespaces::Shown,
                Headers::Hidden,
                "routingpolicy.relay.dev/"
            ),
            "team        routingpolicy.relay.dev/default         True          <none>\nt           routingpolicy.relay.dev/a-longer-name   \\u{1b}[31mx   3\n"
        );
    }
}
