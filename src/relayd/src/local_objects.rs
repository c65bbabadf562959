//! The object API of `relayd local`: its file, the socket and the port it is reached by, and what clients need for that
//! (control-plane 9).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use controller::client::{Deadlines, guarded};
use controller::clock::SystemClock;
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::{Controller, ControllerParts, Namespaces};
use files::Places;
use kube::Client;
use objects::listen::{Caller, Door, router_beside};
use objects::{ObjectStore, ObjectStoreOptions, Opened};
use service::config::{Setting, Source};
use service::http::accept::{ConnectionLimits, serve};
use service::http::{HostRule, Origin, Origins, OwnSocket, TlsOrPlain};
use service::listen::{ListenAddress, PortTaken, bind};
use service::runtime::Runtime;
use service::telemetry::trace::Traces;
use service::telemetry::{ProcessMetrics, RepeatedError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::daemon::Daemon;
use crate::ending::Ending;
use crate::engine::LocalEngine;
use crate::error::RelaydError;
use crate::first_look;

/// For requests that are open when the process drains.
const DRAIN_WAIT: Duration = Duration::from_secs(3);
/// Namespace of objects that name none.
const NAMESPACE: &str = "default";

/// The objects of one user, ready to be served.
pub(crate) struct LocalObjects {
    store: ObjectStore,
    door: Door,
    socket: OwnSocket,
    port: TcpListener,
    address: SocketAddr,
}

/// What they are started with.
pub(crate) struct With {
    pub(crate) traces: Traces,
    pub(crate) fence: Fence,
    /// Browser origins that may call.
    pub(crate) allowed: Vec<Origin>,
    /// None: another process reconciles.
    pub(crate) engine: Option<LocalEngine>,
    pub(crate) ending: Ending,
}

/// What others need of them.
pub(crate) struct RunningObjects {
    pub(crate) store: ObjectStore,
    /// A client inside this process.
    pub(crate) client: Client,
    /// Where the port listens.
    pub(crate) address: SocketAddr,
    /// Whether what status says of this machine was seen in this life of it. No engine is looked at here yet, so there
    /// is nothing to wait for.
    pub(crate) observed: watch::Receiver<bool>,
}

impl LocalObjects {
    /// Opens the file, and takes socket and port. The caller holds the lock of the daemon's folder.
    pub(crate) async fn open(places: &Places, port: &Setting<u16>) -> Result<Self, RelaydError> {
        let Opened { store, notices } = ObjectStore::open(
            &places.objects(),
            &places.instance(),
            ObjectStoreOptions::default(),
        )?;
        for notice in notices {
            tracing::warn!("{notice}");
        }
        let door = Door::of_folder(&places.daemon())?;
        let socket = OwnSocket::bind(&places.socket())?;
        let wanted = ListenAddress(([127, 0, 0, 1], port.value).into());
        let taken = if port.source == Source::Default {
            PortTaken::TakeAnyFree
        } else {
            PortTaken::Refuse
        };
        let listener = bind(wanted, taken)
            .await
            .map_err(RelaydError::DaemonListen)?;
        let address = listener
            .local_addr()
            .map_err(RelaydError::start("read the address of the daemon's port"))?;
        if port.value != 0 && address.port() != port.value {
            tracing::warn!(%wanted, taken = %address, "the daemon's port was taken, a free one is used");
        }
        door.write_kubeconfig(address.port())?;
        Ok(Self {
            store,
            door,
            socket,
            port: listener,
            address,
        })
    }

    /// The store, for those who need it before it is served.
    pub(crate) const fn store(&self) -> &ObjectStore {
        &self.store
    }

    /// Reconciles them, and serves socket and port, until the process drains.
    pub(crate) fn start(
        self,
        runtime: &mut Runtime,
        process: &ProcessMetrics,
        with: With,
    ) -> Result<RunningObjects, RelaydError> {
        let With {
            traces,
            fence,
            allowed,
            engine,
            ending,
        } = with;
        let Self {
            store,
            door,
            socket,
            port,
            address,
        } = self;
        let tls = door.tls()?;
        let metrics =
            ControllerMetrics::register(process).map_err(RelaydError::start("register metrics"))?;
        let client = Client::new(store.service(), NAMESPACE);
        let shutdown = runtime.shutdown();
        if let Some(engine) = &engine {
            engine.parts.own_addresses.add(address);
            let controller = Controller::new(ControllerParts {
                client: client.clone(),
                deadlines: Deadlines::default(),
                namespaces: Namespaces::All,
                metrics: metrics.clone(),
                traces,
                fence,
                clock: Arc::new(SystemClock),
                ready: runtime.readiness().check("controller"),
                faults: FaultPoints::none(),
                instance: None,
                engine: Some(engine.parts.clone()),
            });
            runtime.spawn("controller", controller.run(shutdown.clone()));
        }
        let observed = observed(runtime, &client, engine.as_ref());
        let daemon = Daemon::new(client.clone(), store.clone(), engine, ending);
        let calls = daemon.routes();
        let served =
            |caller| router_beside(store.service(), caller, shutdown.clone(), calls.clone());
        let own = served(Caller::SameUser);
        let token = served(Caller::Token {
            token: door.token,
            origins: Arc::new(Origins::new(allowed, HostRule::LoopbackOnly)),
        });
        let errors = || RepeatedError::new(process.log_suppressed.clone());
        // Watches end when the process drains; who does not read that must not hold it up.
        let limits = ConnectionLimits {
            drain_wait: Some(DRAIN_WAIT),
            ..ConnectionLimits::default()
        };
        runtime.spawn(
            "object socket",
            serve(socket, own, limits, errors(), shutdown.clone()),
        );
        runtime.spawn(
            "object port",
            serve(
                TlsOrPlain::new(port, tls),
                token,
                limits,
                errors(),
                shutdown,
            ),
        );
        Ok(RunningObjects {
            store,
            client: guarded(client, Deadlines::default(), metrics),
            address,
            observed,
        })
    }
}

/// Whether the addresses in status hold. Where another process reconciles, they are taken as they are.
fn observed(
    runtime: &mut Runtime,
    client: &Client,
    engine: Option<&LocalEngine>,
) -> watch::Receiver<bool> {
    let (holds, observed) = watch::channel(engine.is_none());
    if let Some(engine) = engine {
        let backend = engine.parts.backend.clone();
        let look = first_look::run(client.clone(), backend, holds, runtime.shutdown());
        runtime.spawn("first look at the servers", look);
    }
    observed
}
