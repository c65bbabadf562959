//! `relayctl adopt`: the Laya server that is on the router's port already is used as it is, or gives the port up (training
//! 11). It is never changed, and stopped only after a yes.

mod ask;
mod judge;
mod stop;

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use self::ask::Silence;
use self::judge::Verdict;
use self::stop::Docker;
use super::model::{MAIN, find_server, say};
use super::rollout::going;
use crate::call::{Call, DryRun, block_on};
use crate::conditions;
use crate::connect::loopback;
use crate::daemon::{self, State, calls};
use crate::error::CliError;
use crate::facts::{Laya, foreign_owners};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::server::{Server, Write};
use crate::terminal;
use api::exit::Exit;
use api::field_manager::RELAYCTL_USE;

/// A probe of a server that runs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Until ours has loaded.
const OWN_PATIENCE: Duration = Duration::from_secs(1200);
/// The router tries its port every second.
const BIND_PATIENCE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(50);

/// Arguments of `relayctl adopt`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --replace the server stays whose it is: it gets traffic and probe questions, and nothing starts, stops or changes it.
With --replace ours starts beside it; once that serves, the other one is stopped after a yes, and the router takes its port.

Examples:
  relayctl adopt
  relayctl adopt --replace")]
pub(crate) struct AdoptArguments {
    /// Start ours, stop theirs, take the port
    #[arg(long)]
    replace: bool,
    /// Where it is
    #[arg(long, default_value = "http://127.0.0.1:8737", value_name = "URL")]
    url: String,
}

/// The server that is meant.
struct Theirs {
    url: String,
    authority: String,
    port: u16,
}

/// Adopts it.
pub(crate) fn run(call: &Call, arguments: &AdoptArguments) -> Result<Exit, CliError> {
    let AdoptArguments { replace, url } = arguments;
    super::up::only_local(call, "adopt")?;
    let theirs = theirs(url)?;
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        let object = find_server(&server, MAIN).await?;
        if *replace {
            return Box::pin(take_over(call, &server, &object, &theirs)).await;
        }
        adopt(call, &server, &object, &theirs).await
    }))
}

fn theirs(url: &str) -> Result<Theirs, CliError> {
    let authority = loopback(url).map_err(|why| {
        CliError::usage(why).hint("a server of this machine, for example http://127.0.0.1:8737")
    })?;
    let port = authority
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| CliError::usage(format!("`{url}` names no port")))?;
    Ok(Theirs {
        url: format!("http://{authority}"),
        authority,
        port,
    })
}

/// Whether what listens on an address answers our questions, for `up`.
pub(crate) async fn is_usable(authority: &str) -> bool {
    matches!(ask::look(authority).await, Ok(Verdict::Ours | Verdict::Ask))
}

/// The address that our router has, if it runs.
fn router(call: &Call) -> Result<Option<String>, CliError> {
    Ok(match daemon::look(&call.places()?) {
        State::Runs(endpoint) => endpoint.router.and_then(|url| loopback(&url).ok()),
        State::Absent | State::Crashed(_) => None,
    })
}

