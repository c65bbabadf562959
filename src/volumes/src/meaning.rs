//! Whether whole files mean something (control-plane 11, step 6): to the engine, and for the contract asked for.

use std::path::Path;

use decision::contract::Contract;
use laya::checkpoint::{ContractRef, Manifest};
use laya::{LoadError, checkpoint};

use crate::source::open_inside;
use crate::{Digest, TaskError};

/// Largest wording.
const MAX_WORDING_BYTES: u64 = 1 << 20;

/// What a checkpoint says of itself.
#[derive(Debug)]
pub(crate) struct Understood {
    /// The contract it was trained for.
    pub(crate) contract: Option<ContractRef>,
    /// Its wording.
    pub(crate) decisions: Option<String>,
    /// Lines for people.
    pub(crate) notes: Vec<String>,
}

/// Checks a folder of whole files. What a manifest tells of the contract comes before what its files say.
pub(crate) fn understand(folder: &Path, told: Option<&Manifest>) -> Result<Understood, TaskError> {
    let meant = checkpoint::meaning(folder, "the checkpoint").map_err(|error| match error {
        LoadError::Read { path, source } => TaskError::io("read", path, source),
        LoadError::UnsafePath { path, why } => TaskError::UnsafePath {
            path: path.display().to_string(),
            why,
        },
        error => TaskError::BadCheckpoint {
            why: format!("{error}; publish the checkpoint again"),
        },
    })?;
    Ok(Understood {
        contract: told
            .and_then(|manifest| manifest.contract.clone())
            .or(meant.contract),
        decisions: meant.questions.as_ref().map(Contract::export),
        notes: meant.warnings,
    })
}

/// Whether the contract is the one asked for. One that names none is not refused: whoever asks says so (control-plane 2).
pub(crate) fn agrees(
    expected: Option<&Digest>,
    found: Option<&ContractRef>,
) -> Result<(), TaskError> {
    match (expected, found) {
        (Some(expected), Some(found)) if expected.to_string() != found.digest => {
            Err(TaskError::ContractMismatch {
                expected: expected.to_string(),
                got: found.digest.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// The wording in a published folder, if it can be read.
pub(crate) fn wording(folder: &Path) -> Option<String> {
    use std::io::Read as _;
    let read = |name| {
        let file = open_inside(folder, name).ok()??;
        let mut bytes = Vec::new();
        file.take(MAX_WORDING_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let named = read("decisions.json").and_then(|bytes| Contract::import(&bytes).ok());
    let contract = named.or_else(|| {
        read("questions.json").and_then(|bytes| Contract::import_questions(&bytes).ok())
    })?;
    Some(contract.export())
}
