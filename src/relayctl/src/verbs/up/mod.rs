//! `relayctl up`: `relayd local` runs, the default objects are there, a model serves where there is one, and what is missing
//! is said with what adds it.

mod health;
mod objects;
mod running;
mod serving;

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use files::Places;
use serde_json::Value;

pub(crate) use self::health::{has_own_address, has_own_model, said as model_said};
use super::status::{Missing, engine_line, engine_problems, lost, no_model, port_problem};
use super::wait;
use crate::call::{Call, block_on};
use crate::context::LOCAL;
use crate::daemon::calls::{self, Engine};
use crate::daemon::{self, Endpoint, Model};
use crate::error::CliError;
use crate::kinds;
use crate::output;
use crate::server::Server;
use crate::terminal;
use api::exit::Exit;

/// A start takes about a second; a large model inside takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(20);
/// Longest path of a socket, in bytes, without the zero behind it.
pub(crate) const MAX_SOCKET: usize = 107;

/// Arguments of `relayctl up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Where there are none, LayaModel `v1` (the shipped version), LayaServer `main` and RoutingPolicy `default` are made. A download
of more than 100 MB is asked for, or said yes to with --yes; without a terminal it is left out, and `relayctl model fetch v1`
begins it. A first try without any network:
  laya random-checkpoint --contract relay ./tiny
  relayctl up && relayctl model import tiny --dir ./tiny && relayctl use tiny

Flags of `relayd local` are given as variables, for example:
  RELAYD_CHECKPOINT=~/models/laya relayctl up
  RELAYD_LISTEN=127.0.0.1:9000 relayctl up")]
pub(crate) struct UpArguments {
    /// What models run in [default: docker where an engine answers, else embedded]
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "no_docker")]
    backend: Option<Backend>,
    /// As --backend embedded: models run inside `relayd local`
    #[arg(long)]
    no_docker: bool,
    /// Make objects of what runs and belongs to none, after objects were lost
    #[arg(long)]
    recover: bool,
}

/// What models run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// Containers
    Docker,
    /// `relayd local` itself
    Embedded,
}

impl Backend {
    fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Embedded => "embedded",
        }
    }
}

/// What there is in the end.
struct Up {
    endpoint: Endpoint,
    engine: Result<Engine, CliError>,
    policy: Value,
    health: Option<Value>,
    /// Why a model that was asked for by a variable does not serve.
    said: Option<Model>,
    models: Vec<Value>,
    servers: Vec<Value>,
    missing: Vec<Missing>,
}

/// Starts Relay on this machine.
pub(crate) fn run(call: &Call, arguments: &UpArguments) -> Result<Exit, CliError> {
    let UpArguments {
        backend,
        no_docker,
        recover,
    } = *arguments;
    only_local(call, "up")?;
    let backend = backend.or(no_docker.then_some(Backend::Embedded));
    let flags = backend.map_or(Vec::new(), |backend| vec!["--backend", backend.word()]);
    let places = call.places()?;
    let ends = Instant::now() + call.patience(PATIENCE);
    block_on(Box::pin(async {
        let running = running::running(call, &places, &flags, ends).await?;
        let Some((endpoint, started)) = running else {
            return Ok(Exit::Done);
        };
        let server = call.connect().await?;
        let engine = calls::engine(&server).await;
        choose(call, &server, engine.as_ref().ok(), backend).await?;
        if recover {
            recovered(call, &server).await?;
        }
        let made = objects::defaults(call, &server, &endpoint).await?;
        // Somebody may have thought about a question for long.
        let left = call.patience(PATIENCE);
        let kind = kinds::routing_policy();
        let policy =
            wait::until_settled(&server, kind, &server.namespace, &made.policy, left).await?;
        let mut missing = serving::until_served(call, &server, &made).await?;
        let servers = objects::all(&server, kinds::laya_server()).await?;
        let serves = servers.iter().any(is_ready);
        let (health, said) = health::look(&places, &endpoint, started.as_ref(), serves).await;
        missing.extend(made.missing);
        let up = Up {
            policy,
            health,
            said,
            missing,
            models: objects::all(&server, kinds::laya_model()).await?,
            servers,
            engine: calls::engine(&server).await,
            endpoint,
        };
        tell(&places, &server, &up)
    }))
}

