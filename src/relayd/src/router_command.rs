//! `relayd router` and `relayd local`: read what was asked for, in the order in which a mistake should be reported, and
//! hand it to [`start`](crate::start).

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use files::Places;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use router::ActivePolicy;
use router::servers::{BreakerRule, ConfiguredServer, Embedded, EmbeddedOptions, Target};
use routing::decide::Client;
use routing::policy::RequestTextPrivacy;
use service::http::{Authority, TokenFile};
use service::telemetry::trace::TraceSettings;
use service::telemetry::{self, BuildInfo};
use store::Location;

use crate::error::RelaydError;
use crate::local_home::LocalHome;
use crate::settings::{Owner, PolicySource, RouterSettings};
use crate::start::{Start, serve_router};
use crate::{LocalFlags, RouterFlags, SharedFlags};

/// Name of the model inside, in metrics and decisions.
const EMBEDDED: &str = "embedded";

/// Whose router it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// One user's.
    Own,
    /// Many share it.
    Shared,
}

pub(crate) const fn build(component: &'static str) -> BuildInfo {
    BuildInfo {
        component,
        version: env!("CARGO_PKG_VERSION"),
        commit: match option_env!("RELAY_COMMIT") {
            Some(commit) => commit,
            None => "unknown",
        },
    }
}

/// Runs `relayd router` to its end.
pub(crate) fn router(flags: SharedFlags) -> Result<(), RelaydError> {
    let SharedFlags {
        router,
        kubeconfig,
        namespace,
    } = flags;
    let owner = Owner::Shared {
        kubeconfig,
        namespace,
    };
    run(router, owner)
}

/// Runs `relayd local` to its end.
pub(crate) fn local(flags: LocalFlags) -> Result<(), RelaydError> {
    let LocalFlags {
        router,
        checkpoint,
        daemon_port,
        engine,
        no_docker,
        no_controller,
    } = flags;
    let owner = Owner::User {
        checkpoint,
        daemon_port,
        engine,
        no_docker,
        no_controller,
    };
    run(router, owner)
}

fn run(flags: RouterFlags, owner: Owner) -> Result<(), RelaydError> {
    let print_config = flags.print_config;
    let whose = match owner {
        Owner::User { .. } => Whose::Own,
        Owner::Shared { .. } => Whose::Shared,
    };
    let is_local = whose == Whose::Own;
    let settings = RouterSettings::read(flags, owner, environment())?;
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
    let policy = Arc::new(active_policy(&settings.policy, whose)?);
    let authority = Arc::new(authority(&settings)?);
    let internal = settings.internal_token_file.as_deref();
    let internal = internal.map(TokenFile::open).transpose()?.map(Arc::new);
    let embedded = embedded(settings.checkpoint.as_deref())?;
    let mut targets = targets(&settings.servers)?;
    targets.extend(embedded.iter().map(|model| model.target(EMBEDDED)));
    let home = match is_local {
        true => Some(LocalHome::take(places()?)?),
        false => None,
    };
    let start = Start {
        build: build(if is_local { "local" } else { "router" }),
        location: location(&settings, home.as_ref())?,
        breaker: breaker_rule(&policy, whose),
        whose,
        client: client(&authority),
        policy,
        authority,
        internal,
        targets,
        embedded,
        home,
        traces,
        settings,
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RelaydError::start("start the asynchronous runtime"))?
        .block_on(serve_router(start))
}

/// The environment, with what is not UTF-8 made so: such a value is then refused by its setting, with its name.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

fn places() -> Result<Places, RelaydError> {
    Ok(Places::find(&|name| std::env::var_os(name))?)
}

/// The policy to begin with. That of an object is not known yet.
fn active_policy(source: &PolicySource, whose: Whose) -> Result<ActivePolicy, RelaydError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let active = match source {
        PolicySource::File(path) => ActivePolicy::of_file(path, today)?,
        PolicySource::BuiltIn | PolicySource::Object { .. } => ActivePolicy::built_in(today)?,
    };
    Ok(in_force(active, whose))
}

/// A policy as it is put in force here.
pub(crate) fn in_force(mut active: ActivePolicy, whose: Whose) -> ActivePolicy {
    // What nobody decided depends on whose requests these are (control-plane 6); it is no part of the digest.
    active
        .policy
        .source
        .request_text
        .get_or_insert(match whose {
            Whose::Own => RequestTextPrivacy::Full,
            Whose::Shared => RequestTextPrivacy::Hashed,
        });
    // Keyword lists are compiled when they are first needed; not at the cost of the first request.
    let _ = active.policy.keywords();
    for problem in &active.policy.warnings {
        tracing::warn!(path = problem.path, message = problem.message, "policy");
    }
    active
}

/// Tokens hold where a file is named; beyond loopback there must be one.
fn authority(settings: &RouterSettings) -> Result<Authority, RelaydError> {
    let loopback = settings.listen.value.is_loopback();
    let path = match &settings.token_file {
        Some(path) => path.clone(),
        None if loopback => return Ok(Authority::Open),
        None => places()?.tokens(),
    };
    if settings.token_file.is_none() && !path.exists() {
        return Err(RelaydError::NoTokens {
            address: settings.listen.value.to_string(),
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

fn embedded(folder: Option<&std::path::Path>) -> Result<Option<Embedded>, RelaydError> {
    let Some(folder) = folder else {
        return Ok(None);
    };
    let model = Embedded::new(folder, EmbeddedOptions::default());
    let model = model.map_err(|source| RelaydError::Checkpoint {
        folder: folder.to_owned(),
        source,
    })?;
    Ok(Some(model))
}

/// The database that was named, else a file in the user's home.
fn location(settings: &RouterSettings, home: Option<&LocalHome>) -> Result<Location, RelaydError> {
    if let Some(url) = &settings.database {
        return Ok(Location::Postgres(url.0.clone()));
    }
    let places = match home {
        Some(home) => home.places.clone(),
        None => places()?,
    };
    let refused = |path: PathBuf| move |source| RelaydError::Home { path, source };
    files::make_private_folder(&places.relay).map_err(refused(places.relay.clone()))?;
    Ok(Location::Sqlite(places.database()))
}

/// One slow answer must not push a whole team to rules; one user alone is better off with them.
pub(crate) fn breaker_rule(policy: &ActivePolicy, whose: Whose) -> BreakerRule {
    let seconds = policy.policy.source.deadlines.breaker_seconds;
    BreakerRule {
        failures: match whose {
            Whose::Own => BreakerRule::OWN_FAILURES,
            Whose::Shared => BreakerRule::SHARED_FAILURES,
        },
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
