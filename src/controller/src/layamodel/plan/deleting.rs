//! A model that is being deleted: it waits while a server has it, then its files go, then our finalizer (control-plane 2).
//! Pure.

use std::time::Duration;

use api::condition::ConditionType;
use api::event::EventReason;
use api::kinds::laya_model::{ModelPhase, ModelUse, OnDelete};
use api::kinds::{ConditionStatus, LayaModel, LayaModelStatus};
use api::label::Task;
use api::reason::Reason;
use backend::{Action as EngineAction, BackendError, Observed, RunState, TaskSeen, VolumeRole};
use jiff::Timestamp;

use super::{Ended, Pass, RUNNING};
use crate::clock::Now;
use crate::conditions::find;
use crate::layamodel::inputs::Checked;
use crate::layamodel::outcome::{self, Found, Outcome};
use crate::layamodel::source::Wanted;
use crate::layamodel::status::{self, Stand, subject};
use crate::layamodel::task as tasks;
use crate::reconciler::{EventDraft, Requeue};

/// Longest cleaning; then the data is left (control-plane 2).
const CLEANING: Duration = Duration::from_secs(600);
/// Between two attempts to clean.
const AGAIN: Duration = Duration::from_secs(30);

pub(super) fn plan(mut pass: Pass<'_>, released: bool) -> Ended {
    if released || !super::is_held(pass.model) {
        return free(pass, "the data is left where it is");
    }
    if let Some(used) = pass.checked.uses.first() {
        let stand = in_use(used);
        return pass.end_with(stand, Requeue::Waiting);
    }
    if is_abandoned(pass.model, pass.now) {
        return if has_data(&pass.facts) {
            abandon(pass)
        } else {
            // A task that does not end goes with the sweep of orphans.
            free(pass, "its files are left")
        };
    }
    // Nothing of ours may write while the files go.
    let other = pass
        .seen
        .tasks
        .iter()
        .find(|task| task.key.task != Task::Prune);
    if let Some(task) = other {
        if let Some(found) = unrecorded(&pass, task) {
            // What it published is known from its end alone, so that is recorded before it goes.
            pass.facts.short_digest = Some(status::short(&found.digest));
            pass.facts.digest = Some(found.digest);
            pass.facts.fetch.get_or_insert_default();
        } else {
            pass.end(task);
        }
        let stand = cleaning("its tasks end");
        return pass.end_with(stand, Requeue::Waiting);
    }
    if let Some(task) = pass.tasks(Task::Prune).first() {
        return pruning(pass, task);
    }
    let marks = marks_in_place(pass.model, pass.wanted, pass.checked);
    if pass.wanted.in_place() && !marks {
        return free(pass, "its files stay where they lie");
    }
    if is_untouched(&pass.facts, marks) {
        return free(pass, "nothing of it is left");
    }
    if pass.checked.engine.pods {
        return own_volume(pass);
    }
    let retains = pass.model.spec.storage.on_delete == OnDelete::Retain;
    let digest = pass
        .facts
        .digest
        .clone()
        .or_else(|| pass.wanted.digest.clone());
    let Some(digest) = digest else {
        // Only parts of files can lie there, of a digest that nobody knows; the next fetch's prune finds them.
        return free(pass, "nothing of it was published");
    };
    if pass.checked.shared && !retains {
        return free(pass, "its files are another's too and stay");
    }
    if pass.seen.volume(&VolumeRole::Models).is_none() {
        return free(pass, "its volume is gone");
    }
    if marks {
        // Files that nobody hashed yet are there all the same: that their mark was asked for is known from now on.
        pass.facts.short_digest = Some(status::short(&digest));
        pass.facts.digest = Some(digest.clone());
        pass.facts.fetch.get_or_insert_default();
    }
    prune(pass, &digest)
}

/// What a fetch published under a digest that is not recorded.
fn unrecorded(pass: &Pass<'_>, task: &TaskSeen) -> Option<Found> {
    let is_its_end = task.key.task == Task::Fetch && task.state == RunState::Exited;
    if !is_its_end || pass.facts.digest.is_some() {
        return None;
    }
    match outcome::of_model(task) {
        Outcome::Done(found) => Some(found),
        Outcome::Failed(_) => None,
    }
}

