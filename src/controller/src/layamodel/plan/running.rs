//! A task is there: it runs, or its end is to be recorded. Pure.

use api::event::EventReason;
use api::kinds::laya_model::{ModelLocation, ModelPhase};
use api::reason::Reason;
use backend::{Action as EngineAction, RunState, TaskSeen, Waiting};
use jiff::{SignedDuration, Timestamp};

use super::{Action, Ended, Pass, RUNNING, stands};
use crate::clock::whole_seconds;
use crate::layamodel::outcome::{self, Failed, Found, Outcome, ended_at};
use crate::layamodel::source::Source;
use crate::layamodel::status::short;
use crate::layamodel::{retry, task as tasks};
use crate::reconciler::Requeue;

/// A verification that found nothing out is tried again after this.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// Longest text of a status that is not said to be longer.
const MAX_TEXT: usize = 256;

/// A fetch runs or has ended.
pub(super) fn fetch(mut pass: Pass<'_>, task: &TaskSeen) -> Ended {
    match task.state {
        RunState::Exited => fetched(pass, task),
        RunState::Created if task.waiting.is_none() => {
            // It was made and never started: a crash came in between. Asking again starts it.
            let repair = stands::is_damaged(&pass.facts);
            let attempt = task.key.attempt;
            let spec = tasks::fetch(
                pass.model,
                pass.checked,
                pass.wanted,
                attempt,
                repair,
                pass.now,
            );
            pass.act(EngineAction::RunTask(Box::new(spec)));
            let stand = stands::fetching(&pass, format!("attempt {attempt} is about to start"));
            pass.end_with(stand, RUNNING)
        }
        state => match &task.waiting {
            // A pod waits by itself; nothing else starts what could not be started.
            Some(waiting) if state == RunState::Created && !pass.checked.engine.pods => {
                not_started(pass, task, waiting)
            }
            _ => fetching(pass, task),
        },
    }
}

/// It could not be started. Nothing of it is worth keeping, so that is recorded and the task removed in one pass: where the
/// record is lost the attempt is made again.
fn not_started(mut pass: Pass<'_>, task: &TaskSeen, waiting: &Waiting) -> Ended {
    failed(&mut pass, task, &outcome::not_started(waiting));
    pass.end(task);
    settled(pass)
}

/// An attempt failed.
fn failed(pass: &mut Pass<'_>, task: &TaskSeen, failed: &Failed) {
    let uid = pass.model.metadata.uid.clone().unwrap_or_default();
    let patience = &pass.model.spec.fetch;
    let fetch = pass.facts.fetch.clone();
    let fetch = retry::failed(fetch.as_ref(), task, failed, patience, &uid, pass.now);
    if retry::gave_up(&fetch) {
        pass.verification_done();
    }
    pass.facts.fetch = Some(fetch);
}

fn fetching(mut pass: Pass<'_>, task: &TaskSeen) -> Ended {
    let patience = &pass.model.spec.fetch;
    let before = pass.facts.fetch.clone();
    let fetch = retry::running(before.as_ref(), task, pass.checked.progress_due, pass.now);
    let late = retry::is_late(&fetch, patience, pass.now, pass.checked.fetch_age);
    let total = fetch
        .bytes_total
        .map_or_else(String::new, |total| format!(" of {total}"));
    let message = match (&task.waiting, fetch.bytes_done) {
        (Some(waiting), _) => format!("attempt {} waits: {}", task.key.attempt, waiting.message),
        (None, Some(done)) => format!("attempt {}: {done}{total} bytes", task.key.attempt),
        (None, None) => format!("attempt {} runs", task.key.attempt),
    };
    pass.facts.fetch = Some(fetch);
    if late {
        // In whatever state it is, also one that never runs.
        pass.end(task);
    }
    let stand = if pass.observation.unbound_long {
        stands::pending(&pass, Reason::VolumePending, unbound()).working()
    } else {
        stands::fetching(&pass, message)
    };
    pass.end_with(stand, RUNNING)
}

/// What to say of a claim that does not bind.
pub(super) fn unbound() -> String {
    "the claim is not bound since 10 minutes. Look at the claim and its storage class".to_owned()
}

