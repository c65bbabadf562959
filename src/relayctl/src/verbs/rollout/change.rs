//! `relayctl rollout pause|resume|approve|abort|retry`: each writes fields of `spec.rollout` alone, as a merge patch by
//! manager `relayctl-rollout`. Which fields is pure.

use std::time::Duration;

use serde_json::{Value, json};

use super::going::{self, Target, Until};
use crate::call::{Call, DryRun};
use crate::conditions;
use crate::error::CliError;
use crate::facts::{Laya, Pause, foreign_owners};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::server::Write;
use crate::verbs::model::{find_server, say};
use api::exit::Exit;
use api::field_manager::RELAYCTL_ROLLOUT;

/// A stop and a drain.
const ABORT_PATIENCE: Duration = Duration::from_secs(300);

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Pause,
    Resume,
    Approve,
    Abort,
    Retry,
}

/// A change of `spec.rollout` and how it is said.
#[derive(Debug, Clone, PartialEq)]
struct Edit {
    /// Field below `spec.rollout`.
    field: &'static str,
    value: Value,
    /// `paused`.
    said: &'static str,
    /// What to know beside it.
    note: Option<String>,
}

/// What a change comes to on an object as it is.
#[derive(Debug)]
enum Decided {
    /// This is written.
    Write(Edit),
    /// It is so already.
    Already(String),
}

/// Does it.
pub(super) async fn run(call: &Call, name: &str, change: Change) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let object = find_server(&server, name).await?;
    let laya = Laya(&object);
    let edit = match decide(laya, change)? {
        Decided::Already(line) => {
            call.tell(&line);
            return say(call, &object, &format!("{} unchanged", full(laya)));
        }
        Decided::Write(edit) => edit,
    };
    for manager in foreign_owners(&object, &["spec", "rollout", edit.field]) {
        call.tell(&format!(
            "note: {manager} writes spec.rollout.{} of {name} too, and what it says wins the next time it does",
            edit.field
        ));
    }
    if let Some(note) = &edit.note {
        call.tell(&format!("note: {note}"));
    }
    if call.dry_run() == DryRun::Client {
        return say(
            call,
            &object,
            &format!("{} {} (client dry run)", full(laya), edit.said),
        );
    }
    let mut patch = json!({"spec": {"rollout": {}}});
    patch["spec"]["rollout"][edit.field] = edit.value.clone();
    if change == Change::Retry && laya.rollout_spec().get("abort").is_some() {
        // An abort that stays there would take the same revision back again.
        patch["spec"]["rollout"]["abort"] = Value::Null;
    }
    let kind = kinds::laya_server();
    let changed = server
        .change(kind, name, RELAYCTL_ROLLOUT, &patch, call.write())
        .await?;
    if call.write() == Write::DryRun {
        return say(
            call,
            &changed,
            &format!("{} {} (server dry run)", full(laya), edit.said),
        );
    }
    let wants = call.waits(change == Change::Abort);
    if !wants || matches!(change, Change::Pause) {
        return say(call, &changed, &format!("{} {}", full(laya), edit.said));
    }
    if change == Change::Abort {
        let generation = changed["metadata"]["generation"].as_i64().unwrap_or(0);
        let patience = call.patience(ABORT_PATIENCE);
        let back = follow(call, &server, kind, name, patience, |object| {
            taken_back(object, generation)
        })
        .await?;
        return say(
            call,
            &back,
            &format!("{}; {}", edit.said_of(name), going::outcome(&back)),
        );
    }
    let target = Target {
        model: Laya(&changed).wished().unwrap_or_default().to_owned(),
        digest: None,
        generation: changed["metadata"]["generation"].as_i64().unwrap_or(0),
        until: Until::RolledOut,
    };
    let own = going::own_patience(Laya(&changed), Until::RolledOut);
    let patience = call.patience(Duration::from_secs(own));
    let served = follow(call, &server, kind, name, patience, |object| {
        going::judge(object, &target)
    })
    .await?;
    say(call, &served, &going::outcome(&served))
}

impl Edit {
    fn new(field: &'static str, value: impl Into<Value>, said: &'static str) -> Self {
        Self {
            field,
            value: value.into(),
            said,
            note: None,
        }
    }

    fn said_of(&self, name: &str) -> String {
        format!("{name} {}", self.said)
    }
}

fn full(laya: Laya<'_>) -> String {
    kinds::laya_server().full(laya.name())
}

/// Whether the candidate is gone again.
fn taken_back(object: &Value, generation: i64) -> Step<Value> {
    let laya = Laya(object);
    let observed = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
    let is_seen = observed >= generation && conditions::is_current(object);
    let failed = laya
        .taken_back()
        .filter(|condition| condition.reason == "RollbackFailed");
    match failed {
        Some(condition) if is_seen => Step::Failed(going::rejected(laya, &condition)),
        _ if is_seen && laya.open_rollout().is_none() && laya.candidate().is_none() => {
            Step::Done(object.clone())
        }
        _ if is_seen => Step::Waits(going::line(laya)),
        _ => Step::Waits(Line::Stays(format!(
            "{}: the controller has not looked at it yet",
            laya.name()
        ))),
    }
}

/// What a change comes to.
fn decide(laya: Laya<'_>, change: Change) -> Result<Decided, CliError> {
    match change {
        Change::Pause => Ok(pause(laya)),
        Change::Resume => resume(laya),
        Change::Approve => approve(laya),
        Change::Abort => abort(laya),
        Change::Retry => retry(laya),
    }
}