/// The engine does not answer, or the spec cannot be worked out: what does not need it is done all the same.
pub(super) fn blind(
    model: &LayaModel,
    checked: &Checked,
    engine: &Result<Observed, BackendError>,
    now: &Now,
    released: bool,
) -> Ended {
    let facts = status::facts(model);
    let says = |facts: LayaModelStatus, stand: Stand, requeue, release| Ended {
        status: status::settle(model, checked, facts, stand, now),
        actions: Vec::new(),
        events: Vec::new(),
        requeue,
        release,
    };
    let untouched = match checked.wanted.as_deref() {
        Ok(wanted) => {
            let marks = marks_in_place(model, wanted, checked);
            wanted.in_place() && !marks || is_untouched(&facts, marks)
        }
        Err(_) => !has_data(&facts),
    };
    let untouched = untouched || is_abandoned(model, now) && !has_data(&facts);
    if released || !super::is_held(model) {
        return says(
            facts,
            cleaning("the data is left where it is"),
            Requeue::Never,
            true,
        );
    }
    if let Some(used) = checked.uses.first() {
        return says(facts, in_use(used), Requeue::Waiting, false);
    }
    if untouched {
        return says(
            facts,
            cleaning("nothing of it is left"),
            Requeue::Never,
            true,
        );
    }
    if is_abandoned(model, now) {
        let facts = without_data(facts);
        let ended = says(
            facts,
            cleaning("its files are left"),
            Requeue::Waiting,
            false,
        );
        return Ended {
            events: vec![abandoned(model)],
            ..ended
        };
    }
    let mut status = status::unreachable(model, checked, engine, now);
    status.phase = Some(ModelPhase::Deleting);
    // Since when nothing has it: the cleaning is counted from there.
    let settled = status::settle(
        model,
        checked,
        facts,
        cleaning("the engine does not answer"),
        now,
    );
    if let Some(in_use) = find(&settled.conditions, ConditionType::InUse) {
        status
            .conditions
            .retain(|condition| condition.type_ != in_use.type_);
        status.conditions.push(in_use.clone());
        let list = crate::conditions::Conditions::of(
            &status.conditions,
            model.metadata.generation,
            now.wall,
        );
        status.conditions = list.into_list();
    }
    Ended {
        status,
        actions: Vec::new(),
        events: Vec::new(),
        requeue: Requeue::Waiting,
        release: false,
    }
}

fn in_use(used: &ModelUse) -> Stand {
    let server = used.server.as_deref().unwrap_or_default();
    let role = used
        .role
        .map_or_else(String::new, |role| format!(" as {role:?}").to_lowercase());
    let message = format!(
        "LayaServer {server} has it{role}. Give the server another model, or delete the server"
    );
    Stand::not_ready(ModelPhase::Deleting, Reason::Deleting, message).stalled(Reason::StillInUse)
}

fn cleaning(message: &str) -> Stand {
    Stand::not_ready(
        ModelPhase::Deleting,
        Reason::Deleting,
        format!("the object is being deleted: {message}"),
    )
    .working()
}

/// Nothing holds it any more.
fn free(pass: Pass<'_>, message: &str) -> Ended {
    Ended {
        release: true,
        ..pass.end_with(cleaning(message), Requeue::Never)
    }
}

/// Whether anything of it may lie in a volume of ours.
const fn has_data(facts: &LayaModelStatus) -> bool {
    facts.location.is_some() || facts.fetch.is_some()
}

/// Whether files in our own volume, which are used in place and never removed with their model, are marked to stay: else
/// `model prune` would take them once no object names them.
fn marks_in_place(model: &LayaModel, wanted: &Wanted, checked: &Checked) -> bool {
    let is_ours = *wanted.role() == VolumeRole::Models && !checked.engine.pods;
    wanted.in_place() && is_ours && model.spec.storage.on_delete == OnDelete::Retain
}

/// Whether there is nothing to do for its data. What is to be marked in place may lie there though nobody looked yet.
const fn is_untouched(facts: &LayaModelStatus, marks: bool) -> bool {
    let was_never_seen = facts.digest.is_none();
    !(has_data(facts) || marks && was_never_seen)
}

