//! No task of the model is there: what is to be done next, if anything. Pure.

use api::event::EventReason;
use api::kinds::laya_model::ModelPhase;
use api::reason::Reason;
use backend::{Action as EngineAction, ImageState, RunState, TaskSeen, TaskSpec, VolumeRole};
use jiff::SignedDuration;

use super::{Ended, Pass, RUNNING, running, stands};
use crate::clock::whole_seconds;
use crate::layamodel::outcome::{self, Outcome};
use crate::layamodel::plan::Action;
use crate::layamodel::source::Source;
use crate::layamodel::status::{Stand, subject};
use crate::layamodel::{retry, task as tasks};
use crate::reconciler::Requeue;

/// How long an image that did not come is left alone: the longest pause of the back end, which ignores whoever asks before
/// its pause, of 5 s doubled by each failure, is over. How many failures there were it does not say, so only after the
/// longest is an answer certain; asked before, each pass would act for nothing and be followed by the next at once.
const IMAGE_AGAIN: SignedDuration = SignedDuration::from_secs(300);

/// Whether what failed for good is to be tried as if for the first time: the spec changed, or somebody asks to verify.
pub(super) fn begins_anew(pass: &Pass<'_>) -> bool {
    let Some(fetch) = &pass.facts.fetch else {
        return false;
    };
    let patience = &pass.model.spec.fetch;
    let gave_up = retry::gave_up(fetch);
    let late = retry::is_late(fetch, patience, pass.now, pass.checked.fetch_age);
    is_changed(pass) && (gave_up || late) || gave_up && pass.asks_to_verify()
}

/// Whether a fetch failed under a spec that is not the one of now: its end says nothing of the new wish, and must not stop
/// it.
pub(super) fn failed_before(pass: &Pass<'_>, task: &TaskSeen) -> bool {
    is_changed(pass)
        && pass.facts.observed_generation.is_some()
        && task.state == RunState::Exited
        && matches!(outcome::of_model(task), Outcome::Failed(_))
}

fn is_changed(pass: &Pass<'_>) -> bool {
    pass.facts.observed_generation != pass.model.metadata.generation
}

/// Whether the files were in a volume that is gone, or that is another one by now.
pub(super) fn is_lost(pass: &Pass<'_>) -> bool {
    let Some(location) = &pass.facts.location else {
        return false;
    };
    let is_here = location.backend.as_deref() == Some(pass.checked.engine.name)
        && pass.volume().is_some_and(|volume| {
            // Longer ones are cut in status.
            let recorded = location.volume_uid.as_deref().unwrap_or_default();
            volume.uid == recorded || (recorded.len() >= 256 && volume.uid.starts_with(recorded))
        });
    !is_here
}

/// What lay in the volume is lost: it begins anew, once no task of the time before is left.
pub(super) fn lost(mut pass: Pass<'_>) -> Ended {
    if let Some(task) = pass.seen.tasks.first() {
        pass.end(task);
    } else {
        pass.facts.location = None;
        pass.facts.verified_at = None;
        pass.facts.fetch = None;
    }
    let message = "the volume with the files is gone or is another one; they are fetched again";
    let mut stand = Stand::not_ready(ModelPhase::Pending, Reason::VolumeLost, message)
        .verified_too()
        .working();
    stand.fetched = Some(crate::layamodel::status::Word::no(
        Reason::NotStarted,
        message,
    ));
    pass.end_with(stand, Requeue::Waiting)
}

/// What a model says whose files are here and right.
pub(super) fn judged(pass: &Pass<'_>, phase: ModelPhase) -> Stand {
    let asked = pass.model.spec.contract.as_ref();
    match (asked, pass.facts.contract.as_deref()) {
        (Some(asked), Some(named)) if asked.0 != named => {
            stands::other_contract(&pass.facts, &asked.0)
        }
        _ => stands::published(pass, phase),
    }
}

