//! `relayctl up`: `relayd local` runs, a RoutingPolicy is in force, and what is missing is said with what adds it.

use std::time::{Duration, Instant};

use clap::Args;
use files::{Lock, Places};
use serde_json::{Value, json};

use super::status::Missing;
use super::version::VERSION;
use super::wait;
use crate::call::{Call, block_on};
use crate::context::LOCAL;
use crate::daemon::{self, Endpoint, Started, State};
use crate::error::CliError;
use crate::kinds;
use crate::output;
use crate::router::Router;
use crate::server::{Force, Form, Selection, Server, Write};
use crate::terminal;
use api::exit::Exit;

/// A start takes about a second; a large model inside takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(20);
/// Exit code of a `relayd local` that found another one.
const ALREADY_RUNS: i32 = 4;

/// Arguments of `relayctl up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Flags of `relayd local` are given as variables, for example:
  RELAYD_CHECKPOINT=~/models/laya relayctl up
  RELAYD_LISTEN=127.0.0.1:9000 relayctl up")]
pub(crate) struct UpArguments {}

/// Starts Relay on this machine.
pub(crate) fn run(call: &Call, arguments: &UpArguments) -> Result<Exit, CliError> {
    let UpArguments {} = *arguments;
    only_local(call, "up")?;
    let places = call.places()?;
    let ends = Instant::now() + call.patience(PATIENCE);
    block_on(Box::pin(async {
        let endpoint = running(call, &places, ends).await?;
        let Some(endpoint) = endpoint else {
            return Ok(Exit::Done);
        };
        let server = call.connect().await?;
        let policy = default_policy(call, &server, ends).await?;
        tell_result(&server, &endpoint, policy).await
    }))
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

/// A daemon that answers; nothing where nobody waits for one that was started.
async fn running(
    call: &Call,
    places: &Places,
    ends: Instant,
) -> Result<Option<Endpoint>, CliError> {
    files::make_private_folder(&places.relay)
        .map_err(|error| CliError::file(&places.relay, error))?;
    files::make_private_folder(&places.daemon())
        .map_err(|error| CliError::file(&places.daemon(), error))?;
    // Two at once: the second waits for the first, and finds what that started.
    let lock = places.daemon().join("up.lock");
    let left = ends.saturating_duration_since(Instant::now());
    let held = Lock::take_within(&lock, left).map_err(|error| CliError::file(&lock, error))?;
    if held.is_none() {
        let line = "another `relayctl up` is still waiting for `relayd local`";
        return Err(CliError::new(Exit::TimedOut, line));
    }
    match daemon::look(places) {
        State::Runs(endpoint) => {
            tell_found(call, &endpoint);
            return answering(call, places, None, ends).await.map(Some);
        }
        State::Crashed(how) => call.tell(&format!(
            "a `relayd local` ended without cleaning up ({how}); a new one is started"
        )),
        State::Absent => {}
    }
    let program = daemon::find_program()?;
    let started = daemon::start(places, &program)?;
    call.tell(&format!(
        "starting {} local (process {}, log {})",
        program.display(),
        started.child.id(),
        started.log().display()
    ));
    if !call.waits(true) {
        return Ok(None);
    }
    answering(call, places, Some(started), ends).await.map(Some)
}

fn tell_found(call: &Call, endpoint: &Endpoint) {
    if endpoint.version != VERSION {
        call.tell(&format!(
            "`relayd local` is of version {}, this program of {VERSION}; `relayctl down` and `relayctl up` start the one beside it",
            endpoint.version
        ));
    }
}

/// Waits until the object API answers.
async fn answering(
    call: &Call,
    places: &Places,
    mut started: Option<Started>,
    ends: Instant,
) -> Result<Endpoint, CliError> {
    let server = call.connect().await?;
    let mut last = "it has not said yet where it listens".to_owned();
    loop {
        if let State::Runs(endpoint) = daemon::look(places) {
            match server.read("/version").await {
                Ok(_) => return Ok(endpoint),
                Err(error) => last = error.to_string(),
            }
        }
        if let Some(daemon) = &mut started
            && let Some(status) = daemon.ended()
        {
            if status.code() != Some(ALREADY_RUNS) {
                return Err(ended(daemon, status));
            }
            // Somebody started one by hand just now.
            started = None;
        }
        if Instant::now() >= ends {
            let log = places.daemon().join("log");
            return Err(CliError::new(
                Exit::TimedOut,
                format!("`relayd local` does not answer: {last}"),
            )
            .hint(format!("its log is {}", log.display())));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn ended(daemon: &Started, status: std::process::ExitStatus) -> CliError {
    let line = format!(
        "`relayd local` ended with {status}: {}",
        daemon.last_words()
    );
    CliError::new(Exit::Failed, line).hint(format!("its log is {}", daemon.log().display()))
}

/// Makes the policy `default` where there is none at all, and waits until a policy is judged.
async fn default_policy(call: &Call, server: &Server, ends: Instant) -> Result<Value, CliError> {
    let kind = kinds::routing_policy();
    let list = server
        .list(kind, &Selection::within(&server.namespace), Form::Objects)
        .await
        .map_err(|error| server.failed(error))?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let default = items
        .iter()
        .find(|policy| policy["metadata"]["name"] == "default");
    let name = match (default, items.first()) {
        (Some(_), _) => "default".to_owned(),
        (None, Some(first)) => first["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        (None, None) => {
            let object = json!({
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "metadata": {"name": "default"},
                "spec": {},
            });
            server
                .apply(
                    kind,
                    &server.namespace,
                    "default",
                    &object,
                    Write::Commit,
                    Force::No,
                )
                .await
                .map_err(|error| server.failed(error))?;
            call.tell("made routingpolicy/default, the built-in policy");
            "default".to_owned()
        }
    };
    let left = ends.saturating_duration_since(Instant::now());
    wait::until_settled(server, kind, &server.namespace, &name, left).await
}

async fn tell_result(
    server: &Server,
    endpoint: &Endpoint,
    policy: Value,
) -> Result<Exit, CliError> {
    let health = match &endpoint.router {
        Some(url) => match Router::at(url) {
            Ok(router) => router.ask("/health").await.ok(),
            Err(_) => None,
        },
        None => None,
    };
    let model = health.as_ref().and_then(|health| health["model"].as_str());
    let mut text = format!(
        "relayd    process {}, version {}\nrouter    {}\npolicy    {}, revision {}\nmodel     {}\n",
        endpoint.process.pid,
        endpoint.version,
        endpoint.router.as_deref().unwrap_or("none"),
        policy["metadata"]["name"].as_str().unwrap_or_default(),
        policy["status"]["acceptedRevision"]
            .as_str()
            .unwrap_or("none"),
        model.unwrap_or("none, keyword rules answer"),
    );
    for missing in Missing::of(health.as_ref(), &server.context) {
        text.push_str(&format!(
            "missing   {}\n          add it: {}\n",
            missing.what.trim_start_matches("no "),
            missing.fix
        ));
    }
    terminal::print(&output::visible(&text))?;
    Ok(Exit::Done)
}