fn without_data(mut facts: LayaModelStatus) -> LayaModelStatus {
    facts.location = None;
    facts.verified_at = None;
    facts.fetch = None;
    facts
}

/// Since when nothing holds it but its data.
fn cleaning_since(model: &LayaModel) -> Option<Timestamp> {
    let deleted = model.metadata.deletion_timestamp.as_ref()?.0;
    let status = model.status.as_ref()?;
    let free = find(&status.conditions, ConditionType::InUse)?;
    (free.status == ConditionStatus::False).then(|| deleted.max(free.last_transition_time))
}

fn is_abandoned(model: &LayaModel, now: &Now) -> bool {
    cleaning_since(model).is_some_and(|since| {
        let taken = now.wall.duration_since(since);
        Duration::try_from(taken).is_ok_and(|taken| taken >= CLEANING)
    })
}

fn abandoned(model: &LayaModel) -> EventDraft {
    EventDraft {
        reason: EventReason::CleanupAbandoned,
        note: format!(
            "{}: its files could not be removed within {} s and are left",
            subject(model),
            CLEANING.as_secs()
        ),
    }
}

fn abandon(mut pass: Pass<'_>) -> Ended {
    pass.facts = without_data(pass.facts);
    let event = abandoned(pass.model);
    pass.events.push(event);
    pass.end_with(cleaning("its files are left"), Requeue::Waiting)
}

/// A claim of its own goes as a whole, or stays as a whole.
fn own_volume(mut pass: Pass<'_>) -> Ended {
    if pass.model.spec.storage.on_delete == OnDelete::Retain {
        return free(pass, "its volume stays");
    }
    if pass.seen.volume(&VolumeRole::Models).is_none() {
        return free(pass, "its volume is gone");
    }
    pass.act(EngineAction::DeleteVolume {
        role: VolumeRole::Models,
    });
    pass.end_with(cleaning("its volume goes"), Requeue::Waiting)
}

fn prune(mut pass: Pass<'_>, digest: &str) -> Ended {
    let spec = tasks::prune(pass.model, pass.checked, digest, 1);
    let stand = match super::waiting::run(&mut pass, spec) {
        Some(problem) => cleaning(&problem),
        None => cleaning("its files go"),
    };
    pass.end_with(stand, RUNNING)
}

/// The files are being removed, or were: that is recorded, then the task goes.
fn pruning(mut pass: Pass<'_>, task: &TaskSeen) -> Ended {
    if !has_data(&pass.facts) {
        pass.end(task);
        return pass.end_with(cleaning("its files are gone"), Requeue::Waiting);
    }
    let retains = pass.model.spec.storage.on_delete == OnDelete::Retain;
    let is_needed = pass.checked.shared && !retains;
    if is_needed && task.state != RunState::Exited {
        // A model of the same digest came since: what is not removed yet stays.
        pass.end(task);
        let stand = cleaning("its files are another's too and stay");
        return pass.end_with(stand, RUNNING);
    }
    match task.state {
        RunState::Exited => {}
        RunState::Created if task.waiting.is_none() => {
            pass.end(task);
            return pass.end_with(cleaning("its files go"), Requeue::Waiting);
        }
        _ => return pass.end_with(cleaning("its files go"), RUNNING),
    }
    let message = match outcome::of_prune(task) {
        Outcome::Done(()) => {
            let digest = pass.facts.short_digest.clone().unwrap_or_default();
            pass.facts = without_data(pass.facts);
            let note = if retains {
                "is marked to stay"
            } else {
                "was removed"
            };
            pass.tell(EventReason::Pruned, format!("{digest} {note}"));
            "its files are gone".to_owned()
        }
        Outcome::Failed(failed) => {
            let since = outcome::ended_at(task).map(|at| pass.now.wall.duration_since(at));
            let waited = since.and_then(|since| Duration::try_from(since).ok());
            if is_needed || waited.is_none_or(|waited| waited >= AGAIN) {
                pass.end(task);
            }
            format!("its files could not be removed: {}", failed.message)
        }
    };
    pass.end_with(cleaning(&message), Requeue::Waiting)
}
