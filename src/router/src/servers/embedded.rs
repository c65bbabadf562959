//! The decision model inside this process: Laya's own surface over a checkpoint folder, on threads of its own. It loads
//! beside the requests, and a checkpoint that cannot be loaded is said and looked at again, never the end of the router.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use decision::Contract;
use laya::{Engine, EngineError, EngineOptions};
use serve::host::{Host, keep};
use serve::http::Surface;
use serve::metrics::Metrics;
use serve::readiness::Readiness;
use serve::settings::{Extras, SettingError, Settings, Values};
use serve::source::Places;
use service::runtime::Shutdown;

use super::server::CALLS_IN_FLIGHT;
use super::standing::Wording;
use super::table::Target;
use super::upstream::Upstream;

/// Until a checkpoint that was refused is looked at again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Largest `decisions.json` of a checkpoint, in bytes.
const MAX_DECISIONS_BYTES: u64 = 1 << 20;

/// How the model inside runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddedOptions {
    /// Threads that compute; none: the cores granted.
    pub threads: Option<usize>,
}

/// The model inside cannot even be set up. A checkpoint that cannot be loaded is not among these.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The folder is no UTF-8, which Laya's settings are.
    #[error("checkpoint folder {} is not UTF-8", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
    },
    /// Its settings.
    #[error(transparent)]
    Settings(#[from] SettingError),
    /// Its threads.
    #[error("cannot start the threads of the decision model")]
    Engine(#[from] EngineError),
    /// A bug: two metrics with one name.
    #[error("cannot register the metrics of the decision model")]
    Metrics(#[from] prometheus::Error),
}

/// The model inside.
pub struct Embedded {
    folder: PathBuf,
    router: Arc<axum::Router>,
    surface: Arc<Surface>,
    host: Arc<Host>,
    readiness: Arc<Readiness>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Embedded {
    /// Sets it up. Nothing is loaded until [`Embedded::run`].
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(folder: &Path, options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let text = folder.to_str().ok_or_else(|| EmbeddedError::Folder {
            folder: folder.to_owned(),
        })?;
        let extras = Extras {
            model: Some(text.to_owned()),
            ..Extras::default()
        };
        // No variable of `laya serve` reaches in here: this is another program.
        let nothing = || std::iter::empty::<(&'static str, String)>();
        let (values, _) = Values::new(nothing(), std::iter::empty::<(String, String)>());
        let (settings, _) = Settings::read(&values, &extras)?;
        let Settings {
            mut serving,
            loading,
            mut passes,
            ..
        } = settings;
        // The bound of the router is the only one: turning away a call that was let in would count against the server.
        serving.max_concurrent = CALLS_IN_FLIGHT;
        passes.threads = options.threads.or(passes.threads);
        let engine = Arc::new(Engine::new(EngineOptions {
            threads: passes.threads,
            cpu: passes.cpu,
        })?);
        let metrics = Metrics::new()?;
        let readiness = Arc::new(Readiness::default());
        let places = Places::from_environment(|_| None, None);
        let host = Arc::new(Host::new(
            loading,
            places,
            &passes,
            engine,
            metrics.clone(),
            readiness.clone(),
        ));
        // Only a redirect would show it, and nobody here asks for one.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let surface = Surface::new(serving, address, host.clone(), readiness.clone(), metrics);
        let surface = Arc::new(surface);
        Ok(Self {
            folder: folder.to_owned(),
            router: Arc::new(surface.clone().router()),
            surface,
            host,
            readiness,
        })
    }

    /// It as a server of the table, tuned to the wording its folder holds. Reads that file.
    #[must_use]
    pub fn target(&self, name: &str) -> Target {
        let mut target = Target::new(name, Upstream::InProcess(self.router.clone()));
        target.wording = self.wording().map(Arc::new);
        target
    }

    fn wording(&self) -> Option<Wording> {
        let path = self.folder.join("decisions.json");
        let file = files::read_text(&path, MAX_DECISIONS_BYTES).ok()?;
        let imported = Contract::import(file.text.as_bytes());
        match imported {
            Ok(contract) => Some(Wording::new(contract)),
            Err(error) => {
                tracing::warn!(path = %path.display(), "is no contract: {error}");
                None
            }
        }
    }

    /// Why it does not answer; none when it does.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.readiness.problem().map(|problem| problem.message)
    }

    /// Loads the checkpoint and watches over it until the process drains. One that is refused is looked at again after
    /// a while; rules answer meanwhile.
    pub async fn run(&self, shutdown: &Shutdown) {
        loop {
            let surface = self.surface.clone();
            let loaded = || tracing::info!(folder = %self.folder.display(), "checkpoint is loaded");
            let keeper = keep(self.host.clone(), move || surface.in_flight(), loaded);
            tokio::select! {
                () = shutdown.draining() => return,
                ended = keeper => if let Err(fatal) = ended {
                    tracing::error!(folder = %self.folder.display(), "checkpoint is refused, rules answer: {fatal}");
                },
            }
            tokio::select! {
                () = shutdown.draining() => return,
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
    }
}
