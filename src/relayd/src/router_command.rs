//! `relayd router`: puts settings, policy, tokens and listeners together, in the order in which a mistake should be
//! reported, and runs until it is told to end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use prometheus::Registry;
use router::servers::{BreakerRule, ConfiguredServer, ServerMetrics, Servers, Target};
use router::{ActivePolicy, METRICS_PREFIX, RouterMetrics, RouterParts};
use routing::decide::Client;
use service::http::accept::{ConnectionLimits, serve};
use service::http::{
    Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Stack, TokenFile,
};
use service::listen::{ListenAddress, PortTaken, bind};
use service::runtime::{RuntimeBuilder, RuntimeError, Signals, raise_file_limit};
use service::telemetry::trace::{FLUSH_DEADLINE, TraceMetrics, TraceSettings, Traces};
use service::telemetry::{self, BuildInfo, ProcessMetrics, RepeatedError};

use crate::RouterFlags;
use crate::error::RelaydError;
use crate::settings::RouterSettings;

const BUILD: BuildInfo = BuildInfo {
    component: "router",
    version: env!("CARGO_PKG_VERSION"),
    commit: match option_env!("RELAY_COMMIT") {
        Some(commit) => commit,
        None => "unknown",
    },
};

/// Runs the command to its end.
pub(crate) fn run(flags: RouterFlags) -> Result<(), RelaydError> {
    let print_config = flags.print_config;
    let settings = RouterSettings::read(flags, environment())?;
    if print_config {
        return cli::print(&settings.effective.to_string())
            .map_err(RelaydError::start("write to standard output"));
    }
    telemetry::install(settings.log_format, settings.log_level)
        .map_err(RelaydError::start("set up logs"))?;
    for warning in &settings.effective.warnings {
        tracing::warn!("{warning}");
    }
    let (trace_settings, ignored) = TraceSettings::of_environment(environment());
    for warning in ignored {
        tracing::warn!("{warning}");
    }
    let policy = Arc::new(active_policy(&settings)?);
    let authority = Arc::new(authority(&settings)?);
    let targets = targets(&settings.servers)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RelaydError::start("start the asynchronous runtime"))?
        .block_on(serve_router(settings, policy, authority, targets, trace_settings))
}

/// The environment, with what is not UTF-8 made so: such a value is then refused by its setting, with its name.
fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

fn active_policy(settings: &RouterSettings) -> Result<ActivePolicy, RelaydError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let active = match &settings.policy {
        Some(path) => ActivePolicy::of_file(path, today)?,
        None => ActivePolicy::built_in(today)?,
    };
    // Keyword lists are compiled when they are first needed; not at the cost of the first request.
    let _ = active.policy.keywords();
    for problem in &active.policy.warnings {
        tracing::warn!(path = problem.path, message = problem.message, "policy");
    }
    Ok(active)
}

/// Tokens hold where a file is named; beyond loopback there must be one.
fn authority(settings: &RouterSettings) -> Result<Authority, RelaydError> {
    let loopback = settings.listen.is_loopback();
    let path = match &settings.token_file {
        Some(path) => path.clone(),
        None if loopback => return Ok(Authority::Open),
        None => default_token_file()?,
    };
    if settings.token_file.is_none() && !path.exists() {
        return Err(RelaydError::NoTokens {
            address: settings.listen.to_string(),
        });
    }
    Ok(Authority::Tokens(TokenFile::open(&path)?))
}

/// The servers with their keys and questions.
fn targets(servers: &[ConfiguredServer]) -> Result<Vec<Target>, RelaydError> {
    let target = |server: &ConfiguredServer| {
        server.target().map_err(|source| RelaydError::Server {
            url: server.url.to_string(),
            source,
        })
    };
    servers.iter().map(target).collect()
}

fn default_token_file() -> Result<PathBuf, RelaydError> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = set("RELAY_HOME").or_else(|| set("HOME").map(|home| home.join(".relay")));
    Ok(home
        .ok_or(RelaydError::NoHome)?
        .join("router")
        .join("tokens"))
}

