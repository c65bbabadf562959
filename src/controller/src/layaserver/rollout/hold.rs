//! Paused: by a person, by the controller until its cause is gone, or after a failure that may not go back by itself.

use api::kinds::laya_server::RolloutState;
use api::reason::Reason;

use super::super::advice;
use super::super::facts::Facts;
use super::super::traffic;
use super::super::view::{Because, Draft, View};
use super::{Ran, gate, report};

/// Stands still where it is; the clock of the step stops.
pub(super) fn pause(view: &View<'_>, draft: &mut Draft) {
    let clocks = view.clocks;
    let rollout = draft.rollout();
    let stopped = rollout.state == Some(RolloutState::Shifting) && rollout.checks.is_none();
    rollout.paused_from = rollout.state;
    rollout.state = Some(RolloutState::Paused);
    if stopped {
        // The clock stood still already, for want of a report.
        clocks.thaw(rollout);
    } else {
        clocks.freeze(rollout);
    }
}

/// A pause by hand begins; or one ends, because its cause is gone.
pub(super) fn settle(view: &View<'_>, draft: &mut Draft) -> Ran {
    match draft.status.state() {
        Some(RolloutState::Paused) => end(view, draft),
        Some(state) if is_held(view) && may_pause(state) => {
            pause(view, draft);
            draft.waits = Some(told(view, draft));
            Ran::Something
        }
        _ => Ran::Nothing,
    }
}

/// By hand, because nothing is to run at all, or because a server that is not ours serves instead.
pub(in super::super) fn is_held(view: &View<'_>) -> bool {
    view.spec.rollout.paused || traffic::is_suspended(view) || view.spec.external.is_some()
}

/// Safety and what is over as good as done are not held up.
const fn may_pause(state: RolloutState) -> bool {
    !matches!(
        state,
        RolloutState::RollingBack
            | RolloutState::Promoted
            | RolloutState::Draining
            | RolloutState::Paused
            | RolloutState::Done
            | RolloutState::Unknown
    )
}

fn end(view: &View<'_>, draft: &mut Draft) -> Ran {
    if draft.status.failed_in_place() || is_held(view) || cause(view, draft).is_some() {
        return Ran::Nothing;
    }
    let from = draft.status.works_at().unwrap_or(RolloutState::Preparing);
    if is_lost(view, draft, from) && !traffic::in_gap(draft) {
        // It was stopped meanwhile, and its room may be taken. What was found of it is found anew.
        if let Some(candidate) = &mut draft.status.candidate {
            candidate.probe = None;
        }
        draft.go(view, RolloutState::Preparing);
        let rollout = draft.rollout();
        rollout.step = None;
        rollout.checks = None;
    } else {
        let clocks = view.clocks;
        let rollout = draft.rollout();
        rollout.state = Some(from);
        rollout.paused_from = None;
        clocks.thaw(rollout);
    }
    let at = draft.status.state().unwrap_or(from);
    draft.waits = Some(Because::new(super::word(at), super::told(at)));
    Ran::Something
}

/// Whether the candidate ran when the rollout stopped, and does not now.
fn is_lost(view: &View<'_>, draft: &Draft, from: RolloutState) -> bool {
    let candidate = draft.status.candidate.as_ref();
    let ran = match from {
        RolloutState::Starting | RolloutState::Loading | RolloutState::Probing => true,
        RolloutState::Shadowing
        | RolloutState::Gating
        | RolloutState::AwaitingApproval
        | RolloutState::Shifting => candidate.is_some_and(|candidate| candidate.probe.is_some()),
        _ => false,
    };
    ran && view.replicas_of(candidate).alive().next().is_none()
}

/// What the controller stands still for, while it is there.
fn cause(view: &View<'_>, draft: &Draft) -> Option<String> {
    let candidate = draft.status.candidate.as_ref()?;
    let rollout = draft.status.rollout.as_ref()?;
    let blind = || {
        let revision = candidate.revision.as_deref().unwrap_or_default();
        let why = match report::of(view, revision) {
            Err(why) => why,
            Ok(_) if !report::is_current(view, draft) => report::NOT_TAKEN.to_owned(),
            Ok(_) => return None,
        };
        Some(format!(
            "what the router measured is not known: {why}. It goes on when the router reports again"
        ))
    };
    match draft.status.works_at()? {
        RolloutState::Gating => gate::holds_up(view, draft, candidate),
        RolloutState::Shifting if rollout.checks.is_none() => blind(),
        RolloutState::Shadowing => {
            let shadow = view.spec.rollout.shadow.clone().unwrap_or_default();
            let over = rollout.paused_seconds.unwrap_or(0) >= i64::from(shadow.max_seconds);
            if over { blind() } else { None }
        }
        _ => None,
    }
}

/// Why it stands still, and what ends that.
pub(super) fn told(view: &View<'_>, draft: &Draft) -> Because {
    let at = draft.status.works_at().map_or("", |state| state.as_str());
    if draft.status.failed_in_place() {
        let rejection = draft
            .status
            .rolled()
            .and_then(|revision| draft.status.rejection(revision));
        let why = rejection.map_or("", |rejection| {
            rejection.message.as_deref().unwrap_or_default()
        });
        let abort = advice::command(view.object, "rollout abort");
        let retry = advice::command(view.object, "rollout retry");
        return Because::new(
            Reason::Paused,
            format!(
                "it failed at {at} and spec.rollout.autoRollback is false: {why}. Run {abort}, or {retry} to go on"
            ),
        );
    }
    if traffic::is_suspended(view) {
        return Because::new(
            Reason::Paused,
            format!("it stands still at {at} while the server is suspended. Remove spec.suspend"),
        );
    }
    if view.spec.external.is_some() {
        return Because::new(
            Reason::Paused,
            format!(
                "it stands still at {at} while the server of spec.external serves. Remove spec.external"
            ),
        );
    }
    if view.spec.rollout.paused {
        let resume = advice::command(view.object, "rollout resume");
        return Because::new(
            Reason::Paused,
            format!("a person holds it at {at}. Run {resume}"),
        );
    }
    let cause = cause(view, draft).unwrap_or_else(|| "it goes on with the next look".to_owned());
    Because::new(Reason::Paused, format!("it stands still at {at}: {cause}"))
}
