//! `laya parity DIR`: compares a reduced precision with f32 on the same weights and writes the report that serving asks
//! for (wire.md 22.2).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use decision::json::{self, Object, Value, key_text};
use decision::wire::Question;
use laya::parity::{LEAST_STATES, ParityReport, ProbeState, Verdict, compare, generate_states};
use laya::probe::probe_questions;
use laya::{Checkpoint, Engine, EngineOptions, LoadOptions, Precision};

use super::CliError;
use crate::host::{EXIT_CHECKPOINT, EXIT_CONFIGURATION};

/// Exit code when the verdict is not `Passed`.
const EXIT_NOT_PASSED: u8 = 1;
/// Largest file of rows, in bytes.
const MAX_DATA_BYTES: u64 = 256 << 20;
/// Most rows that are asked.
const MAX_ROWS: usize = 10_000;

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Parity {
    /// The checkpoint's folder
    dir: PathBuf,
    /// The precision to compare with f32: int8
    #[arg(long)]
    precision: String,
    /// Rows to ask, as JSON lines with `state` and perhaps `expected`; without it states are made from the contract
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Where the report goes; not into the checkpoint's folder
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Parity) -> Result<u8, CliError> {
    let Parity {
        dir,
        precision,
        data,
        out,
    } = arguments;
    let precision: Precision = precision
        .parse()
        .map_err(|error| CliError::refused(format!("{error}")))?;
    if precision == Precision::F32 {
        return Err(CliError::refused("f32 is what others are compared with"));
    }
    let inside = || CliError::refused("the report must not lie in the checkpoint's folder");
    if lies_in(out, dir) {
        return Err(inside());
    }
    // Before minutes of asking, not after.
    can_be_written(out)
        .map_err(|error| CliError::refused(format!("cannot write {}: {error}", out.display())))?;
    // `new/../checkpoint/r.json` shows where it leads once `new` is there.
    if lies_in(out, dir) {
        return Err(inside());
    }
    let engine = Engine::new(EngineOptions::default())
        .map_err(|error| CliError::new(EXIT_CONFIGURATION, error.to_string()))?;
    let reference = load(&engine, dir, Precision::F32)?;
    let reduced = load(&engine, dir, precision)?;
    let questions = probe_questions(&reference)
        .map_err(|problem| CliError::new(EXIT_CHECKPOINT, problem.to_string()))?;
    let states = match data {
        Some(file) => read_rows(file, &questions)?,
        None => generate_states(&questions, LEAST_STATES),
    };
    eprintln!(
        "laya: asking {} states {} questions each, twice",
        states.len(),
        questions.len()
    );
    let time = jiff::Timestamp::now().to_string();
    let report = compare(&engine, &reference, &reduced, &states, &questions, &time)
        .map_err(|error| CliError::new(EXIT_CHECKPOINT, error.to_string()))?;
    write_report(out, &report).map_err(|error| {
        CliError::new(
            EXIT_CONFIGURATION,
            format!("cannot write {}: {error}", out.display()),
        )
    })?;
    for measure in &report.measures {
        let sign = if measure.holds() { "ok" } else { "FAIL" };
        println!(
            "{sign:<5}{:<28} {:.4} (bound {})",
            measure.name, measure.value, measure.bound
        );
    }
    println!("{:?}: {}", report.verdict, out.display());
    Ok(if report.verdict == Verdict::Passed {
        0
    } else {
        EXIT_NOT_PASSED
    })
}

fn load(engine: &Engine, dir: &Path, precision: Precision) -> Result<Checkpoint, CliError> {
    let options = LoadOptions {
        precision,
        ..LoadOptions::default()
    };
    engine
        .load(dir, &options)
        .map_err(|error| CliError::new(EXIT_CHECKPOINT, error.to_string()))
}

/// Whether a file would lie in a folder, perhaps in parts of it that are not there yet.
fn lies_in(file: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    let there = file.ancestors().skip(1).find_map(|ancestor| {
        let ancestor = if ancestor == Path::new("") {
            Path::new(".")
        } else {
            ancestor
        };
        ancestor.canonicalize().ok()
    });
    there.is_some_and(|there| there.starts_with(&folder))
}

