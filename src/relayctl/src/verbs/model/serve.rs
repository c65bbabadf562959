//! `relayctl model use` (short: `use`), and the change of the wish that `rollout undo` shares with it: `spec.modelRef` by
//! manager `relayctl-use`, so that a later `apply -f` of an old file is a conflict and not a rollout back.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::call::{Call, DryRun, block_on};
use crate::error::CliError;
use crate::facts::{Laya, Model, foreign_owners, is_deleting};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::manifest::{SHIPPED_NAME, SHIPPED_WORD};
use crate::output::{self, Format};
use crate::server::{Form, Selection, Server, Write};
use crate::terminal;
use crate::verbs::rollout::going::{self, Target, Until};
use api::exit::Exit;
use api::field_manager::RELAYCTL_USE;

/// LayaServer of a laptop.
pub(crate) const MAIN: &str = "main";
/// Longest reason and longest name of who forces a candidate, in characters (control-plane 3).
const MAX_REASON: usize = 256;
const MAX_BY: usize = 64;
/// For the controller to see a wish that only leads to the next.
const WISH_PATIENCE: Duration = Duration::from_secs(60);
/// A fetch has this long by itself.
const FETCH_SECONDS: u64 = 3600;

/// Arguments of `relayctl model use`.
#[derive(Debug, Args)]
#[command(after_help = "\
`use shipped` goes back to the version that Relay ships, whatever its object is called.

Waits until the version has the traffic, with `--wait` until it is no longer watched. Exit code 10 when it was taken back.

Examples:
  relayctl use local-3
  relayctl use shipped
  relayctl use local-2 --force --reason \"agent is worse on purpose\"")]
pub(crate) struct UseArguments {
    /// A LayaModel, or `shipped`
    #[arg(value_name = "NAME")]
    model: String,
    /// LayaServer that is to serve it
    #[arg(long, default_value = MAIN, value_name = "NAME")]
    server: String,
    /// Let it serve although its gate did not pass, or although it was taken back; probes still hold
    #[arg(long, requires = "reason")]
    force: bool,
    /// Why; history keeps it
    #[arg(long, requires = "force", value_name = "TEXT")]
    reason: Option<String>,
}

/// Lets a version serve.
pub(crate) fn run(call: &Call, arguments: &UseArguments) -> Result<Exit, CliError> {
    kinds::check_name(&arguments.model)?;
    kinds::check_name(&arguments.server)?;
    let reason = arguments
        .reason
        .as_deref()
        .map(checked_reason)
        .transpose()?;
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        let laya = find_server(&server, &arguments.server).await?;
        let model = find_model(&server, &arguments.model).await?;
        let force = reason.map(|reason| force(&model, reason)).transpose()?;
        change(call, &server, &laya, &model, force).await
    }))
}

fn checked_reason(reason: &str) -> Result<&str, CliError> {
    let reason = reason.trim();
    let count = reason.chars().count();
    if reason.is_empty() {
        return Err(CliError::usage("`--reason` says nothing")
            .hint("history keeps it: say why the gate does not count"));
    }
    if count > MAX_REASON {
        return Err(CliError::usage(format!(
            "`--reason` has {count} characters, limit {MAX_REASON}"
        )));
    }
    Ok(reason)
}

/// `spec.rollout.force` for a model.
fn force(model: &Value, reason: &str) -> Result<Value, CliError> {
    let model = Model(model);
    let Some(digest) = model.digest() else {
        let line = format!(
            "the checkpoint digest of {} is not known yet, and `--force` names one",
            kinds::laya_model().brief(model.name())
        );
        return Err(
            CliError::refused(line).hint(format!("`relayctl model fetch {}` first", model.name()))
        );
    };
    Ok(json!({"digest": digest, "reason": reason, "by": by(std::env::var("USER").ok())}))
}

/// Who does it, as far as the system says.
fn by(user: Option<String>) -> String {
    let named = user.filter(|user| !user.trim().is_empty());
    let name = named.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    name.chars()
        .filter(|c| !c.is_control())
        .take(MAX_BY)
        .collect()
}

/// A LayaServer, or the error with what there is.
pub(crate) async fn find_server(server: &Server, name: &str) -> Result<Value, CliError> {
    let kind = kinds::laya_server();
    let found = server.find(kind, &server.namespace, name).await;
    if let Some(laya) = found.map_err(|error| server.failed(error))? {
        return Ok(laya);
    }
    let others = names(server, kind).await?;
    let hint = if others.is_empty() && server.context.is_local() {
        "`relayctl up` makes `main`".to_owned()
    } else if others.is_empty() {
        "`relayctl apply -f` makes one".to_owned()
    } else {
        format!("there are: {}", others.join(", "))
    };
    Err(not_there(kind, name, server).hint(hint))
}

