//! `relayd controller`: the reconcilers over the objects of a cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use controller::client::Deadlines;
use controller::clock::SystemClock;
use controller::faults::FaultPoints;
use controller::fence::Fence;
use controller::metrics::ControllerMetrics;
use controller::reports::{HttpReports, NoReports, RevisionReader};
use controller::{Controller, ControllerParts, Namespaces};
use files::Places;
use kube::Client;
use prometheus::Registry;
use service::config::{Effective, Layers, Setting, Source};
use service::listen::{ListenAddress, PortTaken, bind};
use service::runtime::{RuntimeBuilder, RuntimeError, Signals};
use service::telemetry::trace::{FLUSH_DEADLINE, TraceSettings};
use service::telemetry::{self, LogFormat, LogLevel, ProcessMetrics};

use crate::ControllerFlags;
use crate::cluster;
use crate::ending::Servers;
use crate::engine::{Beside, LocalEngine};
use crate::engine_choice::{BackendName, Choice, ChosenBy};
use crate::engine_settings::{EngineOf, EngineSettings};
use crate::error::RelaydError;
use crate::router_command::{build, environment};
use crate::settings::{ClusterAddress, PREFIX, configuration_file, loopback, one, read_file};
use crate::start::start_traces;
use crate::tombstones::RemoteTombstones;

/// Most bytes of the file with the store's id.
const MAX_ID_BYTES: u64 = 128;

/// Everything `relayd controller` can be told.
struct ControllerSettings {
    kubeconfig: Option<PathBuf>,
    namespaces: Vec<String>,
    engine: EngineSettings,
    /// A router whose report of revisions rollouts are judged by.
    router_url: Option<String>,
    router_token_file: Option<PathBuf>,
    admin_listen: Setting<ListenAddress>,
    log_format: LogFormat,
    log_level: LogLevel,
    effective: Effective,
}

impl ControllerSettings {
    fn read(
        flags: ControllerFlags,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RelaydError> {
        // Destructured whole, so that a new flag cannot be forgotten.
        let ControllerFlags {
            kubeconfig,
            namespace,
            engine,
            router_url,
            router_token_file,
            admin_listen,
            log_format,
            log_level,
            config,
            print_config: _,
        } = flags;
        let environment: BTreeMap<_, _> = environment.into_iter().collect();
        let file = configuration_file(config, &environment);
        let text = file.as_deref().map(read_file).transpose()?;
        let mut flags = BTreeMap::from([
            ("kubeconfig", one(kubeconfig)),
            ("namespace", namespace),
            ("router_url", one(router_url)),
            ("router_token_file", one(router_token_file)),
            ("admin_listen", one(admin_listen)),
            ("log_format", one(log_format)),
            ("log_level", one(log_level)),
        ]);
        flags.extend(engine.given());
        let file = file.as_deref().zip(text.as_deref());
        let mut layers = Layers::new(flags, PREFIX, environment, file)?;
        layers.know_variable("config");
        Ok(Self {
            kubeconfig: layers.optional("kubeconfig")?.map(|setting| setting.value),
            namespaces: layers.list("namespace")?.value,
            engine: EngineSettings::read(&mut layers, EngineOf::Controller)?,
            router_url: layers.optional("router_url")?.map(|setting| setting.value),
            router_token_file: layers
                .optional("router_token_file")?
                .map(|setting| setting.value),
            admin_listen: layers.with_default("admin_listen", loopback(9737))?,
            log_format: layers.with_default("log_format", LogFormat::Text)?.value,
            log_level: layers.with_default("log_level", LogLevel::Info)?.value,
            effective: layers.finish()?,
        })
    }
}

/// Runs `relayd controller` to its end.
pub(crate) fn run(flags: ControllerFlags) -> Result<(), RelaydError> {
    let print_config = flags.print_config;
    let settings = ControllerSettings::read(flags, environment())?;
    if print_config {
        return cli::print(&settings.effective.to_string())
            .map_err(RelaydError::start("write to standard output"));
    }
    telemetry::install(settings.log_format, settings.log_level)
        .map_err(RelaydError::start("set up logs"))?;
    for warning in &settings.effective.warnings {
        tracing::warn!("{warning}");
    }
    let (traces, ignored) = TraceSettings::of_environment(environment());
    for warning in ignored {
        tracing::warn!("{warning}");
    }
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RelaydError::start("start the asynchronous runtime"))?
        .block_on(reconcile(settings, traces))
}