/// A fetch ended: its end is recorded, then, by a pass that finds it recorded, the task is removed.
fn fetched(mut pass: Pass<'_>, task: &TaskSeen) -> Ended {
    let before = pass.facts.clone();
    match outcome::of_model(task) {
        Outcome::Done(found) => {
            if let Some(message) = must_store(&mut pass, &found) {
                let stand = stands::fetching(&pass, message.to_owned());
                return pass.end_with(stand, Requeue::Waiting);
            }
            let was_published = stands::is_published(&before);
            let was_damaged = stands::is_damaged(&before);
            publish(&mut pass, task, found);
            if pass.facts != before {
                let digest = short(pass.facts.digest.as_deref().unwrap_or_default());
                let bytes = pass.facts.size_bytes.unwrap_or(0);
                if was_damaged {
                    pass.tell(EventReason::Repaired, format!("{digest} is whole again"));
                } else if !was_published {
                    let attempt = task.key.attempt;
                    pass.tell(
                        EventReason::Fetched,
                        format!("{bytes} bytes by attempt {attempt}"),
                    );
                    pass.tell(EventReason::Published, format!("{digest} can be used"));
                }
            }
        }
        Outcome::Failed(why) => failed(&mut pass, task, &why),
    }
    if pass.facts == before {
        pass.end(task);
    }
    settled(pass)
}

/// What a recorded end leaves.
fn settled(pass: Pass<'_>) -> Ended {
    if stands::is_published(&pass.facts) {
        let stand = super::waiting::judged(&pass, ModelPhase::Published);
        return pass.end_with(stand, Requeue::Waiting);
    }
    let stand = match pass.facts.fetch.clone() {
        Some(fetch) => stands::after_failure(&pass, &fetch),
        None => stands::fetching(&pass, "about to begin".to_owned()),
    };
    pass.end_with(stand, Requeue::Waiting)
}

/// Asks for what is to be stored of a version and is not; nothing else may be done before. Says what that is.
fn must_store(pass: &mut Pass<'_>, found: &Found) -> Option<&'static str> {
    let documents = &pass.observation.documents;
    let is_missing = |name: String| !documents.contains(&name);
    let wording = found
        .wording
        .as_ref()
        .filter(|wording| is_missing(wording.document_name()))
        .map(|wording| Action::StoreContract {
            wording: wording.clone(),
        });
    let recorded = found
        .recorded
        .as_ref()
        .filter(|recorded| is_missing(recorded.document_name()))
        .map(|recorded| Action::StoreProbes {
            recorded: recorded.clone(),
        });
    let message = match (&wording, &recorded) {
        (Some(_), _) => "the wording of the version is being stored",
        (None, Some(_)) => "the recorded probes of the version are being stored",
        (None, None) => return None,
    };
    pass.actions.extend(wording.into_iter().chain(recorded));
    Some(message)
}

/// The files are here and right.
fn publish(pass: &mut Pass<'_>, task: &TaskSeen, found: Found) {
    let Some(volume) = pass.volume() else {
        // `is_lost` comes before; without a volume nothing was published.
        return;
    };
    let path = match &pass.wanted.source {
        Source::Volume { path, .. } => path.clone(),
        _ => format!("sha256-{}", found.digest.trim_start_matches("sha256:")),
    };
    let location = ModelLocation {
        backend: Some(pass.checked.engine.name.to_owned()),
        volume: Some(volume.name.chars().take(MAX_TEXT).collect()),
        volume_uid: Some(volume.uid.chars().take(MAX_TEXT).collect()),
        path: Some(path),
    };
    let at = verified_at(pass, task);
    let facts = &mut pass.facts;
    facts.short_digest = Some(short(&found.digest));
    facts.digest = Some(found.digest);
    facts.contract = found.contract.or_else(|| {
        pass.model
            .spec
            .contract
            .as_ref()
            .map(|digest| digest.0.clone())
    });
    facts.size_bytes = Some(found.size_bytes);
    facts.file_count = Some(found.file_count);
    facts.parents = found.parents;
    facts.location = Some(location);
    facts.verified_at = Some(at);
    let mut fetch = facts.fetch.take().unwrap_or_default();
    fetch.attempt = i32::try_from(task.key.attempt).ok();
    fetch.next_attempt_at = None;
    fetch.last_error = None;
    fetch.bytes_done = Some(found.size_bytes);
    fetch.bytes_total = Some(found.size_bytes);
    facts.fetch = Some(fetch);
    pass.verification_done();
}

/// When the files were hashed: the end of the task, never before what was recorded, nor before the damage that it answers,
/// or an engine whose clock is behind would have them repaired for ever. What was found right before answers none: a damage
/// that is newer than that is still to be repaired.
fn verified_at(pass: &Pass<'_>, task: &TaskSeen) -> Timestamp {
    let known = pass.facts.verified_at;
    let at = ended_at(task)
        .or(known)
        .unwrap_or_else(|| whole_seconds(pass.now.wall));
    let least = known.or_else(|| pass.checked.damaged_at.map(whole_seconds));
    least.map_or(at, |least| least.max(at))
}

/// A verification runs or has ended.
pub(super) fn verification(mut pass: Pass<'_>, task: &TaskSeen) -> Ended {
    if task.key.attempt != tasks::verification(pass.nonce()) {
        // An earlier nonce asked for it.
        pass.end(task);
        let stand = stands::verifying(&pass, "an earlier verification ends");
        return pass.end_with(stand, RUNNING);
    }
    if task.state == RunState::Created && (task.waiting.is_none() || !pass.checked.engine.pods) {
        // It was made and never started: a crash came in between, or the engine refused. Asking again starts it; where that
        // is refused again the action fails, and the driver waits longer each time.
        return super::waiting::verify(pass, "the files are about to be hashed");
    }
    if task.state != RunState::Exited {
        let stand = stands::verifying(&pass, "the files are being hashed");
        return pass.end_with(stand, RUNNING);
    }
    let before = pass.facts.clone();
    match outcome::of_model(task) {
        Outcome::Done(found) => {
            if let Some(message) = must_store(&mut pass, &found) {
                let stand = stands::verifying(&pass, message);
                return pass.end_with(stand, Requeue::Waiting);
            }
            let was_published = stands::is_published(&before);
            hashed(&mut pass, task, found);
            if pass.facts != before && !was_published {
                let digest = short(pass.facts.digest.as_deref().unwrap_or_default());
                pass.tell(EventReason::Published, format!("{digest} can be used"));
            }
        }
        Outcome::Failed(failed) if is_verdict(failed.reason) => {
            if !is_recorded(&pass, task) {
                wrong(&mut pass, task, failed.reason, &failed.message);
            }
        }
        // It found nothing out: the files are as good as they were known to be.
        Outcome::Failed(failed) => return verify_again(pass, task, &failed.message),
    }
    if pass.facts == before {
        pass.end(task);
    }
    settled(pass)
}

/// The files were found right.
fn hashed(pass: &mut Pass<'_>, task: &TaskSeen, found: Found) {
    let fetch = pass.facts.fetch.clone();
    publish(pass, task, found);
    // No attempt to fetch was made.
    pass.facts.fetch = fetch.filter(|fetch| fetch.last_error.is_none());
}

/// Whether a reason says that the files are wrong, and not that nobody could look.
const fn is_verdict(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::DigestMismatch
            | Reason::SizeMismatch
            | Reason::ModelDamaged
            | Reason::BadCheckpoint
            | Reason::UnsafePath
            | Reason::ContractMismatch
    )
}

