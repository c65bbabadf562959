//! `relayctl up`: `relayd local` runs, a RoutingPolicy is in force, and what is missing is said with what adds it.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use files::{Lock, Places};
use serde_json::{Value, json};

use super::status::{Missing, lost};
use super::version::VERSION;
use super::wait;
use crate::call::{Call, block_on};
use crate::context::LOCAL;
use crate::daemon::{self, Endpoint, Model, Started, State};
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
/// How long a model that was asked for may take before `up` ends without it; rules answer meanwhile.
const MODEL_PATIENCE: Duration = Duration::from_secs(10);
/// Exit code of a `relayd local` that found an address taken.
const ADDRESS_TAKEN: i32 = 3;
/// Longest path of a socket, in bytes, without the zero behind it.
pub(crate) const MAX_SOCKET: usize = 107;
/// What serves a model, or says where one is.
const MODEL_SETTINGS: [&str; 3] = ["RELAYD_CHECKPOINT", "RELAYD_CONFIG", "RELAYD_LAYA_URL"];
/// Exit code of a `relayd local` that found another one.
const ALREADY_RUNS: i32 = 4;
/// SIGTERM.
const TERMINATED: i32 = 15;

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
        let running = running(call, &places, ends).await?;
        let Some((endpoint, started)) = running else {
            return Ok(Exit::Done);
        };
        let server = call.connect().await?;
        let policy = default_policy(call, &server, ends).await?;
        let (health, model) = model(&places, &endpoint, started.as_ref(), ends).await;
        let lost = lost(&places);
        tell_result(
            &server,
            &endpoint,
            &policy,
            health.as_ref(),
            model.as_ref(),
            &lost,
        )
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

/// A daemon that answers, and how it was started if that was now; nothing where nobody waits for one that was started.
async fn running(
    call: &Call,
    places: &Places,
    ends: Instant,
) -> Result<Option<(Endpoint, Option<Started>)>, CliError> {
    check_socket(places)?;
    for folder in [&places.relay, &places.daemon()] {
        files::make_private_folder(folder).map_err(|error| unusable(folder, &error))?;
    }
    // Two at once: the second waits for the first, and finds what that started.
    let lock = places.daemon().join("up.lock");
    let left = ends.saturating_duration_since(Instant::now());
    let held = Lock::take_within(&lock, left).map_err(|error| unusable(&lock, &error))?;
    if held.is_none() {
        let line = "another `relayctl up` is still waiting for `relayd local`";
        return Err(CliError::new(Exit::TimedOut, line));
    }
    match daemon::look(places) {
        State::Runs(endpoint) => {
            tell_found(call, &endpoint);
            return answering(call, places, None, ends).await.map(Some);
        }
        State::Crashed(how) if daemon::holder(places).is_none() => call.tell(&format!(
            "a `relayd local` ended without cleaning up ({how}); a new one is started"
        )),
        State::Crashed(_) | State::Absent => {}
    }
    // It has not said yet where it listens, or what it said is damaged.
    if let Some(pid) = daemon::holder(places) {
        call.tell(&format!(
            "`relayd local` (process {pid}) is starting or ending; waiting for it"
        ));
        return answering(call, places, None, ends).await.map(Some);
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
    let own = daemon::own();
    let theirs = daemon::of_process(endpoint.process.pid);
    let unused = theirs.map_or(Vec::new(), |theirs| daemon::unused(&own, &theirs));
    if !unused.is_empty() {
        call.tell(&format!(
            "`relayd local` runs already and does not use {}; `relayctl down` and the same command again start it with that",
            unused.join(", ")
        ));
    }
}

/// A socket has a shorter path than files may have; said before a daemon is started that cannot listen.
fn check_socket(places: &Places) -> Result<(), CliError> {
    let socket = places.socket();
    let length = socket.as_os_str().len();
    if length <= MAX_SOCKET {
        return Ok(());
    }
    let why = format!("its path has {length} bytes, and that of a socket has at most {MAX_SOCKET}");
    Err(CliError::file(&socket, why).hint("set RELAY_HOME to a shorter folder"))
}

/// A folder or file of the home that cannot be had, with what helps.
fn unusable(path: &Path, error: &std::io::Error) -> CliError {
    use std::io::ErrorKind;
    let hint = match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a file stands where a folder has to be; move it away, or set RELAY_HOME to a folder of yours"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "set RELAY_HOME to a folder that you can write to"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or set RELAY_HOME to a folder on another disk"
        }
        _ => "`relayctl doctor` looks closer",
    };
    CliError::file(path, error).hint(hint)
}

