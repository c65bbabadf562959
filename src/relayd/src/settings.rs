//! The settings of `relayd router` and `relayd local` (design.md 7): flags over `RELAYD_…` over the file over defaults, read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use router::servers::{ConfiguredServer, ServerUrl};
use service::config::{ConfigError, Effective, Layers, Row, Setting, Source};
use service::http::Origin;
use service::listen::ListenAddress;
use service::telemetry::{LogFormat, LogLevel};

use crate::RouterFlags;
use crate::engine_settings::{EngineFlags, EngineOf, EngineSettings};
use crate::error::RelaydError;

pub(crate) const PREFIX: &str = "RELAYD_";
/// The policy object that a laptop follows.
pub(crate) const DEFAULT_POLICY: &str = "default";
/// Port of the daemon and the object API (design.md 7).
const DAEMON_PORT: u16 = 4748;
/// Largest configuration file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longest address of a database, in bytes.
const MAX_URL_BYTES: u64 = 16 << 10;

/// Whose router it is, with the flags that only that one has.
#[derive(Debug)]
pub(crate) enum Owner {
    /// One user's own: `relayd local`.
    User {
        /// `--checkpoint`.
        checkpoint: Option<String>,
        /// `--daemon-port`.
        daemon_port: Option<String>,
        /// Flags of the engine.
        engine: EngineFlags,
        /// `--no-docker`.
        no_docker: bool,
        /// `--no-controller`.
        no_controller: bool,
    },
    /// Many share it: `relayd router`.
    Shared {
        /// `--kubeconfig`.
        kubeconfig: Option<String>,
        /// `--namespace`.
        namespace: Option<String>,
    },
}

/// Where the policy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicySource {
    /// Nobody wrote one.
    BuiltIn,
    /// A file, read once.
    File(PathBuf),
    /// An object that is followed.
    Object {
        /// Its name.
        name: String,
        /// How the API server is reached; a laptop's is inside.
        cluster: ClusterAddress,
    },
}

/// How the API server of a cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClusterAddress {
    /// Else the pod's own account.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Else that of the kubeconfig or the pod.
    pub(crate) namespace: Option<String>,
}

/// Address of a PostgreSQL database; holds a password, and is shown nowhere.
pub(crate) struct DatabaseUrl(pub(crate) String);

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseUrl(..)")
    }
}

/// Everything `relayd router` can be told.
#[derive(Debug)]
pub(crate) struct RouterSettings {
    pub(crate) listen: Setting<ListenAddress>,
    pub(crate) admin_listen: Setting<ListenAddress>,
    pub(crate) policy: PolicySource,
    /// Port of the object API; `local` only.
    pub(crate) daemon_port: Setting<u16>,
    pub(crate) servers: Vec<ConfiguredServer>,
    /// A folder whose checkpoint is served inside this process; `local` only.
    pub(crate) checkpoint: Option<PathBuf>,
    /// Only `local`: the engine of its objects, if they are reconciled here.
    pub(crate) engine: Option<EngineSettings>,
    pub(crate) database: Option<DatabaseUrl>,
    pub(crate) token_file: Option<PathBuf>,
    /// Tokens of the route that is the controller's.
    pub(crate) internal_token_file: Option<PathBuf>,
    pub(crate) allow_origin: Vec<Origin>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    /// All of them with their sources.
    pub(crate) effective: Effective,
}

