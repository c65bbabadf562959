//! Promoted, Baking, Draining: the candidate is champion, is watched while the old one runs on, and then the old one stops.

use api::event::EventReason;
use api::kinds::laya_server::{RolloutState, Version};
use api::reason::Reason;

use super::super::available;
use super::super::facts::revision;
use super::super::history::{self, Outcome};
use super::super::replicas::Replica;
use super::super::sweep;
use super::super::view::{Because, Draft, View};
use super::{Next, path, report, told};
use crate::probe::Readiness;

/// The candidate becomes champion and gets all traffic, in one status write.
pub(super) fn promote(view: &View<'_>, draft: &mut Draft) {
    let Some(candidate) = draft.status.candidate.take() else {
        return;
    };
    let forced = path::is_forced(view, &candidate);
    let champion = Version {
        since: Some(view.now()),
        ..candidate
    };
    let model = champion.model.clone().unwrap_or_default();
    let new = champion.revision.clone().unwrap_or_default();
    draft.status.previous = draft.status.champion.replace(champion);
    draft.status.restarts = None;
    draft.go(view, RolloutState::Promoted);
    draft.rollout().step = None;
    draft.rollout().checks = None;
    let how = if forced { ", forced by a person" } else { "" };
    draft.tell(
        EventReason::Promoted,
        format!("LayaModel {model} serves as revision {new}{how}"),
    );
    draft.waits = Some(Because::new(Reason::Baking, told(RolloutState::Promoted)));
}

/// The stable address follows, where the engine has one.
pub(super) fn promoted(view: &View<'_>, draft: &mut Draft) -> Next {
    let Some(champion) = revision(draft.status.champion.as_ref()) else {
        return Next::End;
    };
    if view.checked.capabilities.pods {
        let revision = champion.to_owned();
        let point = backend::Action::PointService { revision };
        draft.actions.push(view.on(point));
    }
    if draft.status.previous.is_none() {
        // There is nothing to go back to, so nothing to watch for.
        return Next::End;
    }
    Next::Go(RolloutState::Baking)
}

pub(super) fn baking(view: &View<'_>, draft: &mut Draft) -> Next {
    let champion = revision(draft.status.champion.as_ref()).unwrap_or_default();
    if let Ok(report) = report::of(view, champion) {
        report::show(view, draft, &report);
    }
    let window = view.spec.rollout.rollback_window_seconds;
    let rollout = draft.status.rollout.clone().unwrap_or_default();
    if !view.clocks.step_passed(&rollout, i64::from(window)) {
        return Next::Wait(Because::new(Reason::Baking, told(RolloutState::Baking)));
    }
    if let Some(next) = unready(view, draft) {
        return next;
    }
    if view.replicas_of(draft.status.previous.as_ref()).any_up() {
        Next::Go(RolloutState::Draining)
    } else {
        Next::End
    }
}

/// The watch does not end well while no replica of the new champion is ready: what answers is not stopped for it. One that
/// starts, as after a suspension, has the time of a start.
fn unready(view: &View<'_>, draft: &Draft) -> Option<Next> {
    draft.status.previous.as_ref()?;
    let replicas = view.replicas_of(draft.status.champion.as_ref());
    let unasked = view.is_young() && replicas.iter().any(Replica::is_unasked);
    if replicas.ready() > 0 && !unasked {
        return None;
    }
    let starts = replicas.iter().all(|replica| {
        !replica.runs()
            || replica.is_unasked()
            || matches!(
                replica.probe.map(|probe| &probe.readiness),
                Some(Readiness::NotReady { reason, .. }) if reason == "Starting"
            )
    });
    let rollout = draft.status.rollout.clone().unwrap_or_default();
    let spec = &view.spec.rollout;
    let most = i64::from(spec.rollback_window_seconds) + i64::from(spec.progress_deadline_seconds);
    if unasked || (starts && !view.clocks.step_passed(&rollout, most)) {
        return Some(Next::Wait(Because::new(
            Reason::Baking,
            told(RolloutState::Baking),
        )));
    }
    let said = replicas.iter().find_map(available::not_ready);
    let said = said.unwrap_or_else(|| "none of its replicas runs".to_owned());
    Some(Next::Fail(Because::new(
        Reason::ProbeTimedOut,
        format!("it was promoted and does not answer: {said}. Look at its logs"),
    )))
}

pub(super) fn draining(view: &View<'_>, draft: &mut Draft) -> Next {
    let Some(previous) = draft.status.previous.clone() else {
        return Next::End;
    };
    let replicas = view.replicas_of(Some(&previous));
    if !replicas.any_up() {
        let old = previous.revision.unwrap_or_default();
        draft.tell(
            EventReason::Drained,
            format!("revision {old} has stopped and is kept to go back to"),
        );
        return Next::End;
    }
    let because = Because::new(Reason::Baking, told(RolloutState::Draining));
    if !has_drained(view, draft, &previous) {
        return Next::Wait(because);
    }
    match sweep::stop(view, &previous, &replicas) {
        Some(actions) => Next::Do(actions, because),
        None => Next::Wait(because),
    }
}

/// The old one has no requests, or had long enough for them.
fn has_drained(view: &View<'_>, draft: &Draft, previous: &Version) -> bool {
    let rollout = draft.status.rollout.clone().unwrap_or_default();
    let over = view
        .clocks
        .step_passed(&rollout, i64::from(view.drain_seconds()));
    let revision = previous.revision.as_deref().unwrap_or_default();
    let idle = report::is_current(view, draft)
        && report::of(view, revision).is_ok_and(|report| report.in_flight == 0);
    over || idle
}

/// The rollout is over and the champion stays.
pub(super) fn end(view: &View<'_>, draft: &mut Draft) {
    let from_to = history::from_to(draft);
    let reason = forced(view, draft);
    draft.status.candidate = None;
    history::end(view, draft, from_to, Outcome::Promoted, reason);
}

/// What the record says of a champion that stays, and was not watched to the end: it was promoted, and nobody knows whether
/// it would have held.
pub(super) fn cut_short(view: &View<'_>, draft: &Draft) -> String {
    const CUT: &str = "the wish changed before its bake was over";
    match forced(view, draft) {
        Some(forced) => format!("{CUT}. {forced}"),
        None => CUT.to_owned(),
    }
}

/// Who let the champion through although its gate did not, and why; nothing where nobody had to.
fn forced(view: &View<'_>, draft: &Draft) -> Option<String> {
    let champion = draft.status.champion.as_ref()?;
    path::is_forced(view, champion).then(|| forced_by(view))
}

fn forced_by(view: &View<'_>) -> String {
    let force = view.spec.rollout.force.as_ref();
    let by = force.and_then(|force| force.by.as_deref());
    let reason = force.map_or("", |force| force.reason.as_str());
    match by {
        Some(by) => format!("Forced by {by}: {reason}"),
        None => format!("Forced: {reason}"),
    }
}
