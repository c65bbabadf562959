//! Parity reports (wire.md 22.2): a reduced precision serves only with one that fits and has passed. What a report must
//! say is the engine's; where reports lie is here.

use std::fs;
use std::path::{Path, PathBuf};

use laya::parity::ParityReport;
use laya::{Checkpoint, Engine, LoadError, Precision};

/// Largest report, in bytes.
const MAX_REPORT_BYTES: u64 = 1 << 20;
/// Most files of a folder that are looked at.
const MAX_REPORTS: usize = 256;

/// Looks for a report about this checkpoint in its precision: the file, or any `.json` file of the folder.
///
/// # Errors
/// [`LoadError::NoParity`], with what was found instead.
pub fn find_report(
    place: Option<&Path>,
    checkpoint: &Checkpoint,
    engine: &Engine,
) -> Result<(), LoadError> {
    let digest = &checkpoint.info().digest;
    let mut why = match place {
        None => "LAYA_PARITY is not set".to_owned(),
        Some(place) => format!("{} holds no report", place.display()),
    };
    for file in place.map(files).unwrap_or_default() {
        let report = match read(&file) {
            Ok(report) => report,
            Err(problem) => {
                why = format!("{}: {problem}", file.display());
                continue;
            }
        };
        match report.accepts(digest, checkpoint.precision(), engine) {
            Ok(()) => return Ok(()),
            Err(problem) => why = format!("{}: {problem}", file.display()),
        }
    }
    Err(LoadError::NoParity {
        origin: checkpoint.info().origin.clone(),
        precision: checkpoint.precision().to_string(),
        why,
    })
}

/// What can be said before a checkpoint is loaded: whether there is any report that lets some checkpoint serve in this
/// precision.
///
/// # Errors
/// One phrase: what was found instead.
pub fn check_place(
    place: Option<&Path>,
    precision: Precision,
    engine: &Engine,
) -> Result<(), String> {
    let place = place.ok_or("LAYA_PARITY is not set")?;
    let mut why = format!("{} holds no report", place.display());
    for file in files(place) {
        let accepted =
            read(&file).and_then(|report| report.accepts(&report.source_digest, precision, engine));
        match accepted {
            Ok(()) => return Ok(()),
            Err(problem) => why = format!("{}: {problem}", file.display()),
        }
    }
    Err(why)
}

fn files(place: &Path) -> Vec<PathBuf> {
    if !place.is_dir() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let reports = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut reports: Vec<PathBuf> = reports.take(MAX_REPORTS).collect();
    reports.sort();
    reports
}

fn read(file: &Path) -> Result<ParityReport, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MAX_REPORT_BYTES {
        return Err(format!("it has {size} bytes, limit {MAX_REPORT_BYTES}"));
    }
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| format!("it is no parity report: {error}"))
}