impl RouterSettings {
    pub(crate) fn read(
        flags: RouterFlags,
        owner: Owner,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RelaydError> {
        // Destructured whole, so that a new flag cannot be forgotten.
        let RouterFlags {
            listen,
            admin_listen,
            policy,
            policy_object,
            laya_url,
            database_url,
            database_url_file,
            token_file,
            internal_token_file,
            allow_origin,
            log_format,
            log_level,
            config,
            print_config: _,
        } = flags;
        let is_local = matches!(owner, Owner::User { .. });
        let environment: BTreeMap<_, _> = environment.into_iter().collect();
        let file = configuration_file(config, &environment);
        let text = file.as_deref().map(read_file).transpose()?;
        let mut flags = BTreeMap::from([
            ("listen", one(listen)),
            ("admin_listen", one(admin_listen)),
            ("policy", one(policy)),
            ("policy_object", one(policy_object)),
            ("laya_url", laya_url),
            ("database_url", one(database_url)),
            ("database_url_file", one(database_url_file)),
            ("token_file", one(token_file)),
            ("internal_token_file", one(internal_token_file)),
            ("allow_origin", allow_origin),
            ("log_format", one(log_format)),
            ("log_level", one(log_level)),
        ]);
        match owner {
            Owner::User {
                checkpoint,
                daemon_port,
                engine,
                no_docker,
                no_controller,
            } => {
                flags.extend([
                    ("checkpoint", one(checkpoint)),
                    ("daemon_port", one(daemon_port)),
                    ("no_docker", switch(no_docker)),
                    ("no_controller", switch(no_controller)),
                ]);
                flags.extend(engine.given());
            }
            Owner::Shared {
                kubeconfig,
                namespace,
            } => flags.extend([
                ("kubeconfig", one(kubeconfig)),
                ("namespace", one(namespace)),
            ]),
        }
        let file = file.as_deref().zip(text.as_deref());
        let mut layers = Layers::new(flags, PREFIX, environment, file)?;
        layers.know_variable("config");
        Ok(Self {
            listen: layers.with_default("listen", loopback(8737))?,
            admin_listen: layers.with_default("admin_listen", loopback(9737))?,
            policy: policy_source(&mut layers, is_local)?,
            daemon_port: daemon_port(&mut layers, is_local)?,
            servers: servers(&mut layers)?,
            checkpoint: checkpoint_folder(&mut layers, is_local)?,
            engine: engine(&mut layers, is_local)?,
            database: database(&mut layers)?,
            token_file: path(&mut layers, "token_file")?,
            internal_token_file: path(&mut layers, "internal_token_file")?,
            allow_origin: layers.list("allow_origin")?.value,
            log_format: layers.with_default("log_format", LogFormat::Text)?.value,
            log_level: layers.with_default("log_level", LogLevel::Info)?.value,
            effective: layers.finish()?,
        })
    }

    /// Whether the router's address was asked for, or only stood in.
    pub(crate) fn listen_was_asked_for(&self) -> bool {
        self.listen.source != Source::Default
    }

    /// Whether the admin address was asked for, or only stood in.
    pub(crate) fn admin_was_asked_for(&self) -> bool {
        self.admin_listen.source != Source::Default
    }
}

/// Addresses alone, or tables with more about each server; those of a stronger layer stand for all of a weaker one.
pub(crate) fn servers(layers: &mut Layers) -> Result<Vec<ConfiguredServer>, ConfigError> {
    let urls: Setting<Vec<ServerUrl>> = layers.list("laya_url")?;
    let fields = ["url", "name", "weight", "api_key_file", "decisions"];
    let rows = layers.tables("servers", &fields)?;
    if urls.source == Source::Default || urls.value.is_empty() {
        return rows.value.iter().map(server).collect();
    }
    if urls.source == rows.source {
        return Err(ConfigError::Invalid {
            key: "laya_url".to_owned(),
            value: urls
                .value
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            from: urls.source,
            reason: "the same file has [[servers]]; write every server there".to_owned(),
        });
    }
    Ok(urls.value.into_iter().map(ConfiguredServer::at).collect())
}

fn server(row: &Row) -> Result<ConfiguredServer, ConfigError> {
    Ok(ConfiguredServer {
        url: row.required("url")?,
        name: row.optional("name")?,
        weight: row.optional("weight")?.unwrap_or(1),
        api_key_file: row.optional("api_key_file")?,
        decisions: row.optional("decisions")?,
    })
}

/// A file and an object cannot both say what the policy is. A laptop has an object unless it names a file.
fn policy_source(layers: &mut Layers, is_local: bool) -> Result<PolicySource, ConfigError> {
    let file: Option<Setting<PathBuf>> = layers.optional("policy")?;
    let object = if is_local && file.is_none() {
        Some(layers.with_default("policy_object", DEFAULT_POLICY.to_owned())?)
    } else {
        layers.optional("policy_object")?
    };
    let cluster = if is_local {
        ClusterAddress::default()
    } else {
        cluster(layers)?
    };
    match (file, object) {
        (Some(file), Some(object)) => Err(ConfigError::Invalid {
            key: "policy_object".to_owned(),
            value: object.value,
            from: object.source,
            reason: format!(
                "policy ({}) names a file already; keep one of them",
                file.source
            ),
        }),
        (Some(file), None) => Ok(PolicySource::File(file.value)),
        (None, Some(object)) => Ok(PolicySource::Object {
            name: object.value,
            cluster,
        }),
        (None, None) => Ok(PolicySource::BuiltIn),
    }
}

/// How a cluster is reached.
pub(crate) fn cluster(layers: &mut Layers) -> Result<ClusterAddress, ConfigError> {
    Ok(ClusterAddress {
        kubeconfig: layers.optional("kubeconfig")?.map(|setting| setting.value),
        namespace: layers.optional("namespace")?.map(|setting| setting.value),
    })
}

fn path(layers: &mut Layers, key: &'static str) -> Result<Option<PathBuf>, ConfigError> {
    Ok(layers.optional(key)?.map(|setting| setting.value))
}

fn daemon_port(layers: &mut Layers, is_local: bool) -> Result<Setting<u16>, ConfigError> {
    if is_local {
        return layers.with_default("daemon_port", DAEMON_PORT);
    }
    Ok(Setting {
        value: DAEMON_PORT,
        source: Source::Default,
    })
}

/// In the configuration of a shared router a checkpoint is a mistake that must be seen.
fn checkpoint_folder(layers: &mut Layers, is_local: bool) -> Result<Option<PathBuf>, ConfigError> {
    if !is_local {
        return Ok(None);
    }
    let setting = layers.optional("checkpoint")?;
    Ok(setting.map(|setting| setting.value))
}

/// The engine's settings count as known also where nothing is reconciled.
fn engine(layers: &mut Layers, is_local: bool) -> Result<Option<EngineSettings>, ConfigError> {
    if !is_local {
        return Ok(None);
    }
    let settings = EngineSettings::read(layers, EngineOf::Laptop)?;
    let is_off = layers.with_default("no_controller", false)?.value;
    Ok((!is_off).then_some(settings))
}

fn database(layers: &mut Layers) -> Result<Option<DatabaseUrl>, RelaydError> {
    let url = layers.secret("database_url")?;
    let file: Option<Setting<PathBuf>> = layers.optional("database_url_file")?;
    match (url, file) {
        (None, None) => Ok(None),
        (Some(url), None) => Ok(Some(DatabaseUrl(url.value))),
        (None, Some(file)) => {
            let path = file.value;
            let text = files::read_text(&path, MAX_URL_BYTES);
            let text = text.map_err(|source| RelaydError::DatabaseFile { path, source })?;
            Ok(Some(DatabaseUrl(text.text.trim().to_owned())))
        }
        (Some(url), Some(file)) => Err(RelaydError::TwoDatabases {
            url: url.source.to_string(),
            file: file.source.to_string(),
        }),
    }
}

/// The configuration file of a program: its flag, else the variable.
pub(crate) fn configuration_file(
    flag: Option<String>,
    environment: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    let variable = environment
        .get("RELAYD_CONFIG")
        .filter(|path| !path.trim().is_empty());
    flag.or_else(|| variable.cloned()).map(PathBuf::from)
}

/// The values of a flag that is there or not.
fn switch(flag: bool) -> Vec<String> {
    flag.then(|| "true".to_owned()).into_iter().collect()
}

/// The values of a flag that is given once or not at all.
pub(crate) fn one(flag: Option<String>) -> Vec<String> {
    flag.into_iter().collect()
}

pub(crate) fn loopback(port: u16) -> ListenAddress {
    ListenAddress(([127, 0, 0, 1], port).into())
}

pub(crate) fn read_file(path: &Path) -> Result<String, RelaydError> {
    match files::read_text(path, MAX_FILE_BYTES) {
        Ok(file) => Ok(file.text),
        Err(source) => Err(RelaydError::ConfigFile {
            path: path.to_owned(),
            source,
        }),
    }
}