fn pause(laya: Laya<'_>) -> Decided {
    if laya.is_paused_by_hand() {
        return Decided::Already(format!("{} is paused already", laya.name()));
    }
    let mut edit = Edit::new("paused", true, "paused");
    edit.note = Some(match laya.open_rollout() {
        Some(_) => {
            "steps and their clocks stand still; what fails is taken back all the same".to_owned()
        }
        None => "no rollout goes on; the next one waits before it shifts traffic".to_owned(),
    });
    Decided::Write(edit)
}

fn resume(laya: Laya<'_>) -> Result<Decided, CliError> {
    let name = laya.name();
    let rollout = laya.rollout().filter(|rollout| rollout.state() == "Paused");
    let why = rollout
        .and_then(|rollout| rollout.message())
        .unwrap_or("it says no reason");
    let own = match rollout.map(|_| without_hand(laya)) {
        Some(Some(Pause::Verdict)) => Some(format!(
            "{name} waits for a verdict by itself ({why}); it goes on when the gate says more, or past it: `relayctl use {} --server {name} --force --reason TEXT`",
            laya.wished().unwrap_or("NAME")
        )),
        Some(Some(Pause::Report)) => Some(format!(
            "{name} waits for the router's report by itself ({why}); it goes on when that is back"
        )),
        Some(Some(Pause::Suspended)) => Some(format!(
            "{name} is suspended ({why}); it goes on when spec.suspend is taken away, or spec.replicas is not 0: `relayctl apply -f FILE`"
        )),
        Some(Some(Pause::Failure)) => Some(format!(
            "{name} stands still after a failure ({why}); it ends with `relayctl rollout abort {name}`, another wish, or goes on with `relayctl rollout retry {name}`"
        )),
        Some(Some(Pause::ByHand) | None) | None => None,
    };
    if laya.is_paused_by_hand() {
        let mut edit = Edit::new("paused", false, "resumed");
        edit.note = own;
        return Ok(Decided::Write(edit));
    }
    match own {
        Some(own) => Err(
            CliError::new(Exit::Failed, format!("nothing is resumed: {own}"))
                .hint(format!("`relayctl rollout status {name}` tells more")),
        ),
        None => Ok(Decided::Already(format!("{name} is not paused"))),
    }
}

/// The controller's own pause, whether or not somebody paused it too.
fn without_hand(laya: Laya<'_>) -> Option<Pause> {
    let mut object = laya.0.clone();
    object["spec"]["rollout"]["paused"] = Value::Bool(false);
    Laya(&object).pause()
}

fn approve(laya: Laya<'_>) -> Result<Decided, CliError> {
    let name = laya.name();
    let candidate = laya
        .candidate()
        .and_then(|candidate| Some((candidate, candidate.digest()?)));
    let Some((candidate, digest)) = candidate else {
        return Err(CliError::new(
            Exit::NotFound,
            format!("{name} has no candidate that could be approved"),
        )
        .hint(format!(
            "`relayctl rollout status {name}` tells where it stands"
        )));
    };
    if laya.rollout_spec()["approve"] == digest {
        return Ok(Decided::Already(format!(
            "{} is approved already",
            candidate.title()
        )));
    }
    let mut edit = Edit::new("approve", digest, "approved");
    let state = laya.rollout().map_or("Unknown", |rollout| rollout.state());
    edit.note = (state != "AwaitingApproval").then(|| {
        format!(
            "{} is approved before it is asked for; it is {} now",
            candidate.title(),
            going::sentence(state)
        )
    });
    Ok(Decided::Write(edit))
}

fn abort(laya: Laya<'_>) -> Result<Decided, CliError> {
    let name = laya.name();
    let nothing = |line: String, hint: String| Err(CliError::new(Exit::NotFound, line).hint(hint));
    let undo = format!("`relayctl rollout undo {name}` goes back to the version before");
    let Some(rollout) = laya.open_rollout() else {
        return nothing(format!("{name} has no rollout that could be aborted"), undo);
    };
    if matches!(rollout.state(), "Draining" | "RollingBack") {
        let line = format!(
            "{name} is {} already, which is not aborted",
            going::sentence(rollout.state())
        );
        return Err(CliError::new(Exit::Conflict, line).hint(undo));
    }
    // While it is watched, the candidate is the champion.
    let promoted =
        rollout.is_promoted() || matches!(rollout.paused_from(), Some("Promoted" | "Baking"));
    let version = if promoted {
        laya.champion()
    } else {
        laya.candidate()
    };
    let revision = version.and_then(|version| version.revision());
    let Some(revision) = revision else {
        return nothing(
            format!("{name} has no candidate yet that could be aborted"),
            format!(
                "`relayctl use {} --server {name}` withdraws the wish",
                laya.champion().map_or("NAME", |champion| champion.model())
            ),
        );
    };
    if laya.rollout_spec()["abort"] == revision {
        return Ok(Decided::Already(format!(
            "revision {revision} of {name} is being aborted already"
        )));
    }
    Ok(Decided::Write(Edit::new("abort", revision, "aborted")))
}

fn retry(laya: Laya<'_>) -> Result<Decided, CliError> {
    let nothing = laya.taken_back().is_none()
        && laya.pause() != Some(Pause::Failure)
        && laya.rejected().is_empty();
    if nothing {
        // A raised number would say that somebody tried something again.
        let name = laya.name();
        let line = format!("nothing of {name} was taken back that could be tried again");
        return Err(CliError::refused(line).hint(format!(
            "`relayctl rollout status {name}` tells where it stands"
        )));
    }
    Ok(Decided::Write(Edit::new(
        "retry",
        laya.retry() + 1,
        "retried",
    )))
}

#[cfg(test)]
mod tests;