/// What the router says of itself, and why it has no model where one was asked for.
async fn model(
    places: &Places,
    endpoint: &Endpoint,
    started: Option<&Started>,
    ends: Instant,
) -> (Option<Value>, Option<Model>) {
    let Some(router) = endpoint
        .router
        .as_deref()
        .and_then(|url| Router::at(url).ok())
    else {
        return (None, None);
    };
    let variables = daemon::of_process(endpoint.process.pid).unwrap_or_default();
    let asked_for = MODEL_SETTINGS
        .iter()
        .any(|name| variables.contains_key(*name));
    let ends = ends.min(Instant::now() + MODEL_PATIENCE);
    loop {
        let health = router.ask("/health").await.ok();
        let serves = health.as_ref().is_some_and(|health| health["ok"] == true);
        if serves || !asked_for {
            return (health, None);
        }
        let said = match started {
            Some(started) => started.model(),
            None => daemon::model(&places.daemon().join("log"), 0),
        };
        if matches!(said, Some(Model::Refused(_))) || Instant::now() >= ends {
            return (health, said);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// The same for a daemon that runs already, without waiting.
pub(crate) fn model_said(places: &Places, endpoint: &Endpoint) -> Option<Model> {
    let variables = daemon::of_process(endpoint.process.pid)?;
    MODEL_SETTINGS
        .iter()
        .any(|name| variables.contains_key(*name))
        .then(|| daemon::model(&places.daemon().join("log"), 0))
        .flatten()
}

/// Waits until the object API answers.
async fn answering(
    call: &Call,
    places: &Places,
    mut started: Option<Started>,
    ends: Instant,
) -> Result<(Endpoint, Option<Started>), CliError> {
    let server = call.connect().await?;
    let mut last = "it has not said yet where it listens".to_owned();
    loop {
        if let State::Runs(endpoint) = daemon::look(places) {
            match server.read("/version").await {
                Ok(_) => return Ok((endpoint, started)),
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
        // One that was found and is told to end never answers.
        if started.is_none()
            && !matches!(daemon::look(places), State::Runs(_))
            && daemon::holder(places).is_none()
        {
            return Err(stopped());
        }
        if Instant::now() >= ends {
            let log = places.daemon().join("log");
            return Err(CliError::new(
                Exit::TimedOut,
                format!("`relayd local` does not answer: {last}"),
            )
            .hint(format!(
                "`relayctl down` and `relayctl up` start it anew; its log is {}",
                log.display()
            )));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// By `relayctl down` in another terminal, or a signal.
fn stopped() -> CliError {
    CliError::new(
        Exit::Failed,
        "`relayd local` was stopped while it was waited for, as `relayctl down` does",
    )
    .hint("`relayctl up` starts it again")
}

fn ended(daemon: &Started, status: std::process::ExitStatus) -> CliError {
    if status.success() || status.signal() == Some(TERMINATED) {
        return stopped();
    }
    let line = format!(
        "`relayd local` ended with {status}: {}",
        daemon.last_words()
    );
    let log = format!("its log is {}", daemon.log().display());
    let hint = match status.code() {
        Some(ADDRESS_TAKEN) => format!(
            "`relayctl doctor` tells which ports are taken; RELAYD_LISTEN, RELAYD_ADMIN_LISTEN and RELAYD_DAEMON_PORT name others, for example `RELAYD_LISTEN=127.0.0.1:0 relayctl up`; {log}"
        ),
        _ => log,
    };
    CliError::new(Exit::Failed, line).hint(hint)
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

fn tell_result(
    server: &Server,
    endpoint: &Endpoint,
    policy: &Value,
    health: Option<&Value>,
    said: Option<&Model>,
    lost: &[Missing],
) -> Result<Exit, CliError> {
    let model = health.and_then(|health| health["model"].as_str());
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
    for lost in lost {
        text.push_str(&format!(
            "lost      {}\n          fix: {}\n",
            lost.what, lost.fix
        ));
    }
    for missing in Missing::of(health, said, &server.context) {
        text.push_str(&format!(
            "missing   {}\n          add it: {}\n",
            missing.what.trim_start_matches("no "),
            missing.fix
        ));
    }
    terminal::print(&output::visible(&text))?;
    Ok(Exit::Done)
}
