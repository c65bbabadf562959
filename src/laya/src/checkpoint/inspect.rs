//! A look at a folder that may be broken: what it holds, what is missing, what is wrong, without packing any weights
//! (`laya inspect`, the meaning check of a fetch: control-plane 11, step 6).

use std::path::Path;

use crate::mmap::Mapped;
use crate::tokenizer::Tokenizer;

use super::folder::{self, Folder, MANIFEST, MAX_CONFIG_BYTES, MAX_TOKENIZER_BYTES};
use super::{
    AgentConfig, ContractRef, EncoderConfig, FileEntry, LoadError, MAX_MANIFEST_BYTES, Manifest,
    checkpoint_digest, config, contract_of, header, tensors,
};

/// What was found in a folder.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// The usual files that are there, with digests.
    pub files: Vec<FileEntry>,
    /// Required files that are not there.
    pub missing: Vec<&'static str>,
    /// Checkpoint digest of the files that are there; none while a required one is missing.
    pub digest: Option<String>,
    /// The digest that a manifest claims.
    pub manifest_digest: Option<String>,
    /// The contract it names.
    pub contract: Option<ContractRef>,
    /// Configuration of the decision head.
    pub agent: Option<AgentConfig>,
    /// Shape of the encoder.
    pub encoder: Option<EncoderConfig>,
    /// Name and shape of every tensor.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// One line for each thing that keeps it from serving, or that is worth knowing.
    pub problems: Vec<String>,
}

/// Looks at a folder.
///
/// # Errors
/// When the folder itself cannot be resolved; everything else is in [`Inspection::problems`].
pub fn inspect(dir: &Path, root: Option<&Path>) -> Result<Inspection, LoadError> {
    let folder = Folder::open(dir, root, &dir.display().to_string())?;
    let mut seen = Inspection::default();
    for name in folder::REQUIRED.into_iter().chain(folder::OPTIONAL) {
        match folder.hash(name) {
            Ok(Some((sha256, size))) => seen.files.push(FileEntry {
                path: name.to_owned(),
                sha256,
                size,
            }),
            Ok(None) if folder::REQUIRED.contains(&name) => seen.missing.push(name),
            Ok(None) => {}
            Err(error) => seen.problems.push(error.to_string()),
        }
    }
    if seen.missing.is_empty() && seen.problems.is_empty() {
        seen.digest = Some(checkpoint_digest(&seen.files));
    }
    let manifest = manifest(&folder, &mut seen);
    match contract_of(&folder, manifest.as_ref(), &mut seen.problems) {
        Ok((_, contract)) => seen.contract = contract,
        Err(error) => seen.problems.push(error.to_string()),
    }
    let mut table = |name, limit| match folder.bytes(name, limit) {
        Ok(bytes) => bytes.and_then(|bytes| {
            folder::table(&bytes)
                .map_err(|why| seen.problems.push(format!("{name}: {why}")))
                .ok()
        }),
        Err(error) => {
            seen.problems.push(error.to_string());
            None
        }
    };
    let agent = table("rl_agent_config.json", MAX_CONFIG_BYTES).map(|t| config::agent(&t));
    let encoder = table("encoder/config.json", MAX_CONFIG_BYTES).map(|t| config::encoder(&t));
    let specials = table("tokenizer/tokenizer_config.json", MAX_CONFIG_BYTES);
    let mut kept = |what: &str, why: String| seen.problems.push(format!("{what}: {why}"));
    seen.agent = agent.and_then(|read| read.map_err(|why| kept("rl_agent_config.json", why)).ok());
    seen.encoder =
        encoder.and_then(|read| read.map_err(|why| kept("encoder/config.json", why)).ok());
    if let (Some(specials), Ok(Some(json))) = (
        specials,
        folder.bytes("tokenizer/tokenizer.json", MAX_TOKENIZER_BYTES),
    ) && let Err(why) = Tokenizer::new(&json, &specials)
    {
        kept("tokenizer", why);
    }
    if let Some(agent) = &seen.agent {
        seen.problems.extend(agent.temperatures.warnings.clone());
    }
    weights(&folder, &mut seen);
    Ok(seen)
}

fn manifest(folder: &Folder, seen: &mut Inspection) -> Option<Manifest> {
    let bytes = match folder.bytes(MANIFEST, MAX_MANIFEST_BYTES) {
        Ok(bytes) => bytes?,
        Err(error) => {
            seen.problems.push(error.to_string());
            return None;
        }
    };
    match Manifest::parse(&bytes) {
        Ok(manifest) => {
            for entry in &manifest.files {
                if let Some(found) = seen.files.iter().find(|f| f.path == entry.path)
                    && found != entry
                {
                    let (expected, got) = (entry.sha256.clone(), found.sha256.clone());
                    let error = LoadError::Sha256 {
                        path: entry.path.clone(),
                        expected,
                        got,
                    };
                    seen.problems.push(error.to_string());
                }
            }
            seen.manifest_digest = Some(manifest.digest.clone());
            Some(manifest)
        }
        Err(why) => {
            seen.problems.push(format!("{MANIFEST}: {why}"));
            None
        }
    }
}

fn weights(folder: &Folder, seen: &mut Inspection) {
    let map = match folder.file("model.safetensors") {
        Ok(Some((file, size))) if size > 0 => Mapped::new(&file),
        Ok(Some(_)) => return seen.problems.push("model.safetensors is empty".to_owned()),
        // Missing, or said above.
        Ok(None) | Err(_) => return,
    };
    let found = map
        .map_err(|e| e.to_string())
        .and_then(|map| header::parse(map.bytes()));
    match found {
        Ok(found) => {
            seen.tensors = found
                .iter()
                .map(|(name, t)| (name.clone(), t.shape.clone()))
                .collect();
            if let (Some(agent), Some(encoder)) = (&seen.agent, &seen.encoder) {
                let acts = found
                    .get("act_head.2.bias")
                    .and_then(|t| t.shape.first().copied());
                let expected =
                    tensors::expected(agent, encoder, agent.act_outputs.or(acts).unwrap_or(1));
                if let Err(error) = tensors::check(&folder.origin, &expected, &found) {
                    seen.problems.push(error.to_string());
                }
            }
        }
        Err(why) => seen.problems.push(format!("model.safetensors: {why}")),
    }
}
