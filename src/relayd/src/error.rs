//! What a person sees when `relayd` fails: one line, a hint, an exit code. Codes are API.

use std::error::Error;
use std::path::PathBuf;

use cli::{Misuse, escape};
use router::PolicyFileError;
use router::servers::{ConfiguredServerError, KeyError, TableError};
use service::config::ConfigError;
use service::http::TokenError;
use service::listen::ListenError;
use service::runtime::RuntimeError;
use service::telemetry::causes;

/// Failed while running.
const EXIT_RUNNING: u8 = 1;
/// Bad arguments, configuration, policy or token file.
const EXIT_CONFIGURATION: u8 = 2;
/// Cannot listen.
const EXIT_LISTEN: u8 = 3;
/// Another `relayd local` of this user runs.
const EXIT_ALREADY_RUNS: u8 = 4;

/// Why `relayd` ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelaydError {
    /// The arguments are wrong.
    #[error("the arguments are wrong")]
    Usage(Misuse),
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration file cannot be read.
    #[error("cannot read configuration file {}", path.display())]
    ConfigFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// The policy cannot be put in force.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// A decision-model server cannot be set up.
    #[error("server {url}")]
    Server {
        /// Its address.
        url: String,
        /// Why.
        source: ConfiguredServerError,
    },
    /// The decision-model servers do not go together.
    #[error(transparent)]
    Servers(#[from] TableError),
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// Beyond loopback, and nobody could be told from anybody.
    #[error("{address} is not loopback and there is no token file")]
    NoTokens {
        /// Where it was to listen.
        address: String,
    },
    /// Neither `RELAY_HOME` nor `HOME` is set where a file of it is needed.
    #[error("cannot find your files: {0}")]
    NoHome(#[from] files::NoHome),
    /// A file or folder of the user's home cannot be made or written.
    #[error("cannot make or write {}", path.display())]
    Home {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Only one may run.
    #[error("another `relayd local` holds {}", lock.display())]
    AlreadyRuns {
        /// Its lock.
        lock: PathBuf,
    },
    /// The file with the database's address cannot be read.
    #[error("cannot read database_url_file {}", path.display())]
    DatabaseFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// Two addresses of a database.
    #[error("database_url ({url}) and database_url_file ({file}) are both set")]
    TwoDatabases {
        /// Where the first came from.
        url: String,
        /// Where the second came from.
        file: String,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The model inside cannot be set up.
    #[error("cannot set up the checkpoint {}", folder.display())]
    Checkpoint {
        /// Its folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: router::servers::EmbeddedError,
    },
    /// The id of the store cannot stand in names and labels of an engine.
    #[error("the store's id does not begin with 12 hex digits: {found:?}")]
    BadInstance {
        /// What it begins with.
        found: String,
    },
    /// Which store the containers of this user belong to is not known.
    #[error("cannot read the id of the store, {}", path.display())]
    NoInstance {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// The file of objects cannot be opened.
    #[error(transparent)]
    Objects(#[from] objects::OpenError),
    /// Token, certificate or kubeconfig of the daemon cannot be used.
    #[error(transparent)]
    Door(#[from] objects::listen::DoorError),
    /// The daemon's socket cannot be listened on.
    #[error(transparent)]
    Socket(#[from] service::http::SocketError),
    /// The daemon's port cannot be listened on.
    #[error(transparent)]
    DaemonListen(ListenError),
    /// The kubeconfig cannot be used.
    #[error("cannot use kubeconfig {}", path.display())]
    Kubeconfig {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// What it says of addresses, certificates or keys cannot be used.
    #[error("cannot use {} to reach the API server", match kubeconfig {
        Some(path) => format!("kubeconfig {}", path.display()),
        None => "the pod's account".to_owned(),
    })]
    ClusterClient {
        /// Which file; none is the pod's own account.
        kubeconfig: Option<PathBuf>,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// No kubeconfig was named and this is no pod.
    #[error("no kubeconfig was named, and this process is in no pod of a cluster")]
    NoCluster {
        /// Why.
        #[source]
        source: Box<kube::config::InClusterError>,
    },
    /// The router's address cannot be listened on.
    #[error(transparent)]
    Listen(ListenError),
    /// The admin address cannot be listened on.
    #[error(transparent)]
    AdminListen(ListenError),
    /// It ran and failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The system refused something at start.
    #[error("cannot {attempt}")]
    Start {
        /// What was attempted.
        attempt: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl RelaydError {
    /// For `map_err` of something that was attempted at start.
    pub(crate) fn start<E>(attempt: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Error + Send + Sync + 'static,
    {
        move |source| Self::Start {
            attempt,
            source: Box::new(source),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Config(_)
            | Self::ConfigFile { .. }
            | Self::Policy(_)
            | Self::Server { .. }
            | Self::Servers(_)
            | Self::Tokens(_)
            | Self::NoTokens { .. }
            | Self::NoHome(_)
            | Self::Home { .. }
            | Self::DatabaseFile { .. }
            | Self::TwoDatabases { .. }
            | Self::Store(_)
            | Self::BadInstance { .. }
            | Self::NoInstance { .. }
            | Self::Objects(_)
            | Self::Door(_)
            | Self::Kubeconfig { .. }
            | Self::ClusterClient { .. }
            | Self::NoCluster { .. }
            | Self::Checkpoint { .. } => EXIT_CONFIGURATION,
            Self::AlreadyRuns { .. } => EXIT_ALREADY_RUNS,
            Self::Listen(_) | Self::AdminListen(_) | Self::DaemonListen(_) | Self::Socket(_) => {
                EXIT_LISTEN
            }
            Self::Runtime(error) => error.exit_code(),
            Self::Start { .. } => EXIT_RUNNING,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Config(_) => Some("`relayd router --print-config` shows each setting and where it comes from".into()),
            Self::Tokens(TokenError::TooOpen { path, .. }) => Some(format!("chmod 600 {}", path.display())),
            Self::Server {
                source: ConfiguredServerError::Key(KeyError::TooOpen { path, .. }),
                ..
            } => Some(format!("chmod 600 {}", path.display())),
            Self::NoTokens { .. } => Some(
                "write lines `<tenant> <token>` to a file with mode 0600 and name it with --token-file".into(),
            ),
            Self::NoInstance { .. } => Some(
                "start `relayd local --no-controller` first, with the same RELAY_HOME: it makes the store".into(),
            ),
            Self::NoCluster { .. } => Some("name one with --kubeconfig".into()),
            Self::DaemonListen(error) if error.is_taken() => {
                Some("another program has this port; `--daemon-port 0` takes a free one".into())
            }
            Self::Socket(_) => Some("set RELAY_HOME to a folder with a short path that no other program uses".into()),
            Self::AlreadyRuns { .. } => Some("`relay laya connect` shows where it listens; stop it first".into()),
            Self::TwoDatabases { .. } => Some("keep one of them".into()),
            Self::Listen(error) if error.is_taken() => Some(free_port("--listen")),
            Self::AdminListen(error) if error.is_taken() => Some(free_port("--admin-listen")),
            _ => None,
        }
    }

    /// The line with its causes, and the hint, as they go to standard error. Control characters are escaped: paths and
    /// files are not ours.
    pub(crate) fn render(&self) -> String {
        if let Self::Usage(misuse) = self {
            return misuse.render("relayd");
        }
        let mut text = format!("relayd: {}\n", escape(&causes(self)));
        if let Some(hint) = self.hint() {
            text.push_str(&format!("hint: {}\n", escape(&hint)));
        }
        text
    }
}

fn free_port(flag: &str) -> String {
    format!("another program has this port; `{flag} 127.0.0.1:0` takes a free one")
}