async fn adopt(
    call: &Call,
    server: &Server,
    object: &Value,
    theirs: &Theirs,
) -> Result<Exit, CliError> {
    let kind = kinds::laya_server();
    let full = kind.full(MAIN);
    if router(call)?.as_deref() == Some(theirs.authority.as_str()) {
        let hint = "`relayctl status` shows what serves";
        return Err(own_router(theirs, "adopt").hint(hint));
    }
    judged(server, theirs, Purpose::Use).await?;
    let laya = Laya(object);
    if laya.external() == Some(theirs.url.as_str()) {
        return say(call, object, &format!("{full} unchanged"));
    }
    for manager in foreign_owners(object, &["spec", "external"]) {
        call.tell(&format!("note: {manager} writes spec.external of {MAIN} too, and what it says wins the next time it does"));
    }
    if call.dry_run() == DryRun::Client {
        return say(
            call,
            object,
            &format!("{full} uses {} (client dry run)", theirs.url),
        );
    }
    let patch = json!({"spec": {"external": {"url": theirs.url}}});
    let changed = change(server, &patch, call.write()).await?;
    if call.write() == Write::DryRun {
        return say(
            call,
            &changed,
            &format!("{full} uses {} (server dry run)", theirs.url),
        );
    }
    if !call.waits(true) {
        return say(call, &changed, &format!("{full} uses {}", theirs.url));
    }
    let adopted = follow(call, server, kind, MAIN, call.patience(PATIENCE), adopted).await?;
    let unverified = conditions::find(&adopted, "ContractMatched")
        .is_some_and(|condition| condition.reason == "ContractUnverified");
    let names = if unverified {
        "; it names no contract, and answers our questions (ContractUnverified)"
    } else {
        ""
    };
    say(
        call,
        &adopted,
        &format!("{MAIN}: the server at {} serves{names}", theirs.url),
    )
}

fn own_router(theirs: &Theirs, what: &str) -> CliError {
    let line = format!(
        "{} is the router of this machine; there is no other server to {what}",
        theirs.authority
    );
    CliError::new(Exit::NotFound, line)
}

/// What is wanted of the server that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is asked from now on.
    Use,
    /// It is stopped in the end.
    Replace,
}

/// Refuses what must not be used, or stopped, with the words of the page.
async fn judged(server: &Server, theirs: &Theirs, purpose: Purpose) -> Result<(), CliError> {
    let address = &theirs.authority;
    match (ask::look(address).await, purpose) {
        (looked, Purpose::Replace) if may_be_replaced(&looked) => Ok(()),
        (looked, _) => fit(server, theirs, looked).await,
    }
}

/// A Laya server, whatever it answers; or nobody: the port is free already.
const fn may_be_replaced(looked: &Result<Verdict, Silence>) -> bool {
    matches!(
        looked,
        Ok(Verdict::Ours | Verdict::Ask | Verdict::Other(_)) | Err(Silence::Nobody)
    )
}

async fn fit(
    server: &Server,
    theirs: &Theirs,
    looked: Result<Verdict, Silence>,
) -> Result<(), CliError> {
    let address = &theirs.authority;
    match looked {
        Ok(Verdict::Ours | Verdict::Ask) => Ok(()),
        Ok(Verdict::Other(why)) => {
            let line = format!("the server at {address} is not used (ContractMismatch): {why}");
            Err(CliError::refused(line).hint(format!(
                "stop it, or change `laya.baseUrl`; {}",
                stop::command(theirs.port)
            )))
        }
        Ok(Verdict::Router) => {
            let holder = holder(server, theirs.port).await;
            let holder =
                holder.unwrap_or_else(|| "a process and home that are not known".to_owned());
            let line = format!(
                "what listens on {address} is no Laya server (PortInUse): it is a Relay router, of {holder}"
            );
            Err(CliError::new(Exit::Conflict, line)
                .hint("name the Laya server that it asks, or leave it: our router has another port meanwhile"))
        }
        Ok(Verdict::NoLaya(why)) | Err(Silence::Trouble(why)) => {
            let holder = holder(server, theirs.port)
                .await
                .map_or(String::new(), |holder| format!(", which {holder} has"));
            let line =
                format!("what listens on {address}{holder} is no Laya server (PortInUse): {why}");
            Err(CliError::new(Exit::Conflict, line).hint(unusable(theirs.port)))
        }
        Err(Silence::Nobody) => Err(CliError::new(
            Exit::NotFound,
            format!("nothing listens on {address}"),
        )
        .hint("there is nothing to adopt; `relayctl status` shows what serves")),
    }
}

/// What to do about a server that does not say that it is up: it may be anything, a Laya server that hangs or loads too.
fn unusable(port: u16) -> String {
    format!(
        "stop it, or leave it: the router has another port meanwhile; a Laya server that hangs or loads is stopped by {}",
        stop::command(port)
    )
}

