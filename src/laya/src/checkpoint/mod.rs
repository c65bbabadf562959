//! Checkpoint folders: what must be in them, how they are verified, and how they become a network (wire.md 12,
//! control-plane 2, 11). Everything is bounded before it is allocated; nothing in a folder is ever written.

mod config;
mod error;
mod folder;
mod header;
mod inspect;
mod manifest;
mod meaning;
mod random;
mod tensors;
mod weights;

use std::path::{Path, PathBuf};

use decision::contract::Contract;

use crate::model::{Model, Precision};
use crate::tokenizer::Tokenizer;

pub use config::{AgentConfig, EncoderConfig, Reach, Temperatures};
pub use error::{LoadError, LoadFailure, Mismatch};
pub use folder::hex;
use folder::{Folder, MANIFEST, MAX_CONFIG_BYTES, MAX_TOKENIZER_BYTES};
pub use folder::{OPTIONAL as OPTIONAL_FILES, REQUIRED as REQUIRED_FILES};
pub use header::Dtype;
pub use inspect::{Inspection, inspect};
pub use manifest::{
    ContractRef, FileEntry, MAX_MANIFEST_BYTES, Manifest, Probe, ProbeAnswer, checkpoint_digest,
    is_inner_path,
};
pub use meaning::{Meaning, meaning};
pub use random::{RandomError, Shape, write_random};
pub(crate) use tensors::ACT_WIDTH;
use weights::Hashing;
pub(crate) use weights::decode;

/// How much of what a manifest says is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Every file and its size.
    #[default]
    Size,
    /// Also the SHA-256 of every file, taken of the bytes while they are read.
    Full,
}

/// How a checkpoint is to be loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Name of the source in messages; none: the folder.
    pub origin: Option<String>,
    /// Links may lead anywhere below this folder; none: nowhere outside the checkpoint's own.
    pub root: Option<PathBuf>,
    /// Precision of the big products. The caller checks the parity report ([`crate::parity`]).
    pub precision: Precision,
    /// What is checked against a manifest.
    pub verify: Verify,
    /// The checkpoint digest that is expected, `sha256:<hex>`.
    pub expect_digest: Option<String>,
    /// Path inside the folder → SHA-256 (`LAYA_SHA256_DIGESTS`); always hashed.
    pub sha256: Vec<(String, String)>,
    /// Refuse a folder that nothing verifies.
    pub require_verified: bool,
}

/// What a loaded checkpoint is, beside its weights.
#[derive(Debug, Clone)]
pub struct CheckpointInfo {
    /// The source as configured.
    pub origin: String,
    /// Checkpoint digest, `sha256:<hex>`.
    pub digest: String,
    /// SHA-256 of `tokenizer.json`, 64 hexadecimal digits: the key of caches of token ids.
    pub tokenizer_sha256: String,
    /// Whether something beside the folder itself said what it must hold, or a manifest in it did.
    pub verified: bool,
    /// The contract it was trained for, if it names one.
    pub contract: Option<ContractRef>,
    /// The questions of that contract, if the folder holds them.
    pub questions: Option<Contract>,
    /// Recorded probes of the manifest.
    pub probes: Vec<Probe>,
    /// Configuration of the decision head.
    pub agent: AgentConfig,
    /// Shape of the encoder.
    pub encoder: EncoderConfig,
    /// Lines to log: replaced temperatures, an unverified folder.
    pub warnings: Vec<String>,
}

/// A verified, loaded checkpoint. Immutable; share it behind an `Arc`.
pub struct Checkpoint {
    info: CheckpointInfo,
    tokenizer: Tokenizer,
    model: Model,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("origin", &self.info.origin)
            .field("digest", &self.info.digest)
            .finish_non_exhaustive()
    }
}

