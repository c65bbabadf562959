//! Whether a folder means something to the engine, without hashing or packing its weights: the check before a checkpoint
//! is published (control-plane 11, step 6). Only the header of the weights is read, so memory stays small whatever their
//! size.

use std::path::Path;

use decision::contract::Contract;

use super::folder::{self, Folder, MAX_CONFIG_BYTES, MAX_TOKENIZER_BYTES};
use super::{ContractRef, LoadError, contract_of, header, read_configs, tensors};
use crate::mmap::Mapped;
use crate::tokenizer::Tokenizer;

/// What a folder says of itself.
#[derive(Debug, Clone)]
pub struct Meaning {
    /// The contract of its own `decisions.json`, else `questions.json`; a manifest in the folder is not looked at.
    pub contract: Option<ContractRef>,
    /// The questions of that contract.
    pub questions: Option<Contract>,
    /// Lines to log: a wording that cannot be read.
    pub warnings: Vec<String>,
}

/// Checks that the configurations parse, the tensors have the shapes they say, and the tokenizer loads and fits.
///
/// # Errors
/// [`LoadError`], the same that loading would end with.
pub fn meaning(dir: &Path, origin: &str) -> Result<Meaning, LoadError> {
    let folder = Folder::open(dir, None, origin)?;
    let (agent, encoder) = read_configs(&folder)?;
    weights(&folder, &agent, &encoder)?;
    tokenizer(&folder, encoder.vocabulary)?;
    let mut warnings = agent.temperatures.warnings.clone();
    let (questions, contract) = contract_of(&folder, None, &mut warnings)?;
    Ok(Meaning {
        contract,
        questions,
        warnings,
    })
}

fn weights(
    folder: &Folder,
    agent: &super::AgentConfig,
    encoder: &super::EncoderConfig,
) -> Result<(), LoadError> {
    const WEIGHTS: &str = "model.safetensors";
    let origin = || folder.origin.clone();
    let bad = |why| LoadError::Header {
        origin: origin(),
        why,
    };
    let (file, size) = folder
        .file(WEIGHTS)?
        .ok_or_else(|| LoadError::NoWeights { origin: origin() })?;
    if size < 8 {
        return Err(bad(format!("{size} bytes are no safetensors file")));
    }
    let map = Mapped::new(&file).map_err(|source| LoadError::Read {
        path: folder.path_of(WEIGHTS),
        source,
    })?;
    let found = header::parse(map.bytes()).map_err(bad)?;
    let acts = found
        .get("act_head.2.weight")
        .and_then(|t| t.shape.first().copied());
    let outputs = agent.act_outputs.or(acts).unwrap_or(1);
    tensors::check(
        &folder.origin,
        &tensors::expected(agent, encoder, outputs),
        &found,
    )
}

fn tokenizer(folder: &Folder, vocabulary: usize) -> Result<(), LoadError> {
    let bad = |why| LoadError::Tokenizer {
        origin: folder.origin.clone(),
        why,
    };
    let json = folder.required("tokenizer/tokenizer.json", MAX_TOKENIZER_BYTES)?;
    let config = folder.required("tokenizer/tokenizer_config.json", MAX_CONFIG_BYTES)?;
    let config =
        folder::table(&config).map_err(|why| bad(format!("tokenizer_config.json: {why}")))?;
    let tokenizer = Tokenizer::new(&json, &config).map_err(bad)?;
    let bound = tokenizer.id_bound() as usize;
    if bound > vocabulary {
        return Err(bad(format!(
            "ids up to {}, but the model knows {vocabulary} tokens",
            bound - 1
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{LoadFailure, Shape, write_random};

    #[test]
    fn what_loads_means_something_and_what_does_not_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("tiny");
        write_random(&dir, Shape::Tiny, 1).unwrap();
        let said = meaning(&dir, "tiny").unwrap();
        assert_eq!(said.questions.is_some(), said.contract.is_some());

        let rows: [(&str, &[u8], &str); 5] = [
            ("rl_agent_config.json", b"{", "rl_agent_config.json"),
            ("encoder/config.json", b"[]", "encoder/config.json"),
            ("model.safetensors", b"12345678nonsense", "header"),
            ("tokenizer/tokenizer.json", b"{}", "tokenizer"),
            ("tokenizer/tokenizer_config.json", b"{}", "cls_token"),
        ];
        for (name, content, says) in rows {
            let path = dir.join(name);
            let kept = std::fs::read(&path).unwrap();
            std::fs::write(&path, content).unwrap();
            let error = meaning(&dir, "tiny").expect_err(name);
            assert_eq!(error.failure(), LoadFailure::BadCheckpoint, "{name}");
            assert!(error.to_string().contains(says), "{name}: {error}");
            std::fs::write(&path, kept).unwrap();
        }
        std::fs::remove_file(dir.join("model.safetensors")).unwrap();
        assert!(matches!(
            meaning(&dir, "tiny"),
            Err(LoadError::NoWeights { .. })
        ));
    }
}