/// A LayaModel by its name, or the shipped one by its word; or the error with what there is.
async fn find_model(server: &Server, name: &str) -> Result<Value, CliError> {
    let kind = kinds::laya_model();
    let found = if name == SHIPPED_WORD {
        shipped(server).await?
    } else {
        let found = server.find(kind, &server.namespace, name).await;
        found.map_err(|error| server.failed(error))?
    };
    match found {
        Some(model) if is_deleting(&model) => {
            let line = format!("{} is being deleted", kind.brief(name));
            Err(CliError::new(Exit::Conflict, line).hint("choose another: `relayctl model ls`"))
        }
        Some(model) => Ok(model),
        None if name == SHIPPED_WORD => Err(CliError::new(
            Exit::NotFound,
            "there is no LayaModel of the shipped version",
        )
        .hint(format!(
            "`relayctl up` makes `{SHIPPED_NAME}` where there is no LayaModel at all"
        ))),
        None => {
            let others = names(server, kind).await?;
            let hint = match others.is_empty() {
                true => "`relayctl model import NAME --dir DIR` makes one".to_owned(),
                false => format!("there are: {}", others.join(", ")),
            };
            Err(not_there(kind, name, server).hint(hint))
        }
    }
}

/// The LayaModel of the shipped version, preferably the one that `up` makes.
pub(crate) async fn shipped(server: &Server) -> Result<Option<Value>, CliError> {
    let selection = Selection::within(&server.namespace);
    let list = server
        .list(kinds::laya_model(), &selection, Form::Objects)
        .await;
    let mut list = list.map_err(|error| server.failed(error))?;
    let mut models: Vec<Value> = match list["items"].take() {
        Value::Array(models) => models,
        _ => Vec::new(),
    };
    models.retain(|model| Model(model).is_shipped() && !is_deleting(model));
    models.sort_by_key(|model| Model(model).name() != SHIPPED_NAME);
    Ok(models.into_iter().next())
}

async fn names(server: &Server, kind: &'static kinds::Kind) -> Result<Vec<String>, CliError> {
    let selection = Selection::within(&server.namespace);
    let list = server.list(kind, &selection, Form::Objects).await;
    let list = list.map_err(|error| server.failed(error))?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items
        .take(10)
        .map(|object| crate::facts::name(object).to_owned())
        .collect())
}

pub(crate) fn not_there(kind: &kinds::Kind, name: &str, server: &Server) -> CliError {
    let line = format!(
        "there is no {} in namespace {}",
        kind.brief(name),
        server.namespace
    );
    CliError::new(Exit::NotFound, line)
}

/// Makes a model the wish of a server, and waits for what comes of it.
pub(crate) async fn change(
    call: &Call,
    server: &Server,
    object: &Value,
    model: &Value,
    force: Option<Value>,
) -> Result<Exit, CliError> {
    let laya = Laya(object);
    let wanted = Model(model);
    let until = if call.global.wait {
        Until::RolledOut
    } else {
        Until::Serves
    };
    if force.is_none() && laya.wished() == Some(wanted.name()) {
        if let Some(taken_back) = laya.taken_back() {
            let hint = format!(
                "`relayctl rollout retry {}` tries it once more; `--force --reason …` also past its gate",
                laya.name()
            );
            return Err(going::rejected(laya, &taken_back).hint(hint));
        }
        if laya
            .champion()
            .is_some_and(|champion| champion.model() == wanted.name())
            && laya.open_rollout().is_none()
        {
            let line = format!("{}: {} serves already", laya.name(), wanted.name());
            return say(call, object, &line);
        }
    }
    beforehand(call, laya, wanted);
    if call.dry_run() != DryRun::Client && call.write() == Write::Commit {
        detour(call, server, laya, wanted.name()).await?;
    }
    let mut patch = json!({"spec": {"modelRef": {"name": wanted.name()}}});
    if let Some(force) = force {
        patch["spec"]["rollout"] = json!({"force": force, "retry": laya.retry() + 1});
        if laya.rollout_spec().get("abort").is_some() {
            // An abort that stays there would take the same revision back again.
            patch["spec"]["rollout"]["abort"] = Value::Null;
        }
    }
    let kind = kinds::laya_server();
    let full = kind.full(laya.name());
    if call.dry_run() == DryRun::Client {
        return say(
            call,
            object,
            &format!("{full} uses {} (client dry run)", wanted.name()),
        );
    }
    let changed = server
        .change(kind, laya.name(), RELAYCTL_USE, &patch, call.write())
        .await?;
    if call.write() == Write::DryRun {
        return say(
            call,
            &changed,
            &format!("{full} uses {} (server dry run)", wanted.name()),
        );
    }
    if !call.waits(true) || laya.external().is_some() || laya.is_suspended() {
        return say(call, &changed, &format!("{full} uses {}", wanted.name()));
    }
    // Its server would wait for what never comes by itself.
    if laya.role_of(wanted.name()).is_none()
        && let Some(why) = wanted.given_up()
    {
        return Err(super::fetch::refused(wanted, &why));
    }
    let target = Target {
        model: wanted.name().to_owned(),
        digest: wanted.digest(),
        generation: changed["metadata"]["generation"].as_i64().unwrap_or(0),
        until,
    };
    let mut seconds = going::own_patience(Laya(&changed), until);
    if !wanted.is_ready() {
        seconds += FETCH_SECONDS;
    }
    let patience = call.patience(Duration::from_secs(seconds));
    let served = follow(call, server, kind, laya.name(), patience, |object| {
        going::judge(object, &target)
    })
    .await?;
    say(call, &served, &going::outcome(&served))
}

