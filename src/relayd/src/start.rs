//! Runs a router that was put together: listeners, store, metrics, routes, tasks, and the end.

use std::sync::Arc;
use std::time::Duration;

use controller::reports::InProcessReports;
use prometheus::Registry;
use router::servers::{BreakerRule, Embedded, ServerMetrics, Servers, Target};
use router::{ActivePolicy, METRICS_PREFIX, PolicyInForce, RouterMetrics, RouterParts, Service};
use routing::decide::Client;
use service::http::accept::{ConnectionLimits, serve};
use service::http::{
    Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Stack, TokenFile,
};
use service::listen::{ListenAddress, PortTaken, bind};
use service::runtime::{RuntimeBuilder, RuntimeError, raise_file_limit};
use service::telemetry::trace::{FLUSH_DEADLINE, TraceMetrics, TraceSettings, Traces};
use service::telemetry::{BuildInfo, ProcessMetrics, RepeatedError};
use store::{Location, Opened, Store, StoreOptions};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::cluster;
use crate::ending::Ending;
use crate::engine::LocalEngine;
use crate::error::RelaydError;
use crate::follow_policy::PolicyKeeper;
use crate::follow_servers::ServerKeeper;
use crate::followed_table::StableUrl;
use crate::local_home::LocalHome;
use crate::local_objects::{LocalObjects, With};
use crate::router_command::Whose;
use crate::router_port::{Beside, RouterPort};
use crate::settings::{PolicySource, RouterSettings};

/// How long what waits for the store may take at the end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// A router that was put together.
pub(crate) struct Start {
    pub(crate) build: BuildInfo,
    pub(crate) settings: RouterSettings,
    pub(crate) policy: Arc<ActivePolicy>,
    pub(crate) authority: Arc<Authority>,
    /// Who may ask for what is the controller's.
    pub(crate) internal: Option<Arc<TokenFile>>,
    pub(crate) client: Client,
    pub(crate) breaker: BreakerRule,
    pub(crate) whose: Whose,
    pub(crate) targets: Vec<Target>,
    /// The model inside.
    pub(crate) embedded: Option<Embedded>,
    pub(crate) location: Location,
    /// Only of `relayd local`.
    pub(crate) home: Option<LocalHome>,
    pub(crate) traces: Option<TraceSettings>,
}

