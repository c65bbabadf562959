//! Starting and Loading: replicas of the candidate run, then say that they are ready, long enough.

use api::kinds::laya_server::RolloutState;
use api::kinds::laya_server::Version;
use api::reason::Reason;

use super::super::available;
use super::super::repair::{self, Mending};
use super::super::replicas::{Mend, Replica, Replicas, RoomForOne, Start};
use super::super::sweep;
use super::super::traffic;
use super::super::view::{Because, Draft, View};
use super::{Next, safety, steps};
use crate::probe::Readiness;

pub(super) fn starting(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    if traffic::in_gap(draft)
        && let Some(next) = stop_old(view, draft)
    {
        return next;
    }
    let count = steps::replicas(view, draft);
    let replicas = view.replicas_of(Some(candidate));
    let start = if replicas.iter().any(|it| safety::is_left_over(draft, it)) {
        Start::Any
    } else {
        Start::NotCrashed
    };
    if let Mend::Ensure { ordinals, .. } = replicas.mend(count, RoomForOne::No, start) {
        return match (
            repair::blocked(view, candidate, &replicas),
            repair::ensure(view, candidate, &ordinals),
        ) {
            (Some(because), _) => {
                excuse(view, draft);
                Next::Wait(because)
            }
            (None, Mending::Do(actions)) => {
                excuse(view, draft);
                Next::Do(
                    actions,
                    Because::new(Reason::Starting, "replicas of the candidate are started"),
                )
            }
            (None, Mending::Wait(because)) => Next::Wait(because),
        };
    }
    if replicas.iter().filter(|replica| replica.runs()).count() >= count {
        return Next::Go(RolloutState::Loading);
    }
    match available::blocked(view, candidate, &replicas) {
        // The engine's, a registry's or a stranger's fault: it waits as in Preparing.
        Some(because) => {
            excuse(view, draft);
            Next::Wait(because)
        }
        None => late(view, draft, &replicas).map_or_else(
            || {
                let message = "replicas of the candidate start";
                Next::Wait(Because::new(Reason::Starting, message))
            },
            Next::Fail,
        ),
    }
}

/// What is somebody else's fault takes none of the candidate's time: at least half of it is left afterwards, for few writes.
fn excuse(view: &View<'_>, draft: &mut Draft) {
    let clocks = view.clocks;
    let deadline = i64::from(view.spec.rollout.progress_deadline_seconds);
    let rollout = draft.rollout();
    if clocks.step_passed(rollout, deadline / 2) {
        clocks.restart(rollout);
    }
}

/// Whether a start waits for an engine, a registry, room or a stranger, and not for the candidate.
const fn is_foreign(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NameTaken
            | Reason::PortInUse
            | Reason::NoSpace
            | Reason::InsufficientMemory
            | Reason::InsufficientGpu
            | Reason::SecretMissing
            | Reason::ImageNotFound
            | Reason::ImagePullUnauthorized
            | Reason::ImagePullBusy
            | Reason::ImagePullInterrupted
    )
}

/// The old one stops before the new one starts; `None` once it has.
fn stop_old(view: &View<'_>, draft: &Draft) -> Option<Next> {
    let champion = draft.status.champion.as_ref()?;
    let old = view.replicas_of(Some(champion));
    if !old.any_up() {
        return None;
    }
    let because = Because::new(
        Reason::Starting,
        "the old version stops to make room; rules answer meanwhile",
    );
    Some(match sweep::stop(view, champion, &old) {
        Some(actions) => Next::Do(actions, because),
        None => Next::Wait(because),
    })
}

pub(super) fn loading(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    let count = steps::replicas(view, draft);
    let needed = u64::try_from(view.spec.rollout.min_ready_seconds).unwrap_or(0);
    let replicas = view.replicas_of(Some(candidate));
    let settled = replicas.iter().filter(|replica| {
        replica.runs()
            && matches!(
                replica.probe.map(|probe| &probe.readiness),
                Some(Readiness::Ready { for_seconds, .. }) if *for_seconds >= needed
            )
    });
    let settled = settled.count();
    if settled >= count {
        return Next::Go(RolloutState::Probing);
    }
    let blocked = available::blocked(view, candidate, &replicas);
    if let Some(because) = blocked.clone().filter(|because| is_foreign(because.reason)) {
        excuse(view, draft);
        return Next::Wait(because);
    }
    if let Some(because) = late(view, draft, &replicas) {
        return Next::Fail(because);
    }
    if let Some(because) = blocked {
        return Next::Wait(because);
    }
    let said = replicas.iter().find_map(available::not_ready);
    let said = said.map_or_else(String::new, |said| format!("; {said}"));
    Next::Wait(Because::new(
        Reason::Loading,
        format!(
            "{} of {count} replicas of the candidate are ready{said}",
            replicas.ready()
        ),
    ))
}

/// It was not ready in time.
fn late(view: &View<'_>, draft: &Draft, replicas: &Replicas<'_>) -> Option<Because> {
    let deadline = view.spec.rollout.progress_deadline_seconds;
    let rollout = draft.status.rollout.as_ref()?;
    if !view.clocks.step_passed(rollout, i64::from(deadline)) {
        return None;
    }
    let open = |replica: &Replica<'_>| replica.is_unasked() || replica.is_ready();
    if view.is_young() && replicas.iter().any(open) {
        // For how long it has been ready is not known yet.
        return None;
    }
    let said = replicas.iter().find_map(available::not_ready);
    let said = said.unwrap_or_else(|| "its replicas did not all run".to_owned());
    Some(Because::new(
        Reason::LoadTimedOut,
        format!(
            "it was not ready within {deadline} s: {said}. Look at its logs, or raise spec.rollout.progressDeadlineSeconds"
        ),
    ))
}