/// What a person should know before it is done.
fn beforehand(call: &Call, laya: Laya<'_>, model: Model<'_>) {
    let name = laya.name();
    for manager in foreign_owners(laya.0, &["spec", "modelRef"]) {
        call.tell(&format!(
            "note: {manager} writes spec.modelRef of {name} too, and what it says wins the next time it does"
        ));
    }
    if let Some(url) = laya.external() {
        call.tell(&format!(
            "note: {name} uses the server at {url}; the model waits until `relayctl adopt --replace`"
        ));
    }
    if laya.is_suspended() {
        call.tell(&format!(
            "note: {name} is suspended; nothing serves until that is removed"
        ));
    }
    if !model.is_ready() {
        let suspended = model.is_suspended() && model.phase() == "Pending";
        let help = match suspended {
            true => format!(
                "; it is not fetched: `relayctl model fetch {}`",
                model.name()
            ),
            false => String::new(),
        };
        call.tell(&format!(
            "note: {} is not ready{help}",
            kinds::laya_model().brief(model.name())
        ));
    }
}

/// The wish of a promotion stays in force until `spec.modelRef` differs from what the controller saw (control-plane 3.1). Where
/// spec names the wanted model already, it first names what the promotion made, which changes nothing, and then the wanted one.
async fn detour(
    call: &Call,
    server: &Server,
    laya: Laya<'_>,
    wanted: &str,
) -> Result<(), CliError> {
    let Some(promoted) = promoted_past(laya, wanted) else {
        return Ok(());
    };
    let kind = kinds::laya_server();
    let patch = json!({"spec": {"modelRef": {"name": promoted}}});
    server
        .patch(
            kind,
            &server.namespace,
            laya.name(),
            RELAYCTL_USE,
            &patch,
            Write::Commit,
        )
        .await
        .map_err(|error| server.failed(error))?;
    follow(
        call,
        server,
        kind,
        laya.name(),
        WISH_PATIENCE,
        |object| match Laya(object).wish_spec_model() == Some(promoted) {
            true => Step::Done(()),
            false => Step::Waits(Line::Stays(format!(
                "{}: the promotion of {promoted} is taken over into spec",
                laya.name()
            ))),
        },
    )
    .await
}

/// The model of a promotion that stands between spec, which names the wanted one, and what serves.
fn promoted_past<'a>(laya: Laya<'a>, wanted: &str) -> Option<&'a str> {
    let spec_is_known = laya.wished() == Some(wanted) && laya.wish_spec_model() == Some(wanted);
    laya.wish().filter(|wish| spec_is_known && *wish != wanted)
}

/// Says how it ended: a line for people, the object for programs.
pub(crate) fn say(call: &Call, object: &Value, line: &str) -> Result<Exit, CliError> {
    match call.format() {
        Format::Table | Format::Wide => {
            terminal::print(&output::visible(&format!("{line}\n")))?;
        }
        format => {
            output::tree(&output::without_managers(object.clone()), &format)?;
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promotion_is_undone_by_way_of_what_it_made() {
        let object = |spec: &str, seen: &str, wish: &str| json!({"spec": {"modelRef": {"name": spec}}, "status": {"wish": {"model": wish, "specModel": seen}}});
        for (name, object, wanted, expected) in [
            (
                "promoted",
                object("v1", "v1", "local-1"),
                "v1",
                Some("local-1"),
            ),
            ("plain change", object("v1", "v1", "v1"), "v2", None),
            (
                "promoted, another is wanted",
                object("v1", "v1", "local-1"),
                "v2",
                None,
            ),
            ("not seen yet", object("v1", "v0", "v0"), "v1", None),
            (
                "new",
                json!({"spec": {"modelRef": {"name": "v1"}}}),
                "v1",
                None,
            ),
        ] {
            assert_eq!(promoted_past(Laya(&object), wanted), expected, "{name}");
        }
    }

    #[test]
    fn who_forces_is_named_within_the_bound() {
        assert_eq!(by(Some("ada".into())), "ada");
        assert!(by(Some("  ".into())).starts_with("uid "));
        assert_eq!(by(Some(format!("{}\u{1b}", "x".repeat(99)))).len(), 64);
        assert!(checked_reason(" ").is_err());
        assert!(checked_reason(&"x".repeat(257)).is_err());
        assert_eq!(checked_reason(" why ").unwrap(), "why");
    }

    #[test]
    fn force_needs_a_digest() {
        assert_eq!(
            force(&json!({"metadata": {"name": "m"}}), "r")
                .unwrap_err()
                .exit,
            Exit::Refused
        );
        let model = json!({"metadata": {"name": "m"}, "status": {"digest": "sha256:ab"}});
        assert_eq!(force(&model, "r").unwrap()["digest"], "sha256:ab");
    }
}