/// Runs it until a signal has drained it.
pub(crate) async fn serve_router(start: Start) -> Result<(), RelaydError> {
    let Start {
        build,
        settings,
        policy,
        authority,
        internal,
        client,
        breaker,
        whose,
        targets,
        embedded,
        location,
        mut home,
        traces,
    } = start;
    // Handlers first: a signal during start must not be lost.
    let (ending, signals) = Ending::of_process().map_err(RelaydError::start("handle signals"))?;
    let open_files = raise_file_limit();
    // Before anything is taken: a kubeconfig that cannot be used is a mistake of settings.
    let cluster = match &settings.policy {
        PolicySource::Object { cluster, .. } if home.is_none() => {
            Some(cluster::client(cluster).await?)
        }
        _ => None,
    };
    let port = RouterPort::take(&settings, home.is_some()).await?;
    let admin = admin(&settings).await?;
    let (address, comeback) = (port.address, port.comeback());
    let admin_address = admin
        .local_addr()
        .map_err(RelaydError::start("read the address of the admin port"))?;

    let registered = RelaydError::start("register metrics");
    let registry = Registry::new();
    let metrics = Metrics::register(&registry, build, &policy).map_err(registered)?;
    let traces = start_traces(traces.as_ref(), build, &metrics.process)
        .map_err(RelaydError::start("register metrics"))?;
    let servers = Servers::new(breaker, metrics.servers.clone());
    servers.replace(targets.clone())?;
    let shared_store = matches!(location, Location::Postgres(_));
    let store = open(location).await?;
    let objects = match &home {
        Some(home) => Some(LocalObjects::open(&home.places, &settings.daemon_port).await?),
        None => None,
    };
    let engine = match (&objects, &home, &settings.engine) {
        (Some(objects), Some(home), Some(settings)) => {
            let servers = servers.clone();
            let reports = Arc::new(InProcessReports(move || servers.report()));
            let store = objects.store();
            Some(LocalEngine::choose(settings, store, &home.places, reports).await?)
        }
        _ => None,
    };

    let mut runtime = RuntimeBuilder::new(metrics.process.clone(), signals)
        .admin(admin)
        .start();
    let router_ready = runtime.readiness().check("router");
    let in_force = PolicyInForce::new(policy);
    let router = Service::new(RouterParts {
        policy: in_force.clone(),
        client,
        store: store.clone(),
        shared_store,
        servers: servers.clone(),
        laya_files: home.as_ref().map(|home| home.places.laya()),
        metrics: metrics.router,
        registry,
        readiness: runtime.readiness(),
        stack: Stack {
            metrics: metrics.http,
            task_panics: metrics.process.task_panics.clone(),
            origins: Arc::new(Origins::new(
                settings.allow_origin.clone(),
                host_rule(settings.listen.value),
            )),
            authority: authority.clone(),
            admission: Arc::new(Admission::new(AdmissionLimits::default())),
            traces: traces.clone(),
        },
        internal: internal.clone(),
    });
    if let Err(error) = router.warm_up().await {
        tracing::warn!(%error, "what the store knows is read as soon as it answers");
    }
    let shutdown = runtime.shutdown();
    let suppressed = metrics.process.log_suppressed.clone();
    // Before anything is reconciled: none of them is a model server.
    let own_addresses = engine.as_ref().map(|engine| &engine.parts.own_addresses);
    let own_addresses = own_addresses.cloned().unwrap_or_default();
    own_addresses.add(address);
    own_addresses.add(admin_address);
    let objects = match (objects, &home) {
        (Some(objects), Some(home)) => {
            let with = With {
                traces: traces.clone(),
                fence: home.fence(),
                allowed: settings.allow_origin.clone(),
                engine: engine.clone(),
                ending: ending.clone(),
            };
            Some(objects.start(&mut runtime, &metrics.process, with)?)
        }
        _ => None,
    };
    let observed = match &objects {
        Some(objects) => objects.observed.clone(),
        // Addresses in a cluster are those of Services and pods, which nobody else gets.
        None => watch::channel(true).1,
    };
    let followed = match (&objects, cluster) {
        (Some(objects), _) => Some(objects.client.clone()),
        (None, Some(client)) => Some(cluster::guarded_client(client, &metrics.process)?),
        (None, None) => None,
    };
    if let (PolicySource::Object { name, .. }, Some(client)) = (&settings.policy, followed) {
        let (names, wanted) = watch::channel(None);
        let keeper = PolicyKeeper {
            policy: in_force.clone(),
            servers: servers.clone(),
            whose,
            ready: runtime.readiness().check("policy"),
            built_in: in_force.current(),
            names,
        };
        keeper
            .start(name, client.clone(), &mut runtime, &metrics.process)
            .await;
        let keeper = ServerKeeper {
            servers,
            configured: targets,
            client,
            stable: match whose {
                Whose::Own => StableUrl::Ignored,
                Whose::Shared => StableUrl::Asked,
            },
            observed,
        };
        keeper.start(wanted, &mut runtime, &metrics.process).await;
    }
    for (name, task) in router.tasks(&suppressed, &shutdown) {
        runtime.spawn(name, task);
    }
    if let Some(model) = embedded {
        let shutdown = shutdown.clone();
        runtime.spawn("model inside", async move { model.run(&shutdown).await });
    }
    runtime.spawn(
        "router port",
        serve(
            port.listener,
            router.app(),
            ConnectionLimits::default(),
            RepeatedError::new(suppressed.clone()),
            shutdown.clone(),
        ),
    );
    if let Some(tokens) = internal {
        let (suppressed, shutdown) = (suppressed.clone(), shutdown.clone());
        runtime.spawn("internal token file", async move {
            tokens
                .follow(&RepeatedError::new(suppressed), &shutdown)
                .await;
        });
    }
    if matches!(*authority, Authority::Tokens(_)) {
        let shutdown = shutdown.clone();
        runtime.spawn("token file", async move {
            if let Authority::Tokens(file) = &*authority {
                file.follow(&RepeatedError::new(suppressed), &shutdown)
                    .await;
            }
        });
    }
    let mut announcement = None;
    if let Some(home) = &mut home {
        let daemon = objects.as_ref().map(|objects| objects.address);
        announcement = Some(home.announce(address, daemon)?);
    }
    if let Some(comeback) = comeback {
        let suppressed = metrics.process.log_suppressed.clone();
        let beside = Beside {
            announcement,
            own_addresses,
        };
        let again = comeback.run(router.app(), beside, suppressed, shutdown);
        runtime.spawn("router's own port", again);
    }
    router_ready.ready();
    tracing::info!(
        %address,
        admin_address = %admin_address,
        policy = in_force.current().policy.name,
        revision = in_force.current().policy.revision(),
        open_files,
        version = build.version,
        "router is listening"
    );
    let wanted = &settings.admin_listen.value;
    if admin_address.port() != wanted.0.port() && wanted.0.port() != 0 {
        tracing::warn!(%wanted, taken = %admin_address, "admin port was taken, a free one is used");
    }
    let mut ended = runtime.run().await;
    // The router has no request any more that they could answer, and nothing repairs what stops.
    if !matches!(ended, Err(RuntimeError::Interrupted { .. }))
        && let Some(engine) = engine
    {
        tokio::select! {
            () = engine.end(ending.servers()) => {}
            signal = ending.next() => ended = Err(RuntimeError::Interrupted { signal }),
        }
    }
    let at_once = matches!(ended, Err(RuntimeError::Interrupted { .. }));
    if !at_once && let Err(error) = store.close(CLOSE_DEADLINE).await {
        tracing::warn!(%error, "not everything that waited for the store was written");
    }
    if !at_once
        && let Some(objects) = objects
        && let Err(error) = objects.store.close(CLOSE_DEADLINE).await
    {
        tracing::warn!(%error, "the file of objects was not closed");
    }
    traces.finish(if at_once {
        Duration::ZERO
    } else {
        FLUSH_DEADLINE
    });
    Ok(ended?)
}