impl Checkpoint {
    /// Verifies and loads a folder. Runs on the rayon pool it is called in; takes as long as reading and packing the
    /// weights takes, so never call it on a thread that serves.
    ///
    /// # Errors
    /// [`LoadError`]: what was attempted on which file and tensor, with expected and found.
    pub fn load(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        let origin = options
            .origin
            .clone()
            .unwrap_or_else(|| dir.display().to_string());
        let folder = Folder::open(dir, options.root.as_deref(), &origin)?;
        let (agent, encoder) = read_configs(&folder)?;
        let mut check = Verification::begin(&folder, options)?;

        let json = check.bytes("tokenizer/tokenizer.json", MAX_TOKENIZER_BYTES)?;
        let tokenizer_config =
            folder.required("tokenizer/tokenizer_config.json", MAX_CONFIG_BYTES)?;
        let bad_tokenizer = |why| LoadError::Tokenizer {
            origin: origin.clone(),
            why,
        };
        let tokenizer_config = folder::table(&tokenizer_config)
            .map_err(|why| bad_tokenizer(format!("tokenizer_config.json: {why}")))?;
        let tokenizer_sha256 = folder::sha256(&json);
        // The two longest steps side by side.
        let (tokenizer, read) = rayon::join(
            || Tokenizer::new(&json, &tokenizer_config).map_err(bad_tokenizer),
            || {
                weights::read(
                    &folder,
                    &agent,
                    &encoder,
                    options.precision,
                    check.hashing("model.safetensors"),
                )
            },
        );
        let (tokenizer, read) = (tokenizer?, read?);
        let bound = tokenizer.id_bound() as usize;
        if bound > encoder.vocabulary {
            return Err(bad_tokenizer(format!(
                "ids up to {}, but the model knows {} tokens",
                bound - 1,
                encoder.vocabulary
            )));
        }
        check.weights(read.size, read.sha256)?;

        let mut warnings = agent.temperatures.warnings.clone();
        let Verified {
            digest,
            verified,
            manifest,
        } = check.finish(&mut warnings)?;
        let (questions, contract) = contract_of(&folder, manifest.as_ref(), &mut warnings)?;
        let probes = manifest.map(|m| m.probes).unwrap_or_default();
        let info = CheckpointInfo {
            origin,
            digest,
            tokenizer_sha256,
            verified,
            contract,
            questions,
            probes,
            agent,
            encoder,
            warnings,
        };
        Ok(Self {
            info,
            tokenizer,
            model: read.model,
        })
    }

    /// What it is.
    #[must_use]
    pub const fn info(&self) -> &CheckpointInfo {
        &self.info
    }

    /// Its tokenizer.
    #[must_use]
    pub const fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Precision of the big products.
    #[must_use]
    pub const fn precision(&self) -> Precision {
        self.model.precision
    }

    /// Memory of the packed weights in bytes; the embedding table stays mapped and is not counted.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.model.held_bytes()
    }

    pub(crate) const fn model(&self) -> &Model {
        &self.model
    }
}

fn read_configs(folder: &Folder) -> Result<(AgentConfig, EncoderConfig), LoadError> {
    const AGENT: &str = "rl_agent_config.json";
    const ENCODER: &str = "encoder/config.json";
    let agent = folder::table(&folder.required(AGENT, MAX_CONFIG_BYTES)?)
        .map_err(|why| folder.config(AGENT, why))?;
    let keys: Vec<String> = ["encoder", "head_layers"]
        .into_iter()
        .filter(|k| agent.get(k).is_none())
        .map(str::to_owned)
        .collect();
    if !keys.is_empty() {
        return Err(LoadError::MissingKeys {
            origin: folder.origin.clone(),
            keys,
        });
    }
    let encoder = folder::table(&folder.required(ENCODER, MAX_CONFIG_BYTES)?)
        .map_err(|why| folder.config(ENCODER, why))?;
    let agent = config::agent(&agent).map_err(|why| folder.config(AGENT, why))?;
    let encoder = config::encoder(&encoder).map_err(|why| folder.config(ENCODER, why))?;
    Ok((agent, encoder))
}