/// Who has a port, as far as the daemon knows.
async fn holder(server: &Server, port: u16) -> Option<String> {
    let engine = calls::engine(server).await.ok()?;
    let ending = format!(":{port}");
    let stranger = engine
        .strangers
        .into_iter()
        .find(|stranger| stranger.name.ends_with(&ending))?;
    Some(stranger.holder).filter(|holder| !holder.is_empty())
}

async fn change(server: &Server, patch: &Value, write: Write) -> Result<Value, CliError> {
    server
        .change(kinds::laya_server(), MAIN, RELAYCTL_USE, patch, write)
        .await
}

/// Whether the controller uses it.
fn adopted(object: &Value) -> Step<Value> {
    let laya = Laya(object);
    if !conditions::is_current(object) {
        return Step::Waits(Line::Stays(format!(
            "{}: the controller has not looked at it yet",
            laya.name()
        )));
    }
    match laya.condition("Adopted") {
        Some(adopted) if adopted.is_true() => Step::Done(object.clone()),
        Some(adopted) if adopted.reason == "ContractMismatch" => {
            Step::Failed(CliError::refused(format!(
                "{} is not used ({}): {}",
                laya.name(),
                adopted.reason,
                adopted.message
            )))
        }
        Some(adopted) => Step::Waits(Line::Stays(format!(
            "{}: {} ({})",
            laya.name(),
            adopted.message,
            adopted.reason
        ))),
        None => Step::Waits(going::line(laya)),
    }
}

/// Ours starts, theirs stops, the router has the port.
async fn take_over(
    call: &Call,
    server: &Server,
    object: &Value,
    theirs: &Theirs,
) -> Result<Exit, CliError> {
    let laya = Laya(object);
    let full = kinds::laya_server().full(MAIN);
    let has_port = router(call)?.as_deref() == Some(theirs.authority.as_str());
    let begins = begins(laya, theirs, has_port)?;
    match begins {
        Begins::Nothing => {
            return say(
                call,
                object,
                &format!(
                    "{full} unchanged: the router has {} already",
                    theirs.authority
                ),
            );
        }
        Begins::TakingOver => judged(server, theirs, Purpose::Replace).await?,
        Begins::OwnAlone => {}
    }
    if call.write() == Write::DryRun {
        let word = if call.dry_run() == DryRun::Client {
            "client"
        } else {
            "server"
        };
        let shown = match call.dry_run() {
            DryRun::Server => change(server, &without_external(), Write::DryRun).await?,
            _ => object.clone(),
        };
        return say(
            call,
            &shown,
            &format!("{full} takes {} over ({word} dry run)", theirs.authority),
        );
    }
    can_serve(server, laya).await?;
    // Asked here already where nobody can be asked: nothing is begun that cannot be ended.
    let stops = begins == Begins::TakingOver;
    if stops && !call.global.yes && !terminal::can_ask() {
        terminal::confirm(false, &question(theirs, None))?;
    }
    let changed = match laya.external() {
        Some(_) => change(server, &without_external(), Write::Commit).await?,
        None => object.clone(),
    };
    let generation = changed["metadata"]["generation"].as_i64().unwrap_or(0);
    if stops {
        call.tell(&format!(
            "ours starts beside the server at {}",
            theirs.authority
        ));
    }
    let kind = kinds::laya_server();
    let served = follow(
        call,
        server,
        kind,
        MAIN,
        call.patience(OWN_PATIENCE),
        |object| own(object, generation),
    )
    .await?;
    let ended = stops && end_theirs(call, theirs)?;
    if !ended {
        return say(call, &served, &going::outcome(&served));
    }
    match bound(call, theirs).await? {
        true => say(call, &served, &format!("{}; the router has {}", going::outcome(&served), theirs.authority)),
        false => Err(CliError::new(
            Exit::TimedOut,
            format!("the router does not have {} after {BIND_PATIENCE:?}, though the server there was stopped", theirs.authority),
        )
        .hint("`relayctl doctor` tells who has the port")),
    }
}

