//! `laya serve` as a process: engine, checkpoints, surface and accept loop under the runtime that every server shares.
//! It listens before anything is loaded, so that `/health` and `/ready` answer from the start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laya::{Engine, EngineError, EngineOptions, Precision};
use service::http::accept::{ConnectionLimits, serve};
use service::runtime::{RuntimeBuilder, RuntimeError, Signal, Signals, raise_file_limit};
use service::telemetry::RepeatedError;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::host::{EXIT_CONFIGURATION, Fatal, Host, keep};
use crate::http::Surface;
use crate::metrics::Metrics;
use crate::parity::check_place;
use crate::readiness::Readiness;
use crate::settings::{Bind, Settings, WithoutKey};
use crate::source::Places;

/// How long a server that was told to end goes on accepting, while not ready (wire.md 2.5).
pub const LINGER: Duration = Duration::from_secs(5);

/// Why a server ended other than drained.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is none of this machine, or taken.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Anybody could ask.
    #[error(
        "refusing to listen on {address} without LAYA_API_KEY: set a key, or LAYA_ALLOW_UNAUTHENTICATED=1 on a private \
         network"
    )]
    Unauthenticated {
        /// What was asked for.
        address: String,
    },
    /// Nothing is preloaded, and nothing could be loaded later.
    #[error("no passed {precision} parity report: {why}")]
    NoReport {
        /// What was asked for.
        precision: Precision,
        /// What was found instead.
        why: String,
    },
    /// The engine's threads.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A bug: two metrics with one name.
    #[error("metrics cannot be registered: {0}")]
    Metrics(#[from] prometheus::Error),
    /// A checkpoint is refused.
    #[error(transparent)]
    Refused(Fatal),
    /// The process ended in another way.
    #[error(transparent)]
    Runtime(RuntimeError),
}

impl ServeError {
    /// The exit code of the process.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(fatal) => fatal.code,
            Self::Runtime(error) => error.exit_code(),
            _ => EXIT_CONFIGURATION,
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    surface: Arc<Surface>,
    host: Arc<Host>,
    readiness: Arc<Readiness>,
    metrics: Metrics,
    drain_timeout: Duration,
    linger: Duration,
}

