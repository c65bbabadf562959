//! `relay laya migrate` (training.md 2.4): makes rows of older questions rows of those in force, by an explicit map and
//! never by guessing. Works on the mirror of the dataset, which `relayd local` takes in before its next use.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use decision::relay_contract;
use files::{Lock, PRIVATE, Places, lock_path};
use jiff::Timestamp;
use routing::dataset::{
    DatasetView, Finding, InForce, Migration, MigrationMap, RejectedLine, Row, RowFile, migrate,
    read_file,
};
use serde::Serialize;

use crate::error::{CliError, Exit};
use crate::output::{OutputArguments, counted, one_line};
use crate::terminal::{Styles, escape, tell};

/// Longest map, in bytes.
const MAX_MAP: u64 = 1 << 20;
/// Longest dataset, in bytes.
const MAX_DATASET: u64 = 256 << 20;
/// How long others that write the dataset are waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most rows and lines that are named one by one for people; JSON has all.
const MAX_NAMED: usize = 20;

/// Arguments of `relay laya migrate`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct MigrateArguments {
    /// What became of the older questions and options, TOML or JSON
    #[arg(long, value_name = "FILE")]
    map: PathBuf,

    /// Tell what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    output: OutputArguments,
}

const AFTER_HELP: &str = "\
A map, in TOML:
  version = 1
  from = \"sha256:…\"                       # shape of the rows it is for; without it, rows that have none
  drop = [\"requires_cloud\"]               # older questions without a successor
  [questions.agent]
  was = \"role\"                            # older id, if it was another
  options = { tester = \"qa-engineer\" }    # older option = option in force

Examples:
  relay laya memory list --stale
  relay laya migrate --map map.toml --dry-run
  relay laya migrate --map map.toml

Changes <agent folder>/laya/training/data/dataset.jsonl; the file as it was is kept beside it.

Exit codes: 0 done (also: there was nothing to do), 1 other error (also: rows the map is for stay stale),
2 bad arguments";

/// What was done, or would be.
#[derive(Debug, Serialize)]
struct Report {
    file: PathBuf,
    rows: usize,
    /// Ids of rows that are in force from now on.
    mapped: Vec<String>,
    /// Rows the map is for that stay stale, with the reason.
    stale: Vec<Finding>,
    /// Lines that are no rows.
    rejected: Vec<Rejected>,
    dry_run: bool,
    /// The file as it was; absent where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Rejected {
    line: usize,
    reason: String,
}

/// Runs the command.
pub(super) fn run(arguments: &MigrateArguments) -> Result<Exit, CliError> {
    let places = Places::find(&|name| std::env::var_os(name))
        .map_err(|error| CliError::usage(format!("cannot find your files: {error}")))?;
    let path = places.laya().join("training/data/dataset.jsonl");
    let map = files::read_text(&arguments.map, MAX_MAP)
        .map_err(|error| CliError::file(&arguments.map, error))?;
    let map =
        MigrationMap::read(&map.text).map_err(|error| CliError::file(&arguments.map, error))?;
    if !path.exists() {
        return Err(CliError::file(&path, "there is no such file")
            .hint("it is written when a router on this machine learned its first task"));
    }
    let lock = lock_path(&path);
    let _lock = Lock::take_within(&lock, PATIENCE)
        .map_err(|error| CliError::file(&lock, error))?
        .ok_or_else(|| CliError::file(&path, "another process is changing it"))?;
    let file =
        files::read_text(&path, MAX_DATASET).map_err(|error| CliError::file(&path, error))?;
    let RowFile { rows, rejected } = read_file(&file.text);
    let view = DatasetView {
        rows: &rows,
        highest_session_number: 0,
    };
    let Migration { edit, remaining } = migrate(&view, &map, &InForce::of(relay_contract()));
    let mut report = Report {
        file: path.clone(),
        rows: rows.len(),
        mapped: edit.ids.clone(),
        stale: remaining,
        rejected: rejected
            .iter()
            .map(|line| Rejected {
                line: line.line,
                reason: line.reason.clone(),
            })
            .collect(),
        dry_run: arguments.dry_run,
        backup: None,
    };
    if !arguments.dry_run && !edit.is_empty() {
        let backup = backup(&path, &file.text)?;
        let text = rewritten(&file.text, &edit.applied(&rows), &rejected);
        write(&path, &text)?;
        report.backup = Some(backup);
    }
    arguments
        .output
        .print(&report, |styles| render(&report, styles))?;
    if let Some(backup) = &report.backup {
        tell(&format!(
            "the file as it was: {}\n",
            escape(&backup.display().to_string())
        ));
    }
    Ok(if report.stale.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    files::write_whole(path, text.as_bytes(), PRIVATE).map_err(|error| CliError::file(path, error))
}

/// Keeps the file as it is under a name that nothing has yet.
fn backup(path: &Path, text: &str) -> Result<PathBuf, CliError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut seconds = Timestamp::now().as_second();
    loop {
        let kept = path.with_file_name(format!("{name}.before-{seconds}"));
        if kept.symlink_metadata().is_err() {
            return write(&kept, text).map(|()| kept);
        }
        seconds += 1;
    }
}

/// The file with its rows as they are now, in their places. Every other line stays as it is: the router takes a row whose
/// line is gone for one that was forgotten, and a line that is no row for one that may be mended.
fn rewritten(before: &str, rows: &[Row], rejected: &[RejectedLine]) -> String {
    let mut rows = rows.iter().map(Row::line);
    let mut rejected = rejected.iter().map(|line| line.line).peekable();
    let mut text = String::with_capacity(before.len());
    let mut put = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for (number, line) in (1..).zip(before.lines()) {
        let stays = line.trim().is_empty() || rejected.next_if_eq(&number).is_some();
        match stays {
            true => put(line),
            false => rows.next().into_iter().for_each(&mut put),
        }
    }
    rows.for_each(put);
    text
}

fn render(report: &Report, styles: Styles) -> String {
    let done = if report.dry_run {
        "would be mapped"
    } else {
        "mapped"
    };
    let mut text = format!(
        "{}: {} {done}, {} of those the map is for left stale, {} no row
",
        counted(report.rows as u64, "row", "rows"),
        report.mapped.len(),
        report.stale.len(),
        counted(report.rejected.len() as u64, "line is", "lines are")
    );
    let stale = report
        .stale
        .iter()
        .map(|row| (one_line(&row.path, 64), one_line(&row.message, 200)))
        .collect();
    text.push_str(&named("Stay stale", stale, styles));
    let rejected = report
        .rejected
        .iter()
        .map(|line| (format!("line {}", line.line), one_line(&line.reason, 200)))
        .collect();
    text.push_str(&named("No rows", rejected, styles));
    text
}

fn named(heading: &str, lines: Vec<(String, String)>, styles: Styles) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(MAX_NAMED);
    let mut text = format!("\n{}\n", styles.bold(heading));
    for (name, why) in lines.into_iter().take(MAX_NAMED) {
        text.push_str(&format!("  {name:<12}{why}\n"));
    }
    if more > 0 {
        text.push_str(&format!("  and {more} more; `-o json` has all\n"));
    }
    text
}