/// The manifest's contract, else that of `decisions.json`, else of `questions.json` (wire.md 12.4).
fn contract_of(
    folder: &Folder,
    manifest: Option<&Manifest>,
    warnings: &mut Vec<String>,
) -> Result<(Option<Contract>, Option<ContractRef>), LoadError> {
    let mut questions = None;
    for name in ["decisions.json", "questions.json"] {
        if let Some(bytes) = folder.bytes(name, MAX_CONFIG_BYTES)? {
            let read = if name == "decisions.json" {
                Contract::import(&bytes)
            } else {
                Contract::import_questions(&bytes)
            };
            match read {
                Ok(contract) => {
                    questions = Some(contract);
                    break;
                }
                Err(error) => warnings.push(format!(
                    "{name} of '{}' is no contract: {error}",
                    folder.origin
                )),
            }
        }
    }
    let own = questions.as_ref().map(|q| ContractRef {
        digest: q.digest().to_string(),
        shape: q.shape_digest().to_string(),
    });
    Ok((questions, manifest.and_then(|m| m.contract.clone()).or(own)))
}

/// What is known about the files while they are read.
struct Verification<'a> {
    folder: &'a Folder,
    options: &'a LoadOptions,
    manifest: Option<Manifest>,
    /// Files whose digest is known.
    files: Vec<FileEntry>,
}

struct Verified {
    digest: String,
    verified: bool,
    manifest: Option<Manifest>,
}

impl<'a> Verification<'a> {
    /// Looks at everything but the two large files.
    fn begin(folder: &'a Folder, options: &'a LoadOptions) -> Result<Self, LoadError> {
        let bad = |why| LoadError::Manifest {
            origin: folder.origin.clone(),
            why,
        };
        let manifest = match folder.bytes(MANIFEST, MAX_MANIFEST_BYTES)? {
            Some(bytes) => Some(Manifest::parse(&bytes).map_err(bad)?),
            None => None,
        };
        if let Some((path, _)) = options.sha256.iter().find(|(path, _)| !is_inner_path(path)) {
            return Err(LoadError::UnsafePath {
                path: path.into(),
                why: "a digest may only be given for a file inside the folder",
            });
        }
        let this = Self {
            folder,
            options,
            manifest,
            files: Vec::new(),
        };
        if let (Some(manifest), Some(expected)) = (&this.manifest, &options.expect_digest)
            && manifest.digest != *expected
        {
            return Err(this.wrong_digest(expected, manifest.digest.clone()));
        }
        if this.manifest.is_none()
            && options.expect_digest.is_none()
            && options.sha256.is_empty()
            && options.require_verified
        {
            return Err(LoadError::Unverified {
                origin: folder.origin.clone(),
            });
        }
        this.listed()?;
        Ok(this)
    }

    /// Every listed file is there with its size, and every file that is read is listed.
    fn listed(&self) -> Result<(), LoadError> {
        let Some(manifest) = &self.manifest else {
            return Ok(());
        };
        let bad = |why| LoadError::Manifest {
            origin: self.folder.origin.clone(),
            why,
        };
        for entry in &manifest.files {
            let Some((_, got)) = self.folder.file(&entry.path)? else {
                return Err(bad(format!("'{}' is listed and not there", entry.path)));
            };
            if got != entry.size {
                return Err(LoadError::Size {
                    path: entry.path.clone(),
                    expected: entry.size,
                    got,
                });
            }
        }
        for name in folder::REQUIRED.iter().chain(&folder::OPTIONAL) {
            if manifest.file(name).is_none() && self.folder.file(name)?.is_some() {
                return Err(bad(format!("'{name}' is not listed")));
            }
        }
        Ok(())
    }

    /// Whether a file's digest is needed: for the folder's digest without a manifest, with a full check, or by name.
    fn hashing(&self, name: &str) -> Hashing {
        let named = self.options.sha256.iter().any(|(path, _)| path == name);
        if self.manifest.is_none() || self.options.verify == Verify::Full || named {
            Hashing::On
        } else {
            Hashing::Off
        }
    }

