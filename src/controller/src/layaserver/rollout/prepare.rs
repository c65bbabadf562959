//! Preparing: the model is ready, its inputs are stored, the image is here, and there is room for two.

use api::kinds::laya_server::{Strategy, Version, WhenNoRoom};
use api::reason::Reason;
use backend::default_memory_bytes;

use super::super::action::Action;
use super::super::image::{self, Need};
use super::super::revision::{self, Stored};
use super::super::sweep;
use super::super::view::{Because, Draft, View};
use super::super::wish::Wished;
use super::path::{self, How};
use super::{Next, begin};

pub(super) fn next(
    view: &View<'_>,
    draft: &mut Draft,
    wished: &Wished<'_>,
    candidate: &Version,
) -> Next {
    if wished.view.is_none_or(|model| !model.ready) {
        return Next::Wait(begin::no_checkpoint(wished));
    }
    if let Some(store) = store(view, candidate) {
        return Next::Do(
            vec![store],
            Because::new(Reason::Preparing, "what makes the revision is stored"),
        );
    }
    if let Some(next) = image(view, draft, candidate) {
        return next;
    }
    // The id may have been found just now.
    let candidate = draft.status.candidate.clone().unwrap_or_default();
    room(view, draft, &candidate)
}

/// What makes the candidate is stored before it runs.
fn store(view: &View<'_>, candidate: &Version) -> Option<Action> {
    match revision::inputs(view, candidate)? {
        (_, Stored::Yes) => None,
        (inputs, Stored::NotYet) => Some(Action::StoreRevision {
            revision: inputs.revision(),
            inputs: Box::new(inputs),
        }),
    }
}

/// What is left to do about the image; `None` when it is here.
fn image(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Option<Next> {
    match image::need(view, candidate) {
        Need::Nothing => None,
        Need::Here(id) => {
            if let Some(candidate) = &mut draft.status.candidate {
                candidate.image_id = Some(id);
            }
            None
        }
        Need::Do(action, because) => Some(Next::Do(vec![action], because)),
        Need::Wait(because) if because.reason == Reason::ImagePlatformMismatch => {
            Some(Next::Fail(because))
        }
        Need::Wait(because) => Some(Next::Wait(because)),
    }
}

fn room(view: &View<'_>, draft: &Draft, candidate: &Version) -> Next {
    let old = view.replicas_of(draft.status.champion.as_ref());
    let none_beside = !old.any_up();
    if none_beside && !sweep::is_due(view, draft) {
        return path::from_preparing(view, draft, candidate, How::Beside);
    }
    if sweep::is_due(view, draft) {
        return Next::Wait(Because::new(
            Reason::Preparing,
            "versions that nothing needs are being removed",
        ));
    }
    if view.cut.strategy == Strategy::Replace {
        return path::from_preparing(view, draft, candidate, How::InGap);
    }
    if fits_beside(view, draft, candidate) {
        return path::from_preparing(view, draft, candidate, How::Beside);
    }
    let gap = match view.spec.rollout.when_no_room {
        WhenNoRoom::Auto => !view.checked.capabilities.pods,
        WhenNoRoom::Gap => true,
        WhenNoRoom::Wait => false,
    };
    if gap {
        return path::from_preparing(view, draft, candidate, How::InGap);
    }
    Next::Wait(no_room(view, draft, candidate))
}

fn no_room(view: &View<'_>, draft: &Draft, candidate: &Version) -> Because {
    let need = need(view, candidate) >> 20;
    let message = format!(
        "old and new do not fit side by side: the new one needs {need} MiB. Make room, or set spec.rollout.whenNoRoom: Gap"
    );
    let deadline = i64::from(view.spec.rollout.progress_deadline_seconds);
    let late = draft
        .status
        .rollout
        .as_ref()
        .is_some_and(|rollout| view.clocks.step_passed(rollout, deadline));
    let reason = if late {
        Reason::NoRoomForTwo
    } else {
        Reason::Preparing
    };
    Because::new(reason, message)
}

/// Bytes that the replicas to start need: all that there will be beside the old ones, though a canary starts with one.
fn need(view: &View<'_>, candidate: &Version) -> u64 {
    let alive = view.replicas_of(Some(candidate)).alive().count();
    let all = usize::try_from(view.cut.replicas).unwrap_or(0);
    let missing = all.saturating_sub(alive);
    let each = view
        .server(candidate)
        .map_or(0, |server| server.memory_bytes());
    each.saturating_mul(u64::try_from(missing).unwrap_or(u64::MAX))
}

/// Whether the candidate fits beside what runs, in memory and on the GPU.
pub(super) fn fits_beside(view: &View<'_>, draft: &Draft, candidate: &Version) -> bool {
    let need = need(view, candidate);
    (need == 0 || view.fits(need)) && gpu_holds_both(view, draft, candidate)
}

/// A GPU holds both when twice the need fits its memory (control-plane 10). Where nobody measured it, trying tells.
pub(in super::super) fn gpu_holds_both(
    view: &View<'_>,
    draft: &Draft,
    candidate: &Version,
) -> bool {
    let Some(server) = view.server(candidate).filter(|server| server.wants_gpu) else {
        return true;
    };
    let memory = view.observed.and_then(|seen| seen.gpu_memory_bytes);
    let Some(memory) = memory.filter(|bytes| *bytes > 0) else {
        return true;
    };
    let old = draft.status.champion.as_ref();
    let old = old.and_then(|champion| view.server(champion));
    let old = old.map_or(0, |old| old.checkpoint_bytes);
    let need = default_memory_bytes(server.checkpoint_bytes.max(old));
    need.saturating_mul(2) <= memory
}