/// What models and servers live on. With the objects of a cluster it is the cluster, which is not reconciled yet.
fn engine(
    settings: &EngineSettings,
    client: &Client,
    reports: Arc<dyn RevisionReader>,
) -> Result<Option<LocalEngine>, RelaydError> {
    let backend = settings.backend.unwrap_or(BackendName::Kubernetes);
    if backend == BackendName::Kubernetes {
        tracing::info!(
            "only policies are reconciled: this version does not run models and servers in a cluster"
        );
        return Ok(None);
    }
    let places = Places::find(&|name| std::env::var_os(name))?;
    let path = places.instance();
    let store = files::read_text(&path, MAX_ID_BYTES)
        .map_err(|source| RelaydError::NoInstance { path, source })?;
    let choice = Choice {
        backend,
        by: ChosenBy::Flag,
    };
    let beside = Beside {
        // What was deleted is known to the process with the store alone.
        tombstones: Arc::new(RemoteTombstones::new(client.clone())),
        reports,
    };
    let engine = LocalEngine::of(choice, settings, store.text.trim(), &places, beside)?;
    Ok(Some(engine))
}

/// The address of a URL that names one of this machine by its number.
fn address_of(url: &str) -> Option<SocketAddr> {
    let authority = url.strip_prefix("http://")?.split('/').next()?;
    authority.replace("localhost", "127.0.0.1").parse().ok()
}

async fn reconcile(
    settings: ControllerSettings,
    traces: Option<TraceSettings>,
) -> Result<(), RelaydError> {
    // Handlers first: a signal during start must not be lost.
    let signals = Signals::of_process().map_err(RelaydError::start("handle signals"))?;
    let address = ClusterAddress {
        kubeconfig: settings.kubeconfig,
        namespace: None,
    };
    let client = cluster::client(&address).await?;
    let router = settings.router_url.as_deref().and_then(address_of);
    let reports: Arc<dyn RevisionReader> = match settings.router_url {
        Some(url) => Arc::new(HttpReports::new(url, settings.router_token_file)),
        None => Arc::new(NoReports),
    };
    let engine = engine(&settings.engine, &client, reports)?;
    let namespaces = if settings.namespaces.is_empty() {
        vec![client.default_namespace().to_owned()]
    } else {
        settings.namespaces
    };
    let taken = if settings.admin_listen.source == Source::Default {
        PortTaken::TakeAnyFree
    } else {
        PortTaken::Refuse
    };
    let admin = bind(settings.admin_listen.value, taken)
        .await
        .map_err(RelaydError::AdminListen)?;
    let admin_address = admin
        .local_addr()
        .map_err(RelaydError::start("read the address of the admin port"))?;
    if let Some(engine) = &engine {
        // The router must not be told to ask itself.
        let own_addresses = &engine.parts.own_addresses;
        own_addresses.add(admin_address);
        router.into_iter().for_each(|it| own_addresses.add(it));
    }
    let registered = RelaydError::start("register metrics");
    let build = build("controller");
    let process = ProcessMetrics::register(Registry::new(), build).map_err(registered)?;
    let metrics =
        ControllerMetrics::register(&process).map_err(RelaydError::start("register metrics"))?;
    let traces = start_traces(traces.as_ref(), build, &process)
        .map_err(RelaydError::start("register metrics"))?;
    let mut runtime = RuntimeBuilder::new(process, signals).admin(admin).start();
    let controller = Controller::new(ControllerParts {
        client,
        deadlines: Deadlines::default(),
        namespaces: Namespaces::Only(namespaces.clone()),
        metrics,
        traces: traces.clone(),
        fence: Fence::only_instance(),
        clock: Arc::new(SystemClock),
        ready: runtime.readiness().check("controller"),
        faults: FaultPoints::none(),
        instance: std::env::var("HOSTNAME").ok(),
        engine: engine.as_ref().map(|engine| engine.parts.clone()),
    });
    let shutdown = runtime.shutdown();
    runtime.spawn("controller", controller.run(shutdown));
    tracing::info!(
        namespaces = namespaces.join(","),
        admin_address = %admin_address,
        version = build.version,
        "controller runs"
    );
    let ended = runtime.run().await;
    let at_once = matches!(ended, Err(RuntimeError::Interrupted { .. }));
    if !at_once && let Some(engine) = engine {
        engine.end(Servers::Keep).await;
    }
    traces.finish(if at_once {
        Duration::ZERO
    } else {
        FLUSH_DEADLINE
    });
    Ok(ended?)
}