/// What `--replace` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// The router has the port, and ours serves or is on its way.
    Nothing,
    /// Ours takes the place of theirs, which stops in the end.
    TakingOver,
    /// The router has the port and was named as the server to ask: ours takes its place, and nothing stops.
    OwnAlone,
}

fn begins(laya: Laya<'_>, theirs: &Theirs, has_port: bool) -> Result<Begins, CliError> {
    let is_it = |url: &str| loopback(url).is_ok_and(|it| it == theirs.authority);
    match laya.external() {
        _ if !has_port => Ok(Begins::TakingOver),
        None => Ok(Begins::Nothing),
        Some(url) if is_it(url) => Ok(Begins::OwnAlone),
        Some(other) => Err(own_router(theirs, "replace").hint(format!(
            "`relayctl adopt --replace --url {other}` takes over from the server that {MAIN} uses"
        ))),
    }
}

fn without_external() -> Value {
    json!({"spec": {"external": null}})
}

/// Whether there is something of ours to start.
async fn can_serve(server: &Server, laya: Laya<'_>) -> Result<(), CliError> {
    let name = laya.wished().unwrap_or_default();
    let kind = kinds::laya_model();
    let found = server.find(kind, &server.namespace, name).await;
    let Some(object) = found.map_err(|error| server.failed(error))? else {
        let line = format!("{MAIN} names {}, which is not there", kind.brief(name));
        return Err(CliError::new(Exit::NotFound, line).hint("`relayctl use NAME` names another"));
    };
    let model = crate::facts::Model(&object);
    if model.is_suspended() && !model.is_ready() {
        let line = format!(
            "{} is not fetched, so there is nothing to put in its place",
            kind.brief(name)
        );
        return Err(CliError::refused(line).hint(format!("`relayctl model fetch {name}` first")));
    }
    Ok(())
}

/// Whether ours serves.
fn own(object: &Value, generation: i64) -> Step<Value> {
    let laya = Laya(object);
    let observed = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
    if observed < generation {
        return Step::Waits(Line::Stays(format!(
            "{}: the controller has not looked at it yet",
            laya.name()
        )));
    }
    if let Some(taken_back) = laya.taken_back() {
        return Step::Failed(going::rejected(laya, &taken_back));
    }
    let available = laya
        .condition("Available")
        .is_some_and(|condition| condition.is_true());
    let none_comes = laya.rollout().is_none_or(|rollout| rollout.is_promoted());
    if laya.champion().is_some() && available && none_comes {
        return Step::Done(object.clone());
    }
    Step::Waits(going::line(laya))
}

fn question(theirs: &Theirs, container: Option<&str>) -> String {
    let what = container.map_or("the server".to_owned(), |name| format!("container {name}"));
    format!("stop {what} at {} (the gap is under 2 s)", theirs.authority)
}

/// Stops theirs after a yes; false where only the command could be told.
fn end_theirs(call: &Call, theirs: &Theirs) -> Result<bool, CliError> {
    let found = match Docker::find() {
        Some(docker) => docker.publisher(theirs.port).map(|name| (docker, name)),
        None => Err("there is no docker on PATH".to_owned()),
    };
    match found {
        Ok((docker, name)) => {
            terminal::confirm(call.global.yes, &question(theirs, Some(&name)))?;
            docker.stop(&name).map_err(|why| {
                CliError::new(Exit::Failed, format!("cannot stop container {name}: {why}"))
                    .hint(stop::command(theirs.port))
            })?;
            call.tell(&format!("stopped container {name}"));
            Ok(true)
        }
        Err(why) => {
            call.tell(&format!(
                "ours serves; the server at {} is not stopped: {why}",
                theirs.authority
            ));
            call.tell(&format!(
                "stop it yourself, and the router takes its port: {}",
                stop::command(theirs.port)
            ));
            Ok(false)
        }
    }
}