async fn admin(settings: &RouterSettings) -> Result<TcpListener, RelaydError> {
    let taken = if settings.admin_was_asked_for() {
        PortTaken::Refuse
    } else {
        PortTaken::TakeAnyFree
    };
    bind(settings.admin_listen.value, taken)
        .await
        .map_err(RelaydError::AdminListen)
}

async fn open(location: Location) -> Result<Store, RelaydError> {
    let Opened { store, notices } = Store::open(location, StoreOptions::default()).await?;
    for notice in notices {
        tracing::warn!("{notice}");
    }
    Ok(store)
}

/// Everything that is counted.
struct Metrics {
    process: ProcessMetrics,
    http: HttpMetrics,
    router: RouterMetrics,
    servers: ServerMetrics,
}

impl Metrics {
    fn register(
        registry: &Registry,
        build: BuildInfo,
        policy: &ActivePolicy,
    ) -> prometheus::Result<Self> {
        let process = ProcessMetrics::register(registry.clone(), build)?;
        Ok(Self {
            http: HttpMetrics::register(registry, METRICS_PREFIX)?,
            router: RouterMetrics::register(registry, &policy.policy)?,
            servers: ServerMetrics::register(registry, process.log_suppressed.clone())?,
            process,
        })
    }
}

/// Where spans go. A collector that cannot be spoken to is no reason not to work.
pub(crate) fn start_traces(
    settings: Option<&TraceSettings>,
    build: BuildInfo,
    process: &ProcessMetrics,
) -> prometheus::Result<Traces> {
    let counted = TraceMetrics::register(&process.registry)?;
    let Some(settings) = settings else {
        return Ok(Traces::off());
    };
    let errors = RepeatedError::new(process.log_suppressed.clone());
    Ok(
        Traces::start(settings, build, counted, errors).unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "traces are off");
            Traces::off()
        }),
    )
}

/// Without tokens the host name is what tells a page of a browser from a client.
fn host_rule(listen: ListenAddress) -> HostRule {
    if listen.is_loopback() {
        HostRule::LoopbackOnly
    } else {
        HostRule::Any
    }
}