/// What is next.
pub(super) fn next(mut pass: Pass<'_>) -> Ended {
    if pass.checked.surplus {
        // As an object first; its files follow, once nothing has it (control-plane 11).
        pass.actions.push(Action::DeleteModel);
    }
    if stands::is_published(&pass.facts) {
        return published(pass);
    }
    let in_place = pass.wanted.in_place();
    if in_place && pass.facts.fetch.as_ref().is_some_and(retry::gave_up) {
        return rests(pass);
    }
    if let Some((stand, message)) = stands::name_taken(&pass) {
        let was = pass.model.status.as_ref().is_some_and(|status| {
            let word = Reason::NameTaken.as_str();
            status
                .conditions
                .iter()
                .any(|condition| condition.type_ == "Stalled" && condition.reason == word)
        });
        if !was {
            pass.tell(EventReason::NameTaken, message);
        }
        return pass.end_with(stand, Requeue::Waiting);
    }
    if pass.model.spec.suspend {
        let stand = stands::suspended(&pass);
        return pass.end_with(stand, Requeue::Steady);
    }
    if let Source::Run { name } = &pass.wanted.source {
        let message = format!("TrainingRun {name} has no result yet");
        let stand = stands::pending(&pass, Reason::RunNotFinished, message);
        return pass.end_with(stand, Requeue::Waiting);
    }
    if pass.volume().is_none() {
        return without_volume(pass);
    }
    if pass.checked.leaving_twin && *pass.wanted.role() == VolumeRole::Models {
        // What it publishes would be removed by a prune that began before this model was there.
        let message =
            "its files are being removed, for another LayaModel or by `relayctl model prune`; wait";
        let stand = stands::pending(&pass, Reason::NotStarted, message.to_owned()).working();
        return pass.end_with(stand, Requeue::Waiting);
    }
    if in_place {
        return verify(pass, "the files are about to be hashed");
    }
    if pass.observation.unbound_long {
        let stand = stands::pending(&pass, Reason::VolumePending, running::unbound()).working();
        // It may bind only when the task's pod is placed, so the task is asked for all the same.
        return fetch(pass, Some(stand));
    }
    fetch(pass, None)
}

/// The files are here and right, as far as is known.
fn published(mut pass: Pass<'_>) -> Ended {
    if pass.facts.contract.is_none()
        && let Some(contract) = &pass.model.spec.contract
    {
        // The checkpoint names none, so what people say of it counts.
        pass.facts.contract = Some(contract.0.clone());
    }
    let damaged_at = pass.checked.damaged_at.map(whole_seconds);
    if damaged_at > pass.facts.verified_at && damaged_at.is_some() {
        return damaged(pass);
    }
    if pass.asks_to_verify() {
        return verify(pass, "a full check was asked for");
    }
    let stand = judged(&pass, ModelPhase::Published);
    let requeue = if stand.stalled.is_some() {
        Requeue::Stalled
    } else {
        Requeue::Steady
    };
    pass.end_with(stand, requeue)
}

/// A server found the files wrong.
fn damaged(mut pass: Pass<'_>) -> Ended {
    pass.facts.verified_at = None;
    let message = "a server found that they are not those of its revision";
    let note = format!("{}: {message}", subject(pass.model));
    pass.tell(EventReason::ModelDamaged, note);
    if pass.wanted.in_place() {
        pass.facts.location = None;
        pass.facts.fetch = Some(api::kinds::laya_model::FetchProgress {
            last_error: Some(retry::error(
                Reason::ModelDamaged,
                message,
                whole_seconds(pass.now.wall),
            )),
            ..Default::default()
        });
        pass.verification_done();
        return rests(pass);
    }
    pass.facts.fetch = None;
    let stand = stands::damaged(ModelPhase::Repairing, message).working();
    pass.end_with(stand, Requeue::Waiting)
}

/// Nothing is done before somebody changes something.
fn rests(pass: Pass<'_>) -> Ended {
    let fetch = pass.facts.fetch.clone().unwrap_or_default();
    let stand = stands::after_failure(&pass, &fetch);
    pass.end_with(stand, Requeue::Stalled)
}

fn without_volume(mut pass: Pass<'_>) -> Ended {
    if let Source::Volume { name, .. } = &pass.wanted.source {
        let message = format!("volume {name} is not there. Make it");
        let stand = stands::pending(&pass, Reason::NotStarted, message);
        return pass.end_with(stand, Requeue::Waiting);
    }
    let size_bytes = pass.wanted.volume_bytes(&pass.model.spec);
    pass.act(EngineAction::EnsureVolume {
        role: pass.wanted.role().clone(),
        size_bytes,
    });
    let stand = stands::pending(
        &pass,
        Reason::NotStarted,
        "the volume is being made".to_owned(),
    )
    .working();
    pass.end_with(stand, Requeue::Waiting)
}

