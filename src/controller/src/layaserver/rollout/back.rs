//! The way back: a candidate without traffic is rejected; from one with traffic it goes back to the last good version.

use api::event::EventReason;
use api::kinds::laya_server::{RolloutState, Version};
use api::reason::Reason;

use super::super::facts::{Facts, revision};
use super::super::history::{self, Outcome};
use super::super::kept_log;
use super::super::replicas::Replica;
use super::super::restarts;
use super::super::traffic;
use super::super::view::{Because, Draft, View};
use super::{Next, Ran, hold, told};

/// Who takes a rollout back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum By {
    /// Nobody: it failed.
    Itself,
    /// A person.
    Hand,
}

/// The rollout failed: it goes back, or stands still where that is asked for.
pub(super) fn fail(view: &View<'_>, draft: &mut Draft, because: &Because, by: By) -> Ran {
    if by == By::Itself && !view.spec.rollout.auto_rollback {
        freeze(view, draft, because);
        return Ran::Something;
    }
    attempt(view, draft, because);
    Ran::Something
}

/// Stands still with the traffic as it is; the rejection says that it failed, and why.
fn freeze(view: &View<'_>, draft: &mut Draft, because: &Because) {
    let failed = draft.status.rolled().map(str::to_owned);
    let digest = rolled_digest(draft);
    history::reject(
        view,
        draft,
        (failed, digest),
        because.reason,
        &because.message,
    );
    if draft.status.state() != Some(RolloutState::Paused) {
        hold::pause(view, draft);
    }
    draft.tell(
        EventReason::Rejected,
        format!(
            "{}; spec.rollout.autoRollback is false, so nothing is taken back",
            because.message
        ),
    );
    draft.waits = Some(hold::told(view, draft));
}

fn rolled_digest(draft: &Draft) -> Option<String> {
    let version = draft
        .status
        .candidate
        .as_ref()
        .or(draft.status.champion.as_ref());
    version.and_then(|version| version.digest.clone())
}

/// Takes back what the rollout is about.
pub(in super::super) fn attempt(view: &View<'_>, draft: &mut Draft, because: &Because) {
    match draft.status.candidate.clone() {
        Some(candidate) => reject_candidate(view, draft, &candidate, because),
        None => go_back(view, draft, because),
    }
}

fn reject_candidate(view: &View<'_>, draft: &mut Draft, candidate: &Version, because: &Because) {
    let shifted = draft.status.works_at() == Some(RolloutState::Shifting)
        && draft
            .status
            .rollout
            .as_ref()
            .and_then(|rollout| rollout.step)
            > Some(0);
    let way_back = shifted || traffic::in_gap(draft);
    let from_to = history::from_to(draft);
    let replicas = view.replicas_of(Some(candidate));
    let taken_back = (candidate.revision.clone(), candidate.digest.clone());
    history::reject(view, draft, taken_back, because.reason, &because.message);
    draft.status.candidate = None;
    let new = candidate.revision.clone().unwrap_or_default();
    let why = format!(
        "revision {new} was taken back: {}: {}",
        because.reason.as_str(),
        because.message,
    );
    let note = kept_log::note(view, &replicas, &new, &why);
    if way_back {
        draft.go(view, RolloutState::RollingBack);
        draft.tell(EventReason::RolledBack, note);
        draft.waits = Some(Because::new(
            Reason::RollingBack,
            told(RolloutState::RollingBack),
        ));
    } else {
        let reason = Some(because.reason.as_str().to_owned());
        history::end(view, draft, from_to, Outcome::Rejected, reason);
        // Before the event and before anything is deleted. One that had traffic loses that first; row Sweeping stores its log.
        draft.actions.extend(kept_log::store(view, &new));
        draft.tell(EventReason::Rejected, note);
    }
}

/// After Promoted: what served before serves again, and there is nothing left to go back to.
fn go_back(view: &View<'_>, draft: &mut Draft, because: &Because) {
    let (Some(champion), Some(previous)) =
        (draft.status.champion.clone(), draft.status.previous.take())
    else {
        return;
    };
    let replicas = view.replicas_of(Some(&champion));
    let taken_back = (champion.revision.clone(), champion.digest.clone());
    history::reject(view, draft, taken_back, because.reason, &because.message);
    let old = previous.revision.clone().unwrap_or_default();
    let new = champion.revision.unwrap_or_default();
    draft.status.champion = Some(Version {
        since: Some(view.now()),
        ..previous
    });
    draft.status.restarts = None;
    draft.go(view, RolloutState::RollingBack);
    let why = format!(
        "traffic goes back from revision {new} to {old}: {}: {}",
        because.reason.as_str(),
        because.message,
    );
    let note = kept_log::note(view, &replicas, &new, &why);
    draft.tell(EventReason::RolledBack, note);
    draft.waits = Some(Because::new(
        Reason::RollingBack,
        told(RolloutState::RollingBack),
    ));
}

/// RollingBack holds until the last good version has all traffic.
pub(super) fn next(view: &View<'_>, draft: &mut Draft) -> Next {
    let to = draft.status.rejected.first().cloned().unwrap_or_default();
    let from = revision(draft.status.champion.as_ref()).map(str::to_owned);
    let from_to = (from.clone(), to.revision);
    if traffic::serves_champion(draft) {
        if view.checked.capabilities.pods
            && let Some(revision) = from
        {
            let point = backend::Action::PointService { revision };
            draft.actions.push(view.on(point));
        }
        history::end(view, draft, from_to, Outcome::RolledBack, to.reason);
        return Next::Wait(Because::new(
            Reason::RollingBack,
            "the last good version has all traffic",
        ));
    }
    if champion_gave_up(view, draft) {
        draft.tell(
            EventReason::RollbackFailed,
            "the version to go back to does not answer either; rules answer. Look at the logs of both",
        );
        history::end(view, draft, from_to, Outcome::RollbackFailed, to.reason);
        return Next::Wait(Because::new(
            Reason::RollbackFailed,
            "the version to go back to does not answer either",
        ));
    }
    Next::Wait(Because::new(
        Reason::RollingBack,
        told(RolloutState::RollingBack),
    ))
}

/// What is gone back to ends again and again, or was not ready in time.
pub(in super::super) fn champion_gave_up(view: &View<'_>, draft: &Draft) -> bool {
    let deadline = i64::from(view.spec.rollout.progress_deadline_seconds);
    let rollout = draft.status.rollout.as_ref();
    let late = rollout.is_some_and(|rollout| view.clocks.step_passed(rollout, deadline));
    let replicas = view.replicas_of(draft.status.champion.as_ref());
    let open = view.is_young() && replicas.iter().any(Replica::is_unasked);
    (late && !open) || restarts::is_loop(view, draft)
}
