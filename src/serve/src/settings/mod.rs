//! The configuration of `laya serve` (wire.md 3): flags over environment over defaults, read once into types that cannot
//! be wrong. Nothing is opened here; beside the values, only the number of cores is looked at.

mod digests;
mod read;
mod variables;

use std::path::PathBuf;
use std::time::Duration;

use laya::{CpuFeatures, Precision, Verify};

pub use digests::{Sha256Digests, read_sha256_digests};
pub use variables::{Flag, Given, VARIABLES, Values, Variable};

use crate::registry::Registry;

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {name} {detail}")]
pub struct SettingError {
    /// Variable or flag.
    pub name: String,
    /// The value and what is wrong with it, or only the latter.
    pub detail: String,
}

/// What computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// Whatever there is.
    Auto,
    /// The processor.
    Cpu,
    /// Something this build does not have; the processor answers, and the server is not ready.
    Absent(String),
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Address or host name.
    pub host: String,
    /// Port; 0 (by flag only) is any free one.
    pub port: u16,
    /// Whether an address beyond loopback may be served without a key.
    pub without_key: WithoutKey,
}

/// Whether a server beyond loopback may go without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKey {
    /// Only on loopback.
    LoopbackOnly,
    /// Everywhere: the network is private.
    Anywhere,
}

/// What is done with requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Serving {
    /// Bearer token that clients must send.
    pub api_key: Option<ApiKey>,
    /// Prefix of the paths in `/openapi.json`.
    pub root_path: String,
    /// Browser origins that may call.
    pub allowed_origins: Vec<String>,
    /// Decision requests in the server at once, at least 1.
    pub max_concurrent: usize,
    /// Largest `max_len` and `head_max_len`, in tokens.
    pub max_token_budget: usize,
    /// For a whole body to arrive.
    pub body_read_timeout: Duration,
    /// For a request from its head to its reply.
    pub request_timeout: Duration,
    /// Least fields in replies.
    pub strict: bool,
    /// Size of the groups in which larger choices are narrowed, 2..=100.
    pub tournament_group: Option<usize>,
    /// Whether question ids choose a checkpoint.
    pub auto_task: bool,
    /// Checkpoint when the language says nothing: a registered name.
    pub default_model: String,
}

/// What is loaded, and how.
#[derive(Debug, Clone)]
pub struct Loading {
    /// Every checkpoint.
    pub registry: Registry,
    /// Names to load at start, in order; none: load on first use.
    pub preload: Vec<String>,
    /// Most checkpoints resident at once, at least 1.
    pub max_loaded: usize,
    /// Unload after this much idleness.
    pub idle_unload: Option<Duration>,
    /// The device asked for.
    pub device: Device,
    /// Number format of the big products.
    pub precision: Precision,
    /// Parity report or a folder of them.
    pub parity: Option<PathBuf>,
    /// Serve a reduced precision without a report; the server is never ready then.
    pub unchecked: bool,
    /// What is compared with a manifest.
    pub verify: Verify,
    /// Checkpoint digest that the only checkpoint must have.
    pub expect_digest: Option<String>,
    /// Digests of single files.
    pub sha256: Sha256Digests,
    /// Refuse what nothing verifies.
    pub require_verified: bool,
    /// Contract that every preloaded checkpoint must name.
    pub contract: Option<String>,
    /// Revision of cached repositories.
    pub revision: Option<String>,
}

/// How passes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Threads; none: the cores granted.
    pub threads: Option<usize>,
    /// Cap on instruction sets.
    pub cpu: CpuFeatures,
    /// Most tokens of a pass, at least 1.
    pub max_tokens: usize,
    /// How long a pass waits for more rows.
    pub window: Duration,
}

/// Least important log events that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// `critical` and `error`
    Error,
    /// `warning`
    Warning,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

/// All settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address.
    pub bind: Bind,
    /// Requests.
    pub serving: Serving,
    /// Checkpoints.
    pub loading: Loading,
    /// Passes.
    pub passes: Passes,
    /// Log.
    pub log_level: LogLevel,
    /// For open requests to end after a signal.
    pub drain_timeout: Duration,
}

/// What only flags say.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// `--model`: serve this folder and nothing else.
    pub model: Option<String>,
    /// `--expect-digest`
    pub expect_digest: Option<String>,
    /// `--verify`
    pub verify: Verify,
    /// Content of `--api-key-file`.
    pub api_key: Option<String>,
    /// `--unchecked`
    pub unchecked: bool,
}

/// A secret that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key; none if it is blank.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        (!key.trim().is_empty()).then(|| Self(key.to_owned()))
    }

    /// Bytes that the header must have.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        format!("Bearer {}", self.0).into_bytes()
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl Settings {
    /// Reads all values. The second part are lines to warn with.
    ///
    /// # Errors
    /// The first value that is refused, in the order of the variables.
    pub fn read(values: &Values, extras: &Extras) -> Result<(Self, Vec<String>), SettingError> {
        read::settings(values, extras)
    }
}

#[cfg(test)]
mod tests;