/// Whether the bad end of this verification is in the facts.
fn is_recorded(pass: &Pass<'_>, task: &TaskSeen) -> bool {
    let facts = &pass.facts;
    let nothing_asked = !pass.asks_to_verify();
    if pass.wanted.in_place() {
        let fetch = facts.fetch.as_ref();
        let error = fetch.and_then(|fetch| fetch.last_error.as_ref());
        let is_of_it =
            error.is_some_and(|error| ended_at(task).is_none_or(|at| error.at == Some(at)));
        return nothing_asked && is_of_it;
    }
    nothing_asked && stands::is_damaged(facts)
}

/// The files were found wrong.
fn wrong(pass: &mut Pass<'_>, task: &TaskSeen, reason: Reason, message: &str) {
    pass.verification_done();
    pass.facts.verified_at = None;
    pass.tell(EventReason::ModelDamaged, message);
    if !pass.wanted.in_place() {
        pass.facts.fetch = None;
        return;
    }
    // Not ours to write: it stays wrong until somebody changes it.
    pass.facts.location = None;
    let at = ended_at(task).unwrap_or_else(|| whole_seconds(pass.now.wall));
    let reason = match reason {
        Reason::DigestMismatch | Reason::SizeMismatch => Reason::ModelDamaged,
        other => other,
    };
    let mut fetch = pass.facts.fetch.take().unwrap_or_default();
    fetch.next_attempt_at = None;
    fetch.last_error = Some(retry::error(reason, message, at));
    pass.facts.fetch = Some(fetch);
}

fn verify_again(mut pass: Pass<'_>, task: &TaskSeen, message: &str) -> Ended {
    let again = ended_at(task).and_then(|at| at.checked_add(AGAIN).ok());
    let wait = again.map_or(SignedDuration::ZERO, |at| at.duration_since(pass.now.wall));
    let wait = wait.min(AGAIN);
    let requeue = match std::time::Duration::try_from(wait) {
        Ok(wait) if !wait.is_zero() => Requeue::After(wait),
        _ => {
            pass.end(task);
            Requeue::Waiting
        }
    };
    let stand = stands::verifying(
        &pass,
        &format!("the verification found nothing out: {message}"),
    );
    pass.end_with(stand, requeue)
}
