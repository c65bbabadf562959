//! What `-f` names: files, folders and standard input, each whole, bounded and text.

use std::io::Read;
use std::path::{Path, PathBuf};

use files::ReadError;

use crate::error::CliError;
use api::exit::Exit;

/// Largest file.
const MAX_BYTES: u64 = api::document::MAX_BYTES as u64;
/// Most files of one command.
const MAX_FILES: usize = 10_000;
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A text and what to call it.
#[derive(Debug)]
pub(crate) struct Text {
    /// The path as it was given, or `standard input`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads everything that was named, in order; the files of a folder by name, folders inside it not.
///
/// # Errors
/// The first that cannot be read.
pub(crate) fn read(names: &[PathBuf]) -> Result<Vec<Text>, CliError> {
    let mut texts = Vec::new();
    let mut from_input = false;
    for name in names {
        if name.as_os_str() == "-" {
            if from_input {
                return Err(CliError::usage("standard input was named twice"));
            }
            from_input = true;
            texts.push(standard_input()?);
        } else if name.is_dir() {
            for path in folder(name)? {
                texts.push(file(&path)?);
            }
        } else {
            texts.push(file(name)?);
        }
        if texts.len() > MAX_FILES {
            return Err(CliError::refused(format!(
                "there are more than {MAX_FILES} files"
            )));
        }
    }
    Ok(texts)
}

/// Reads one file of at most 1 MiB.
///
/// # Errors
/// [`Exit::NotFound`] where there is none, [`Exit::Refused`] for what is no text of ours.
pub(crate) fn file(path: &Path) -> Result<Text, CliError> {
    match files::read_text(path, MAX_BYTES) {
        Ok(file) => Ok(Text {
            name: path.display().to_string(),
            text: file.text,
        }),
        Err(error) => {
            let exit = match &error {
                ReadError::Io(_) if error.is_not_found() => Exit::NotFound,
                ReadError::Io(_) => Exit::Failed,
                _ => Exit::Refused,
            };
            let line = match &error {
                ReadError::Io(_) => format!("cannot read {}: {error}", path.display()),
                _ => format!("{}: {error}", path.display()),
            };
            Err(CliError::new(exit, line).caused_by(&error))
        }
    }
}

fn folder(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let refused = |error: std::io::Error| {
        CliError::new(
            Exit::Failed,
            format!("cannot read {}: {error}", path.display()),
        )
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(refused)? {
        let entry = entry.map_err(refused)?.path();
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !entry.is_dir() {
            found.push(entry);
        }
        if found.len() > MAX_FILES {
            return Err(CliError::refused(format!(
                "{}: has more than {MAX_FILES} files",
                path.display()
            )));
        }
    }
    if found.is_empty() {
        return Err(CliError::refused(format!(
            "{}: holds no file that ends with .yaml, .yml or .json",
            path.display()
        )));
    }
    found.sort();
    Ok(found)
}

/// Standard input, whole.
///
/// # Errors
/// More than 1 MiB, or no text.
pub(crate) fn standard_input() -> Result<Text, CliError> {
    let name = "standard input";
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::new(Exit::Failed, format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::refused(format!(
            "{name}: has more than {MAX_BYTES} bytes, the limit"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::refused(format!("{name}: is not valid UTF-8 at byte {at}"))
    })?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    Ok(Text {
        name: name.to_owned(),
        text,
    })
}
