//! What is asked of a volume, and what came of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use laya::checkpoint::{ContractRef, Probe};

use crate::{Digest, View};

/// Bring a checkpoint into a volume.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Root of the volume.
    pub models: PathBuf,
    /// Where it comes from.
    pub source: Source,
    /// The checkpoint digest that is expected; the one of the source's list must agree.
    pub digest: Option<Digest>,
    /// The contract digest that the checkpoint must have, if it names one.
    pub contract: Option<Digest>,
    /// Whether what is published under the digest is trusted by its sizes, or hashed and mended.
    pub existing: Existing,
    /// Checkpoints that may go where there is no room otherwise, in this order.
    pub prunable: Vec<Digest>,
    /// What the source is shown.
    pub credential: Option<Credential>,
    /// The store that the volume belongs to; written at the first use, compared afterwards.
    pub store: Option<String>,
    /// Deadlines.
    pub limits: Limits,
}

/// What is made of a checkpoint that is published already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Sizes as in its manifest are enough.
    #[default]
    Trust,
    /// Every file is hashed; where one is bad, the bad ones are fetched and the folder is exchanged.
    Repair,
}

/// Where a checkpoint comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Files below an address.
    Http {
        /// Address that names are put behind.
        base_url: String,
        /// The files.
        files: Vec<SourceFile>,
    },
    /// An OCI artifact whose layers are plain files titled by `org.opencontainers.image.title`.
    Oci {
        /// `registry/repository@sha256:…`.
        reference: String,
    },
    /// A folder of this machine.
    Folder {
        /// The folder.
        path: PathBuf,
    },
}

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Path inside the checkpoint.
    pub path: String,
    /// Length in bytes.
    pub size: u64,
    /// 64 hexadecimal digits.
    pub sha256: String,
    /// Name at the source; the path when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
}

/// The file that `--manifest` names (training 12).
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SourceManifest {
    /// Address that names are put behind.
    pub base_url: String,
    /// The files.
    pub files: Vec<SourceFile>,
}

/// What a source is shown. Never written anywhere, never shown in messages.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A bearer token.
    Token(String),
    /// User and password, for registries.
    Basic {
        /// User.
        user: String,
        /// Password.
        password: String,
    },
}

impl Credential {
    /// Reads the content of an `--auth-file`: `user:password` where the source is a registry and there is a colon, else a
    /// token. `None` where it is blank.
    #[must_use]
    pub fn read(text: &str, source: &Source) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        match (source, text.split_once(':')) {
            (Source::Oci { .. }, Some((user, password))) => Some(Self::Basic {
                user: user.to_owned(),
                password: password.to_owned(),
            }),
            _ => Some(Self::Token(text.to_owned())),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// Deadlines of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the whole task; none: as long as bytes come.
    pub deadline: Option<Duration>,
    /// A source that gives less than this, averaged over [`Self::silence`], is given up.
    pub min_bytes_per_second: u64,
    /// A source that gives nothing for so long is given up.
    pub silence: Duration,
    /// How long another writer is waited for.
    pub lock_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: None,
            min_bytes_per_second: 1024,
            silence: Duration::from_secs(60),
            lock_wait: Duration::from_secs(600),
        }
    }
}

/// A checkpoint in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// Checkpoint digest.
    pub digest: Digest,
    /// Folder of the version, absolute as far as the root was.
    pub path: PathBuf,
    /// The contract it names.
    pub contract: Option<ContractRef>,
    /// Bytes of all files but the manifest.
    pub size_bytes: u64,
    /// Files but the manifest.
    pub file_count: u64,
    /// Digests it was made from, as its manifest says.
    pub parents: Vec<String>,
    /// Whether it was there already, so that nothing was fetched.
    pub present: bool,
    /// Its wording as the JSON text of `decisions.json`, keys in their order: the contract digest depends on it.
    pub decisions: Option<String>,
    /// What its manifest says that it must answer; empty where nothing was recorded.
    pub probes: Vec<Probe>,
    /// Lines for people: what was mended, what could not be read.
    pub notes: Vec<String>,
}

/// Hash a published checkpoint, or a folder that is not ours.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// Root of the volume.
    pub models: PathBuf,
    /// The checkpoint.
    pub digest: Digest,
    /// Its folder; none: the published one. Relative paths are below the root.
    pub path: Option<PathBuf>,
    /// The contract digest that the checkpoint must have, if it names one.
    pub contract: Option<Digest>,
    /// Deadlines.
    pub limits: Limits,
}

/// A checkpoint that is as its digest says.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Checkpoint digest.
    pub digest: Digest,
    /// The contract it names.
    pub contract: Option<ContractRef>,
    /// Bytes of all files but the manifest.
    pub size_bytes: u64,
    /// Files but the manifest.
    pub file_count: u64,
    /// Its wording, as in [`Fetched::decisions`].
    pub decisions: Option<String>,
    /// What its manifest says that it must answer, as in [`Fetched::probes`].
    pub probes: Vec<Probe>,
    /// Lines for people.
    pub notes: Vec<String>,
}

/// Delete checkpoints.
#[derive(Debug, Clone)]
pub struct PruneRequest {
    /// Root of the volume.
    pub models: PathBuf,
    /// What goes. What is marked in `.keep` stays all the same.
    pub delete: Vec<Digest>,
    /// What is marked in `.keep` first, so that no later prune takes it (`onDelete: Retain`).
    pub keep: Vec<Digest>,
    /// Deadlines.
    pub limits: Limits,
}

/// What a prune did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// What is gone, also where an earlier prune was cut short.
    pub deleted: Vec<Digest>,
    /// What was asked for and is kept, since `.keep` says so.
    pub kept: Vec<Digest>,
    /// Bytes of the files that went.
    pub freed_bytes: u64,
    /// Names that the layout does not know; never touched.
    pub unknown: Vec<String>,
    /// What is left, and how much room there is; `None` where that could not be read.
    pub left: Option<View>,
}