/// Until the router has the port.
async fn bound(call: &Call, theirs: &Theirs) -> Result<bool, CliError> {
    let ends = Instant::now() + BIND_PATIENCE;
    while router(call)?.as_deref() != Some(theirs.authority.as_str()) {
        if Instant::now() >= ends {
            return Ok(false);
        }
        tokio::time::sleep(AGAIN).await;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_has_to_serve_before_theirs_is_stopped() {
        let object = |status: Value| json!({"metadata": {"name": "main", "generation": 2}, "status": status});
        let available = json!([{"type": "Available", "status": "True"}]);
        for (name, status, done) in [
            (
                "not seen",
                json!({"observedGeneration": 1, "champion": {"model": "v1"}, "conditions": available}),
                false,
            ),
            (
                "loading",
                json!({"observedGeneration": 2, "rollout": {"state": "Loading"}, "candidate": {"model": "v1"}}),
                false,
            ),
            (
                "serves",
                json!({"observedGeneration": 2, "champion": {"model": "v1"}, "rollout": {"state": "Baking"}, "conditions": available}),
                true,
            ),
            (
                "champion that does not answer",
                json!({"observedGeneration": 2, "champion": {"model": "v1"}}),
                false,
            ),
        ] {
            assert_eq!(
                matches!(own(&object(status), 2), Step::Done(_)),
                done,
                "{name}"
            );
        }
    }

    #[test]
    fn the_router_itself_is_not_replaced() {
        let here = theirs("http://127.0.0.1:8737").unwrap();
        let object = |external: Option<&str>| {
            let external = external.map(|url| json!({"url": url}));
            json!({"metadata": {"name": "main"}, "spec": {"external": external}})
        };
        for (external, has_port, expected) in [
            (None, false, Some(Begins::TakingOver)),
            (
                Some("http://127.0.0.1:8737"),
                false,
                Some(Begins::TakingOver),
            ),
            (None, true, Some(Begins::Nothing)),
            (Some("http://127.0.0.1:8737"), true, Some(Begins::OwnAlone)),
            (Some("http://127.0.0.1:9000"), true, None),
        ] {
            let object = object(external);
            let begun = begins(Laya(&object), &here, has_port);
            assert_eq!(begun.as_ref().ok(), expected.as_ref(), "{external:?}");
            if let Err(error) = begun {
                assert_eq!(error.exit, Exit::NotFound);
                assert!(
                    error
                        .hint_text()
                        .unwrap()
                        .contains("--url http://127.0.0.1:9000")
                );
            }
        }
    }

    #[test]
    fn only_a_laya_server_is_stopped() {
        for (looked, may) in [
            (Ok(Verdict::Ours), true),
            (Ok(Verdict::Ask), true),
            (Ok(Verdict::Other("another contract".to_owned())), true),
            (Err(Silence::Nobody), true),
            (Ok(Verdict::Router), false),
            (Ok(Verdict::NoLaya("a shop".to_owned())), false),
            (Err(Silence::Trouble("it hangs".to_owned())), false),
        ] {
            assert_eq!(may_be_replaced(&looked), may, "{looked:?}");
        }
    }

    #[test]
    fn one_that_hangs_or_loads_has_its_command_too() {
        assert!(unusable(8737).contains(&stop::command(8737)));
    }

    #[test]
    fn only_this_machine_is_adopted() {
        assert!(theirs("http://10.0.0.1:8737").is_err());
        assert!(theirs("http://127.0.0.1").is_err());
        let here = theirs("http://127.0.0.1:8737/").unwrap();
        assert_eq!(
            (here.url.as_str(), here.port),
            ("http://127.0.0.1:8737", 8737)
        );
    }
}
