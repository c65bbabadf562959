//! Docker Engine, and what speaks its API, through bollard (control-plane 8). What is to be made is rendered by pure
//! functions ([`render`]), what is there is read back by pure functions ([`map`], [`compare`]); in between stand calls
//! with deadlines. The event stream is a hint only: everything is found by looking.

mod apply;
mod archive;
mod compare;
mod credentials;
mod drain;
mod engine;
mod error;
mod events;
mod gpu;
mod helper;
mod import;
mod labels;
mod logs;
mod map;
mod memory;
mod models;
mod names;
mod observe;
mod owners;
mod pull;
mod reference;
pub mod render;
mod tasks;
mod volumes;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::kinds::shared::SecretRef;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::broadcast;
use tokio::task::JoinSet;

pub use credentials::RegistryCredentials;
pub use engine::Facts;
pub use import::Expected;
pub use models::{Models, Place};
pub use names::Instance;
pub use reference::{Reference, Remote};
pub use render::{GpuRequests, Proxies, Renderer};

use crate::{
    Action, Backend, BackendError, Capabilities, Child, Hint, ModelsRoom, Observed, Owner, Question,
};
use engine::Engine;
use memory::Memory;

/// Most replicas of a server on one engine.
const MAX_REPLICAS: u32 = 16;
/// Hints that wait for a slow listener; one that falls behind is told to look at everything.
const HINTS: usize = 256;
/// Pause after a first failed pull.
const PULL_PAUSE: Duration = Duration::from_secs(5);

/// Reads a secret by namespace and reference; the text of an error says why there is none, without its content.
pub type Secrets = Arc<dyn Fn(&str, &SecretRef) -> Result<Vec<u8>, String> + Send + Sync>;

/// What a Docker back end is made with.
#[derive(Clone)]
pub struct Options {
    /// `DOCKER_HOST`, where it is set; else the default socket, else a Podman socket.
    pub host: Option<String>,
    /// `XDG_RUNTIME_DIR`, where a rootless Podman has its socket.
    pub runtime_folder: Option<PathBuf>,
    /// Whose things are ours.
    pub instance: Instance,
    /// Bytes of memory of tasks that name none.
    pub task_memory_bytes: u64,
    /// Where secrets are read.
    pub secrets: Secrets,
    /// For fetch tasks.
    pub proxies: Proxies,
    /// Credentials of registries beside those that specs name.
    pub credentials: Vec<RegistryCredentials>,
    /// Pause after a first failed pull; it doubles with each, up to 5 min.
    pub pull_pause: Duration,
}

impl Options {
    /// Options with the defaults of the page: no host given, 512 MiB for tasks, no secrets.
    #[must_use]
    pub fn new(instance: Instance) -> Self {
        Self {
            host: None,
            runtime_folder: None,
            instance,
            task_memory_bytes: 512 << 20,
            secrets: Arc::new(|_, _| Err("no secrets are kept here".to_owned())),
            proxies: Proxies::default(),
            credentials: Vec::new(),
            pull_pause: PULL_PAUSE,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("host", &self.host)
            .field("instance", &self.instance)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// The Docker back end. Dropping it ends what it does in the background; what the engine was told stays.
#[derive(Debug)]
pub struct Docker {
    inner: Arc<Inner>,
    capabilities: Capabilities,
    tasks: Mutex<JoinSet<()>>,
}

/// What calls and background tasks share.
pub(crate) struct Inner {
    engine: Engine,
    renderer: Mutex<Renderer>,
    secrets: Secrets,
    credentials: Vec<RegistryCredentials>,
    pulls: pull::Pulls,
    memory: Memory,
    hints: broadcast::Sender<Hint>,
    /// Networks have no unique names: one at a time looks and makes.
    networks: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// What renders, for the engine that was connected last.
    fn renderer(&self) -> Renderer {
        let mut renderer = self.renderer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = self.engine.facts() {
            renderer.gpu = facts.gpu;
        }
        renderer.clone()
    }

    fn instance(&self) -> Instance {
        self.renderer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .instance
            .clone()
    }
}

impl Docker {
    /// A back end for the engine at the address of the options, whether it answers now or not. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(options: Options) -> Result<Self, BackendError> {
        let Options {
            host,
            runtime_folder,
            instance,
            task_memory_bytes,
            secrets,
            proxies,
            credentials,
            pull_pause,
        } = options;
        let address = engine::address(host.as_deref(), runtime_folder.as_deref(), |path| {
            path.exists()
        })
        .map_err(|message| BackendError::Failed {
            what: "find the container engine".to_owned(),
            message,
        })?;
        let (hints, _) = broadcast::channel(HINTS);
        let inner = Arc::new(Inner {
            engine: Engine::new(address),
            renderer: Mutex::new(Renderer {
                instance,
                gpu: GpuRequests::Capability,
                proxies,
                task_memory_bytes,
            }),
            secrets,
            credentials,
            pulls: pull::Pulls::new(pull_pause),
            memory: Memory::default(),
            hints,
            networks: tokio::sync::Mutex::new(()),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(events::follow(inner.clone()));
        Ok(Self {
            inner,
            capabilities: Capabilities {
                name: "docker",
                max_replicas: MAX_REPLICAS,
                gpu: true,
                split_traffic: true,
                training: true,
                images: true,
                pods: false,
            },
            tasks: Mutex::new(tasks),
        })
    }

    /// The same, and the engine must answer: which version is spoken is agreed on.
    ///
    /// # Errors
    /// When the address cannot be used, or nothing answers there in time, or it refuses.
    pub async fn connect(options: Options) -> Result<Self, BackendError> {
        let docker = Self::new(options)?;
        docker.inner.engine.live().await?;
        Ok(docker)
    }

    /// Where the engine is.
    #[must_use]
    pub fn address(&self) -> &str {
        self.inner.engine.address()
    }

    /// What the engine said of itself at the last connection; `None` while there is none.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        self.inner.engine.facts()
    }

    /// Runs in the background until it ends or this is dropped.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that ended are not kept; one that panicked is said.
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a background task of the Docker back end panicked");
            }
        }
        tasks.spawn(work);
    }
}

impl Backend for Docker {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn observe<'a>(
        &'a self,
        owner: &'a Owner,
        question: &'a Question,
    ) -> BoxFuture<'a, Result<Observed, BackendError>> {
        Box::pin(self.inner.observe(owner, question))
    }

    fn apply<'a>(
        &'a self,
        owner: &'a Owner,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.act(owner, action))
    }

    fn changes(&self) -> BoxStream<'static, Hint> {
        events::hints(self.inner.hints.subscribe())
    }

    fn logs<'a>(
        &'a self,
        owner: &'a Owner,
        child: &'a Child,
        limit: usize,
    ) -> BoxFuture<'a, Result<String, BackendError>> {
        Box::pin(self.inner.logs_of(owner, child, limit))
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<Owner>, BackendError>> {
        Box::pin(self.inner.owners())
    }

    fn models_room(&self) -> BoxFuture<'_, Option<ModelsRoom>> {
        Box::pin(self.inner.models_room())
    }
}