async fn serve_router(
    settings: RouterSettings,
    policy: Arc<ActivePolicy>,
    authority: Arc<Authority>,
    targets: Vec<Target>,
    trace_settings: Option<TraceSettings>,
) -> Result<(), RelaydError> {
    // Handlers first: a signal during start must not be lost.
    let signals = Signals::of_process().map_err(RelaydError::start("handle signals"))?;
    let open_files = raise_file_limit();
    let listener = bind(settings.listen, PortTaken::Refuse)
        .await
        .map_err(RelaydError::Listen)?;
    let taken = if settings.admin_was_asked_for() {
        PortTaken::Refuse
    } else {
        PortTaken::TakeAnyFree
    };
    let admin = bind(settings.admin_listen.value, taken)
        .await
        .map_err(RelaydError::AdminListen)?;
    let address = listener
        .local_addr()
        .map_err(RelaydError::start("read the address of the listener"))?;
    let admin_address = admin
        .local_addr()
        .map_err(RelaydError::start("read the address of the admin port"))?;

    let registry = Registry::new();
    let (process, http, decisions) =
        metrics(&registry, &policy).map_err(RelaydError::start("register metrics"))?;

    let server_metrics = ServerMetrics::register(&registry, process.log_suppressed.clone())
        .map_err(RelaydError::start("register metrics"))?;
    let servers = Servers::new(breaker_rule(&policy), server_metrics);
    servers.replace(targets)?;
    let traces = traces(trace_settings.as_ref(), &process)
        .map_err(RelaydError::start("register metrics"))?;

    let mut runtime = RuntimeBuilder::new(process.clone(), signals)
        .admin(admin)
        .start();
    let policy_ready = runtime.readiness().check("policy");
    let app = router::app(RouterParts {
        policy: policy.clone(),
        client: client(&authority),
        servers: servers.clone(),
        metrics: decisions,
        registry,
        readiness: runtime.readiness(),
        stack: Stack {
            metrics: http,
            task_panics: process.task_panics.clone(),
            origins: Arc::new(Origins::new(
                settings.allow_origin,
                host_rule(settings.listen),
            )),
            authority: authority.clone(),
            admission: Arc::new(Admission::new(AdmissionLimits::default())),
            traces: traces.clone(),
        },
    });
    let shutdown = runtime.shutdown();
    let looking = shutdown.clone();
    runtime.spawn(
        "decision models",
        async move { servers.follow(&looking).await },
    );
    let suppressed = process.log_suppressed;
    let accept_errors = RepeatedError::new(suppressed.clone());
    runtime.spawn(
        "router port",
        serve(
            listener,
            app,
            ConnectionLimits::default(),
            accept_errors,
            shutdown.clone(),
        ),
    );
    if matches!(*authority, Authority::Tokens(_)) {
        runtime.spawn("token file", async move {
            if let Authority::Tokens(file) = &*authority {
                file.follow(&RepeatedError::new(suppressed), &shutdown)
                    .await;
            }
        });
    }
    policy_ready.ready();
    tracing::info!(
        %address,
        admin_address = %admin_address,
        policy = policy.policy.name,
        revision = policy.policy.revision(),
        open_files,
        version = BUILD.version,
        "router is listening"
    );
    if admin_address.port() != settings.admin_listen.value.0.port()
        && settings.admin_listen.value.0.port() != 0
    {
        tracing::warn!(wanted = %settings.admin_listen.value, taken = %admin_address, "admin port was taken, a free one is used");
    }
    let ended = runtime.run().await;
    traces.finish(match ended {
        Err(RuntimeError::Interrupted { .. }) => Duration::ZERO,
        Ok(()) | Err(_) => FLUSH_DEADLINE,
    });
    Ok(ended?)
}

/// Where spans go. A collector that cannot be spoken to is no reason not to route.
fn traces(
    settings: Option<&TraceSettings>,
    process: &ProcessMetrics,
) -> prometheus::Result<Traces> {
    let metrics = TraceMetrics::register(&process.registry)?;
    let Some(settings) = settings else {
        return Ok(Traces::off());
    };
    let errors = RepeatedError::new(process.log_suppressed.clone());
    Ok(
        Traces::start(settings, BUILD, metrics, errors).unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "traces are off");
            Traces::off()
        }),
    )
}

fn metrics(
    registry: &Registry,
    policy: &ActivePolicy,
) -> prometheus::Result<(ProcessMetrics, HttpMetrics, RouterMetrics)> {
    Ok((
        ProcessMetrics::register(registry.clone(), BUILD)?,
        HttpMetrics::register(registry, METRICS_PREFIX)?,
        RouterMetrics::register(registry, &policy.policy)?,
    ))
}

/// One slow answer must not push everybody to rules, and a router is for everybody.
fn breaker_rule(policy: &ActivePolicy) -> BreakerRule {
    let seconds = policy.policy.source.deadlines.breaker_seconds;
    BreakerRule {
        failures: BreakerRule::SHARED_FAILURES,
        open_for: Duration::from_secs(seconds.into()),
    }
}

/// Who has a token shares the router with others; on loopback it is the user's own.
fn client(authority: &Authority) -> Client {
    match authority {
        Authority::Open => Client::Own,
        Authority::Tokens(_) => Client::Shared,
    }
}

/// Without tokens the host name is what tells a page of a browser from a client.
fn host_rule(listen: ListenAddress) -> HostRule {
    if listen.is_loopback() {
        HostRule::LoopbackOnly
    } else {
        HostRule::Any
    }
}