/// Whether a server answers, by its condition.
fn is_ready(object: &Value) -> bool {
    crate::conditions::find(object, "Ready").is_some_and(|ready| ready.is_true())
}

/// What starts and stops on this machine has nothing to do with a cluster.
pub(crate) fn only_local(call: &Call, verb: &str) -> Result<(), CliError> {
    let context = call.context()?;
    if context.is_local() {
        return Ok(());
    }
    let line = format!(
        "`{verb}` is about this machine, and the context is `{}` (named by {})",
        context.name,
        context.source.describe()
    );
    Err(CliError::usage(line).hint(format!("`relayctl {verb} --context {LOCAL}`")))
}

/// A daemon that runs keeps its engine until it starts anew.
async fn choose(
    call: &Call,
    server: &Server,
    engine: Option<&Engine>,
    wanted: Option<Backend>,
) -> Result<(), CliError> {
    let (Some(wanted), Some(engine)) = (wanted, engine) else {
        return Ok(());
    };
    if engine.backend == wanted.word() {
        return Ok(());
    }
    calls::choose_backend(server, wanted.word()).await?;
    call.tell(&format!(
        "`relayd local` runs with back end {}; {} is used from its next start on: `relayctl down` and `relayctl up`",
        engine.backend,
        wanted.word()
    ));
    Ok(())
}

async fn recovered(call: &Call, server: &Server) -> Result<(), CliError> {
    let calls::Recovered {
        made,
        skipped,
        message,
    } = calls::recover(server).await?;
    if !made.is_empty() {
        call.tell(&format!("recovered {}", made.join(", ")));
    }
    for (name, why) in &skipped {
        call.tell(&format!("not recovered: {name}: {why}"));
    }
    if made.is_empty() && skipped.is_empty() {
        let nothing = "nothing runs that belongs to no object";
        call.tell(&format!(
            "nothing was recovered: {}",
            message.as_deref().unwrap_or(nothing)
        ));
    }
    Ok(())
}

fn tell(places: &Places, server: &Server, up: &Up) -> Result<Exit, CliError> {
    let model = up
        .health
        .as_ref()
        .and_then(|health| health["model"].as_str());
    let mut text = format!(
        "relayd    process {}, version {}\nrouter    {}\n",
        up.endpoint.process.pid,
        up.endpoint.version,
        up.endpoint.router.as_deref().unwrap_or("none"),
    );
    if let Ok(engine) = &up.engine {
        text.push_str(&format!("engine    {}\n", engine_line(engine)));
    }
    text.push_str(&format!(
        "policy    {}, revision {}\nmodel     {}\n",
        up.policy["metadata"]["name"].as_str().unwrap_or_default(),
        up.policy["status"]["acceptedRevision"]
            .as_str()
            .unwrap_or("none"),
        model.unwrap_or("none, keyword rules answer"),
    ));
    for lost in lost(places) {
        text.push_str(&format!(
            "lost      {}\n          fix: {}\n",
            lost.what, lost.fix
        ));
    }
    let mut missing = up.missing.clone();
    if let Ok(engine) = &up.engine {
        missing.extend(engine_problems(engine));
    }
    if server.context.is_local() {
        let own = has_own_model(&up.endpoint);
        let engine = up.engine.as_ref().ok();
        missing.extend(port_problem(
            up.endpoint.router.as_deref(),
            has_own_address(&up.endpoint),
            engine,
            daemon::port_holder,
        ));
        missing.extend(no_model(
            up.health.as_ref(),
            up.said.as_ref(),
            own,
            &up.models,
            &up.servers,
        ));
    }
    for missing in missing {
        text.push_str(&format!(
            "missing   {}\n          add it: {}\n",
            missing.what.trim_start_matches("no "),
            missing.fix
        ));
    }
    terminal::print(&output::visible(&text))?;
    Ok(Exit::Done)
}
