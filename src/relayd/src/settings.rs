//! The settings of `relayd router` (design.md 7): flags over `RELAYD_…` over the file over defaults, read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use service::config::{Effective, Layers, Setting, Source};
use service::http::Origin;
use service::listen::ListenAddress;
use service::telemetry::{LogFormat, LogLevel};

use crate::RouterFlags;
use crate::error::RelaydError;

const PREFIX: &str = "RELAYD_";
/// Largest configuration file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Everything `relayd router` can be told.
#[derive(Debug)]
pub(crate) struct RouterSettings {
    pub(crate) listen: ListenAddress,
    pub(crate) admin_listen: Setting<ListenAddress>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) allow_origin: Vec<Origin>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    /// All of them with their sources.
    pub(crate) effective: Effective,
}

impl RouterSettings {
    pub(crate) fn read(
        flags: RouterFlags,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RelaydError> {
        // Destructured whole, so that a new flag cannot be forgotten.
        let RouterFlags {
            listen,
            admin_listen,
            policy,
            token_file,
            allow_origin,
            log_format,
            log_level,
            config,
            print_config: _,
        } = flags;
        let environment: BTreeMap<_, _> = environment.into_iter().collect();
        let from_environment = environment
            .get("RELAYD_CONFIG")
            .filter(|path| !path.trim().is_empty())
            .cloned();
        let file = config.clone().or(from_environment).map(PathBuf::from);
        let text = file.as_deref().map(read_file).transpose()?;
        let one = |flag: Option<String>| flag.into_iter().collect::<Vec<_>>();
        let flags = BTreeMap::from([
            ("listen", one(listen)),
            ("admin_listen", one(admin_listen)),
            ("policy", one(policy)),
            ("token_file", one(token_file)),
            ("allow_origin", allow_origin),
            ("log_format", one(log_format)),
            ("log_level", one(log_level)),
        ]);
        let file = file.as_deref().zip(text.as_deref());
        let mut layers = Layers::new(flags, PREFIX, environment, file)?;
        layers.know_variable("config");
        Ok(Self {
            listen: layers.with_default("listen", loopback(8737))?.value,
            admin_listen: layers.with_default("admin_listen", loopback(9737))?,
            policy: layers.optional("policy")?.map(|setting| setting.value),
            token_file: layers.optional("token_file")?.map(|setting| setting.value),
            allow_origin: layers.list("allow_origin")?.value,
            log_format: layers.with_default("log_format", LogFormat::Text)?.value,
            log_level: layers.with_default("log_level", LogLevel::Info)?.value,
            effective: layers.finish()?,
        })
    }

    /// Whether the admin address was asked for, or only stood in.
    pub(crate) fn admin_was_asked_for(&self) -> bool {
        self.admin_listen.source != Source::Default
    }
}

fn loopback(port: u16) -> ListenAddress {
    ListenAddress(([127, 0, 0, 1], port).into())
}

fn read_file(path: &Path) -> Result<String, RelaydError> {
    match files::read_text(path, MAX_FILE_BYTES) {
        Ok(file) => Ok(file.text),
        Err(source) => Err(RelaydError::ConfigFile {
            path: path.to_owned(),
            source,
        }),
    }
}