/// Creates the folder of a report, and a file beside it for a moment.
fn can_be_written(out: &Path) -> std::io::Result<()> {
    if out.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    let partial = partial(out)?;
    if let Some(parent) = out.parent().filter(|parent| *parent != Path::new("")) {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(&partial)?;
    fs::remove_file(&partial)
}

/// The file that becomes the report by renaming.
fn partial(out: &Path) -> std::io::Result<PathBuf> {
    let mut name = out
        .file_name()
        .ok_or_else(|| std::io::Error::other("it names no file"))?
        .to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    Ok(out.with_file_name(name))
}

fn read_rows(file: &Path, questions: &[Question]) -> Result<Vec<ProbeState>, CliError> {
    let cannot = |why: String| CliError::refused(format!("cannot read {}: {why}", file.display()));
    let size = fs::metadata(file)
        .map_err(|error| cannot(error.to_string()))?
        .len();
    if size > MAX_DATA_BYTES {
        return Err(cannot(format!(
            "it has {size} bytes, limit {MAX_DATA_BYTES}"
        )));
    }
    let text = fs::read_to_string(file).map_err(|error| cannot(error.to_string()))?;
    parse_rows(&text, questions).map_err(cannot)
}

/// JSON lines; blank ones and those that begin with `#` are skipped (wire.md 19.1).
fn parse_rows(text: &str, questions: &[Question]) -> Result<Vec<ProbeState>, String> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |problem: &str| format!("line {}: {problem}", number + 1);
        if rows.len() == MAX_ROWS {
            return Err(at(&format!("more than {MAX_ROWS} rows")));
        }
        let row = json::read(line.as_bytes()).map_err(|error| at(&error.to_string()))?;
        let row = row.as_object().ok_or_else(|| at("no object"))?;
        let state = row
            .get("state")
            .filter(|state| !state.is_null())
            .ok_or_else(|| at("no 'state'"))?;
        rows.push(ProbeState {
            state: state.clone(),
            expected: row
                .get("expected")
                .and_then(Value::as_object)
                .map(|e| labels(e, questions))
                .unwrap_or_default(),
        });
    }
    Ok(rows)
}

/// Expected labels of the questions that are asked; what is no single label says nothing here.
fn labels(expected: &Object, questions: &[Question]) -> BTreeMap<String, String> {
    let asked = |id: &str| questions.iter().any(|question| question.id == id);
    let label = |value: &Value| match value {
        Value::String(_) | Value::Bool(_) | Value::Integer(_) => Some(key_text(value)),
        _ => None,
    };
    let labels = expected
        .iter()
        .filter_map(|(id, value)| Some((id.to_string_lossy(), label(value)?)));
    labels.filter(|(id, _)| asked(id)).collect()
}

/// Written beside, synced and renamed, so that a report is whole or not there.
fn write_report(out: &Path, report: &ParityReport) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(report).map_err(std::io::Error::other)?;
    let partial = partial(out)?;
    let write = || {
        let mut file = fs::File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&partial, out)
    };
    let written = write();
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use decision::wire::check_questions;

    use super::*;

    #[test]
    fn rows_have_states_and_perhaps_labels() {
        let text = br#"{"a":{"type":"noul","instructions":"?"},"b":{"type":"score","instructions":"?","criteria":["x","y"]}}"#;
        let Ok(Value::Object(questions)) = json::read(text) else {
            panic!("an object")
        };
        let questions = check_questions(&questions).unwrap();
        let rows = parse_rows(
            "# comment\n\n{\"state\":\"x\"}\n{\"state\":{\"k\":1},\"expected\":{\"a\":true,\"b\":1,\"c\":\"no such\"}}\n\
             {\"state\":[],\"expected\":{\"b\":0.5}}",
            &questions,
        )
        .unwrap();
        let labels: Vec<Vec<(&str, &str)>> = rows
            .iter()
            .map(|row| {
                row.expected
                    .iter()
                    .map(|(id, label)| (id.as_str(), label.as_str()))
                    .collect()
            })
            .collect();
        assert_eq!(labels, [vec![], vec![("a", "true"), ("b", "1")], vec![]]);
        for (text, expected) in [
            ("{", "line 1: "),
            ("\n[]", "line 2: no object"),
            ("{}", "line 1: no 'state'"),
            ("{\"state\":null}", "line 1: no 'state'"),
        ] {
            assert!(
                parse_rows(text, &questions)
                    .unwrap_err()
                    .starts_with(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn a_report_is_not_written_into_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("model/tokenizer")).unwrap();
        let model = folder.path().join("model");
        for (file, inside) in [
            ("model/r.json", true),
            ("model/tokenizer/r.json", true),
            ("model/../r.json", false),
            ("r.json", false),
            ("none/r.json", false),
            ("model/none/r.json", true),
            ("model/none/deeper/r.json", true),
        ] {
            assert_eq!(lies_in(&folder.path().join(file), &model), inside, "{file}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_known_before_and_folders_are_made() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        for (out, writable) in [
            ("r.json", true),
            ("new/deeper/r.json", true),
            ("file", true),
            ("folder", false),
            ("file/r.json", false),
            ("new/..", false),
        ] {
            let out = folder.path().join(out);
            let result = can_be_written(&out);
            assert_eq!(result.is_ok(), writable, "{}: {result:?}", out.display());
        }
        let deeper: Vec<_> = fs::read_dir(folder.path().join("new/deeper"))
            .unwrap()
            .collect();
        assert!(deeper.is_empty(), "nothing is left: {deeper:?}");
    }
}