impl Server {
    /// Listens. Nothing is loaded yet.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn start(settings: Settings, places: Places) -> Result<Self, ServeError> {
        let Settings {
            bind,
            serving,
            loading,
            passes,
            log_level: _,
            drain_timeout,
        } = settings;
        let listener = listen(&bind, serving.api_key.is_some()).await?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen {
            address: bind.host.clone(),
            source,
        })?;
        let engine = Arc::new(Engine::new(EngineOptions {
            threads: passes.threads,
            cpu: passes.cpu,
        })?);
        if loading.preload.is_empty() && loading.precision != Precision::F32 && !loading.unchecked {
            let precision = loading.precision;
            check_place(loading.parity.as_deref(), precision, &engine)
                .map_err(|why| ServeError::NoReport { precision, why })?;
        }
        let metrics = Metrics::new()?;
        let readiness = Arc::new(Readiness::default());
        let host = Host::new(
            loading,
            places,
            &passes,
            engine,
            metrics.clone(),
            Arc::clone(&readiness),
        );
        let host = Arc::new(host);
        let surface = Surface::new(
            serving,
            address,
            Arc::clone(&host),
            Arc::clone(&readiness),
            metrics.clone(),
        );
        Ok(Self {
            listener,
            address,
            surface: Arc::new(surface),
            host,
            readiness,
            metrics,
            drain_timeout,
            linger: LINGER,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it may be asked; also where it is told to drain.
    #[must_use]
    pub fn readiness(&self) -> Arc<Readiness> {
        Arc::clone(&self.readiness)
    }

    /// Another time between the first signal and the drain: for tests, and where nobody has to notice.
    #[must_use]
    pub const fn with_linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Loads and serves until a signal has drained it. `started` gets one line once everything is loaded.
    ///
    /// # Errors
    /// [`ServeError`]. A drain that takes too long is no error: what was open is dropped.
    pub async fn run(
        self,
        signals: Signals,
        started: impl FnOnce(String) + Send + 'static,
    ) -> Result<(), ServeError> {
        let files = raise_file_limit();
        tracing::debug!(files, "limit of open files");
        let signals = noticed(signals, Arc::clone(&self.readiness));
        let mut runtime = RuntimeBuilder::new(self.metrics.process.clone(), signals)
            .drain_deadline(self.drain_timeout)
            .linger(self.linger)
            .start();
        let errors = RepeatedError::new(self.metrics.process.log_suppressed.clone());
        let http = serve(
            self.listener,
            Arc::clone(&self.surface).router(),
            ConnectionLimits::default(),
            errors,
            runtime.shutdown(),
        );
        runtime.spawn("http", http);

        let refused: Arc<Mutex<Option<Fatal>>> = Arc::default();
        let (note, shutdown) = (Arc::clone(&refused), runtime.shutdown());
        let (surface, host, address) = (
            Arc::clone(&self.surface),
            Arc::clone(&self.host),
            self.address,
        );
        let ready = move || started(start_line(address, &host));
        let keeper = keep(Arc::clone(&self.host), move || surface.in_flight(), ready);
        runtime.spawn("checkpoints", async move {
            tokio::select! {
                () = shutdown.draining() => {}
                ended = keeper => {
                    if let Err(fatal) = ended {
                        *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(fatal);
                    }
                }
            }
        });

        let ended = runtime.run().await;
        if let Some(fatal) = refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            return Err(ServeError::Refused(fatal));
        }
        match ended {
            Ok(()) => Ok(()),
            Err(late @ RuntimeError::DrainTimedOut { .. }) => {
                tracing::warn!("{late}");
                Ok(())
            }
            Err(error) => Err(ServeError::Runtime(error)),
        }
    }
}

/// The same signals; the first makes the server not ready at once.
fn noticed(mut signals: Signals, readiness: Arc<Readiness>) -> Signals {
    let (sender, receiver) = mpsc::channel::<Signal>(4);
    tokio::spawn(async move {
        loop {
            let signal = signals.next().await;
            readiness.stopping();
            if sender.send(signal).await.is_err() {
                return;
            }
        }
    });
    Signals::from_channel(receiver)
}

async fn listen(bind: &Bind, with_key: bool) -> Result<TcpListener, ServeError> {
    let address = if bind.host.contains(':') && !bind.host.starts_with('[') {
        format!("[{}]:{}", bind.host, bind.port)
    } else {
        format!("{}:{}", bind.host, bind.port)
    };
    let cannot = |source| ServeError::Listen {
        address: address.clone(),
        source,
    };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&address)
        .await
        .map_err(cannot)?
        .collect();
    let loopback = addresses
        .iter()
        .all(|address| address.ip().to_canonical().is_loopback());
    if !loopback && !with_key && bind.without_key == WithoutKey::LoopbackOnly {
        return Err(ServeError::Unauthenticated { address });
    }
    TcpListener::bind(addresses.as_slice())
        .await
        .map_err(cannot)
}

/// One line: address, and each checkpoint with digest, device and precision. Those that share a digest stand together.
fn start_line(address: SocketAddr, host: &Host) -> String {
    let mut checkpoints: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, loaded) in host.all_resident() {
        let info = loaded.checkpoint().info();
        let what = format!(
            "{} on cpu in {}",
            info.digest,
            loaded.checkpoint().precision()
        );
        checkpoints.entry(what).or_default().push(name);
    }
    let each: Vec<String> = checkpoints
        .iter()
        .map(|(what, names)| format!("{} {what}", names.join(", ")))
        .collect();
    let each = if each.is_empty() {
        "no checkpoint yet, loads on first use".to_owned()
    } else {
        each.join("; ")
    };
    let (threads, kernels) = (host.engine().threads(), host.engine().kernels());
    format!("serving on http://{address}: {each} ({threads} threads, {kernels})")
}
