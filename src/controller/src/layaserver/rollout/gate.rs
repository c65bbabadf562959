//! Gating and AwaitingApproval. Too little data is never a pass, and an error is no failure.

use api::event::EventReason;
use api::kinds::laya_server::{GateSeen, OnInconclusive, RolloutState, Version};
use api::reason::Reason;

use super::super::advice;
use super::super::view::{Because, Draft, View};
use super::{Next, path};
use crate::layaserver::observation::{GateVerdict, GateView};

pub(super) fn gating(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    if !path::is_gated(view, draft, candidate) {
        return path::after(view, draft, candidate, RolloutState::Gating);
    }
    let waits = |message: String| Next::Wait(Because::new(Reason::Gating, message));
    let (name, evaluation, verdict, message) = match &view.checked.gate {
        GateView::None => return path::after(view, draft, candidate, RolloutState::Gating),
        GateView::NotFound { name } => {
            return waits(format!(
                "EvaluationGate {name} is not there. Create it, or remove spec.rollout.gateRef"
            ));
        }
        GateView::NotJudged { name } => {
            return waits(format!("EvaluationGate {name} has not judged yet"));
        }
        GateView::Judged {
            name,
            digest,
            evaluation,
            verdict,
            message,
        } => {
            if candidate.digest.as_ref() != Some(digest) {
                return waits(format!("EvaluationGate {name} has not judged yet"));
            }
            (name, evaluation, *verdict, message)
        }
    };
    let word = verdict_word(verdict);
    let seen = Some(GateSeen {
        evaluation: Some(evaluation.clone()),
        verdict: Some(word.to_owned()),
    });
    let told = format!("EvaluationGate {name}: {message}");
    if draft.rollout().gate != seen && verdict == GateVerdict::Passed {
        // Once: it may wait here until it is ready again.
        draft.tell(EventReason::GatePassed, told.clone());
    }
    draft.rollout().gate = seen;
    judged(view, draft, candidate, (name.as_str(), told), verdict)
}

fn judged(
    view: &View<'_>,
    draft: &mut Draft,
    candidate: &Version,
    (name, told): (&str, String),
    verdict: GateVerdict,
) -> Next {
    match verdict {
        GateVerdict::Passed => path::after(view, draft, candidate, RolloutState::Gating),
        GateVerdict::Failed => {
            draft.tell(EventReason::GateFailed, told.clone());
            Next::Fail(Because::new(
                Reason::GateFailed,
                format!(
                    "{told}. Look at the checks with {}",
                    advice::in_namespace(view.object, &format!("gate show {name}"))
                ),
            ))
        }
        GateVerdict::Inconclusive => {
            draft.tell(EventReason::GateInconclusive, told.clone());
            let force = force(view, candidate);
            let told = format!("{told}. Add held-out rows, or force it with {force}");
            match view.spec.rollout.on_inconclusive {
                OnInconclusive::Abort => Next::Fail(Because::new(Reason::GateInconclusive, told)),
                OnInconclusive::Pause => Next::Pause(Because::new(Reason::Paused, told)),
            }
        }
        GateVerdict::Error => {
            draft.tell(EventReason::GateError, told.clone());
            Next::Pause(Because::new(
                Reason::Paused,
                format!("{told}. It goes on once the gate has a verdict"),
            ))
        }
    }
}

/// What lets the candidate through all the same.
fn force(view: &View<'_>, candidate: &Version) -> String {
    advice::force(view.object, candidate.model.as_deref().unwrap_or("MODEL"))
}

pub(super) const fn verdict_word(verdict: GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Passed => "Passed",
        GateVerdict::Failed => "Failed",
        GateVerdict::Inconclusive => "Inconclusive",
        GateVerdict::Error => "Error",
    }
}

/// Whether the gate still says what the rollout stands still for.
pub(super) fn holds_up(view: &View<'_>, draft: &Draft, candidate: &Version) -> Option<String> {
    if !path::is_gated(view, draft, candidate) {
        return None;
    }
    let GateView::Judged {
        name,
        digest,
        verdict,
        message,
        ..
    } = &view.checked.gate
    else {
        return None;
    };
    let pauses = match verdict {
        GateVerdict::Inconclusive => view.spec.rollout.on_inconclusive == OnInconclusive::Pause,
        GateVerdict::Error => true,
        GateVerdict::Passed | GateVerdict::Failed => false,
    };
    (pauses && candidate.digest.as_ref() == Some(digest)).then(|| {
        format!(
            "EvaluationGate {name} says {}: {message}. It goes on with a verdict, or with {}",
            verdict_word(*verdict),
            force(view, candidate)
        )
    })
}

pub(super) fn approval(view: &View<'_>, draft: &Draft, candidate: &Version) -> Next {
    if !path::needs_approval(view, draft, candidate) {
        return path::after(view, draft, candidate, RolloutState::AwaitingApproval);
    }
    let digest = candidate.digest.as_deref().unwrap_or_default();
    let why = if path::other_wording(draft, candidate) {
        "its questions are worded differently from the champion's"
    } else {
        "spec.rollout.approval is Manual"
    };
    let approve = advice::command(view.object, "rollout approve");
    Next::Wait(Because::new(
        Reason::AwaitingApproval,
        format!("a person must let {digest} through: {why}. Run {approve}"),
    ))
}