    /// A required file, checked while it is read.
    fn bytes(&mut self, name: &'static str, limit: u64) -> Result<Vec<u8>, LoadError> {
        let bytes = self.folder.required(name, limit)?;
        if self.hashing(name) == Hashing::On {
            self.known(name, folder::sha256(&bytes), bytes.len() as u64)?;
        }
        Ok(bytes)
    }

    /// The weights, read by somebody else.
    fn weights(&mut self, size: u64, sha256: Option<String>) -> Result<(), LoadError> {
        sha256.map_or(Ok(()), |sha256| {
            self.known("model.safetensors", sha256, size)
        })
    }

    fn known(&mut self, name: &str, sha256: String, size: u64) -> Result<(), LoadError> {
        let listed = self
            .manifest
            .as_ref()
            .and_then(|m| m.file(name))
            .map(|f| f.sha256.as_str());
        let given = self
            .options
            .sha256
            .iter()
            .filter(|(path, _)| path == name)
            .map(|(_, hex)| hex.as_str());
        if let Some(expected) = listed
            .into_iter()
            .chain(given)
            .find(|expected| !expected.eq_ignore_ascii_case(&sha256))
        {
            return Err(LoadError::Sha256 {
                path: name.to_owned(),
                expected: expected.to_owned(),
                got: sha256,
            });
        }
        self.files.push(FileEntry {
            path: name.to_owned(),
            sha256,
            size,
        });
        Ok(())
    }

    /// The rest of the files, and the digest of all.
    fn finish(mut self, warnings: &mut Vec<String>) -> Result<Verified, LoadError> {
        let listed: Vec<String> = self
            .manifest
            .iter()
            .flat_map(|m| &m.files)
            .map(|f| f.path.clone())
            .collect();
        let named = self.options.sha256.iter().map(|(path, _)| path.clone());
        let usual = folder::REQUIRED
            .iter()
            .chain(&folder::OPTIONAL)
            .map(|name| (*name).to_owned());
        let mut names: Vec<String> = usual.chain(listed).chain(named).collect();
        names.sort();
        names.dedup();
        for name in names {
            if self.files.iter().any(|f| f.path == name) || self.hashing(&name) == Hashing::Off {
                continue;
            }
            match self.folder.hash(&name)? {
                Some((sha256, size)) => self.known(&name, sha256, size)?,
                None if self.options.sha256.iter().any(|(path, _)| *path == name) => {
                    let expected = self
                        .options
                        .sha256
                        .iter()
                        .find(|(path, _)| *path == name)
                        .map(|(_, hex)| hex.clone());
                    let expected = expected.unwrap_or_default();
                    return Err(LoadError::Sha256 {
                        path: name,
                        expected,
                        got: "no file".to_owned(),
                    });
                }
                None => {}
            }
        }
        let digest = match &self.manifest {
            Some(manifest) => manifest.digest.clone(),
            None => {
                self.files.retain(|f| {
                    folder::REQUIRED.contains(&f.path.as_str())
                        || folder::OPTIONAL.contains(&f.path.as_str())
                });
                checkpoint_digest(&self.files)
            }
        };
        if let Some(expected) = &self.options.expect_digest
            && *expected != digest
        {
            return Err(self.wrong_digest(expected, digest));
        }
        let verified = self.manifest.is_some()
            || self.options.expect_digest.is_some()
            || !self.options.sha256.is_empty();
        if !verified {
            warnings.push(format!(
                "'{}' has no manifest and no expected digest: served unverified",
                self.folder.origin
            ));
        }
        Ok(Verified {
            digest,
            verified,
            manifest: self.manifest,
        })
    }

    fn wrong_digest(&self, expected: &str, got: String) -> LoadError {
        LoadError::Digest {
            origin: self.folder.origin.clone(),
            expected: expected.to_owned(),
            got,
        }
    }
}