/// Asks for the verification that the nonce of now asks for; one that was made and not started is started.
pub(super) fn verify(mut pass: Pass<'_>, message: &str) -> Ended {
    let digest = pass
        .facts
        .digest
        .clone()
        .or_else(|| pass.wanted.digest.clone());
    let digest = digest.unwrap_or_default();
    let number = tasks::verification(pass.nonce());
    let spec = tasks::verify(pass.model, pass.checked, pass.wanted, &digest, number);
    if let Some(problem) = run(&mut pass, spec) {
        let stand = stands::verifying(&pass, &problem);
        return pass.end_with(stand, Requeue::Waiting);
    }
    let stand = stands::verifying(&pass, message);
    pass.end_with(stand, RUNNING)
}

/// The next attempt, when it is due. `instead` is said instead of what the fetch says.
fn fetch(mut pass: Pass<'_>, instead: Option<Stand>) -> Ended {
    let patience = &pass.model.spec.fetch;
    let before = pass.facts.fetch.clone();
    let next = retry::next(before.as_ref(), patience, pass.now, pass.checked.fetch_age);
    let (stand, requeue) = match next {
        retry::Next::Now(attempt) => {
            let repair = stands::is_damaged(&pass.facts);
            let spec = tasks::fetch(
                pass.model,
                pass.checked,
                pass.wanted,
                attempt,
                repair,
                pass.now,
            );
            match run(&mut pass, spec) {
                Some(problem) => (
                    stands::pending(&pass, Reason::NotStarted, problem).working(),
                    Requeue::Waiting,
                ),
                None => {
                    let message = format!("attempt {attempt} is about to start");
                    (begin(&pass, message), RUNNING)
                }
            }
        }
        retry::Next::Wait(left) => {
            let fetch = before.unwrap_or_default();
            (stands::after_failure(&pass, &fetch), Requeue::After(left))
        }
        retry::Next::TooLate => {
            let fetch = retry::too_late(before.as_ref(), patience, pass.now);
            pass.facts.fetch = Some(fetch.clone());
            pass.verification_done();
            (stands::after_failure(&pass, &fetch), Requeue::Stalled)
        }
        retry::Next::Never => return rests(pass),
    };
    pass.end_with(instead.unwrap_or(stand), requeue)
}

/// What is said before the first and between attempts that begin.
fn begin(pass: &Pass<'_>, message: String) -> Stand {
    match &pass.facts.fetch {
        // Why the last attempt ended stays until the next one is seen.
        Some(fetch) if fetch.last_error.is_some() => stands::after_failure(pass, fetch),
        _ if stands::is_damaged(&pass.facts) => stands::fetching(pass, message),
        _ => stands::pending(pass, Reason::NotStarted, message).working(),
    }
}

/// Runs a task, or says what it needs first.
pub(super) fn run(pass: &mut Pass<'_>, spec: TaskSpec) -> Option<String> {
    let image = spec.image.clone();
    if pass.checked.engine.images {
        let again = match pass.seen.image(&image) {
            Some(ImageState::Present { .. }) => None,
            Some(ImageState::Pulling { bytes }) => {
                return Some(format!("image {image} is being pulled: {bytes} bytes"));
            }
            Some(ImageState::Failed {
                reason,
                message,
                at,
            }) => {
                let message = format!("image {image}: {reason}: {message}");
                let due = at
                    .checked_add(IMAGE_AGAIN)
                    .is_ok_and(|due| pass.now.wall >= due);
                if !due {
                    return Some(message);
                }
                Some(message)
            }
            Some(ImageState::Absent) | None => Some(format!("image {image} is about to be pulled")),
        };
        if let Some(message) = again {
            pass.act(EngineAction::EnsureImage {
                image,
                pull_secrets: Vec::new(),
            });
            return Some(message);
        }
    }
    pass.act(EngineAction::RunTask(Box::new(spec)));
    None
}
