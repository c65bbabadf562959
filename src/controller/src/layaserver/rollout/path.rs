//! Which states a rollout goes through, by its kind and strategy. States that would have nothing to hold are left out.

use api::kinds::laya_server::{Approval, RolloutKind, RolloutState, Strategy, Version};

use super::super::facts::{Facts, wording};
use super::super::traffic;
use super::super::view::{Draft, View};
use super::{Next, steps};
use crate::layaserver::observation::GateView;

/// What follows once this state holds no longer.
pub(super) fn after(view: &View<'_>, draft: &Draft, candidate: &Version, at: RolloutState) -> Next {
    let start = match at {
        RolloutState::Shadowing => 1,
        RolloutState::Gating => 2,
        RolloutState::AwaitingApproval => 3,
        _ => 0,
    };
    let judged = [
        (RolloutState::Shadowing, shadows(view, draft)),
        (RolloutState::Gating, is_gated(view, draft, candidate)),
        (
            RolloutState::AwaitingApproval,
            needs_approval(view, draft, candidate),
        ),
    ];
    // In a gap everything that can hold a candidate up came before it.
    let left = if traffic::in_gap(draft) { 3 } else { start };
    let next = judged.iter().skip(left).find(|(_, applies)| *applies);
    match next {
        Some((state, _)) => Next::Go(*state),
        None if candidate.probe.is_none() => to_start(view, draft, candidate),
        None if shifts(view, draft) => Next::Go(RolloutState::Shifting),
        None => steps::when_ready(view, draft, candidate, Next::Promote),
    }
}

/// From Preparing on: beside the old one, or judged first where the old one must stop for it.
pub(super) fn from_preparing(
    view: &View<'_>,
    draft: &Draft,
    candidate: &Version,
    how: How,
) -> Next {
    match how {
        How::Beside => Next::Go(RolloutState::Starting),
        How::InGap => match judged_first(view, draft, candidate) {
            Some(state) => Next::Go(state),
            None => Next::OpenGap,
        },
    }
}

fn judged_first(view: &View<'_>, draft: &Draft, candidate: &Version) -> Option<RolloutState> {
    if is_gated(view, draft, candidate) {
        return Some(RolloutState::Gating);
    }
    needs_approval(view, draft, candidate).then_some(RolloutState::AwaitingApproval)
}

/// How a candidate starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Beside,
    InGap,
}

/// It was judged before it ran: now it starts, in a gap where one is needed still.
fn to_start(view: &View<'_>, draft: &Draft, candidate: &Version) -> Next {
    let beside = view.cut.strategy != Strategy::Replace
        && super::prepare::fits_beside(view, draft, candidate);
    let old_serves = view.replicas_of(draft.status.champion.as_ref()).any_up();
    if beside || !old_serves {
        Next::Go(RolloutState::Starting)
    } else {
        Next::OpenGap
    }
}

fn kind(draft: &Draft) -> RolloutKind {
    let rollout = draft.status.rollout.as_ref();
    rollout.and_then(|rollout| rollout.kind).unwrap_or_default()
}

fn shadows(view: &View<'_>, draft: &Draft) -> bool {
    let asked = match view.cut.strategy {
        Strategy::Shadow => true,
        Strategy::Canary => view.spec.rollout.shadow.is_some(),
        Strategy::BlueGreen | Strategy::Replace => false,
    };
    asked && kind(draft) == RolloutKind::Model && draft.status.champion.is_some()
}

/// Whether a gate has a say: not in going back, not for the same checkpoint, not where a person said so.
pub(super) fn is_gated(view: &View<'_>, draft: &Draft, candidate: &Version) -> bool {
    matches!(kind(draft), RolloutKind::Model | RolloutKind::First)
        && view.checked.gate != GateView::None
        && !is_forced(view, candidate)
}

/// Whether a person lets this candidate serve although its gate did not pass.
pub(super) fn is_forced(view: &View<'_>, candidate: &Version) -> bool {
    let force = view.spec.rollout.force.as_ref();
    force.is_some_and(|force| candidate.digest.as_ref() == Some(&force.digest.0))
}

/// Whether a person must say yes, and has not.
pub(super) fn needs_approval(view: &View<'_>, draft: &Draft, candidate: &Version) -> bool {
    let asked = view.spec.rollout.approval == Approval::Manual || other_wording(draft, candidate);
    let judged = matches!(kind(draft), RolloutKind::Model | RolloutKind::First);
    let approved = view.spec.rollout.approve.as_ref();
    let approved = approved.is_some_and(|digest| candidate.digest.as_ref() == Some(&digest.0));
    judged && asked && !approved
}

/// Whether the candidate asks its questions in other words than the champion.
pub(super) fn other_wording(draft: &Draft, candidate: &Version) -> bool {
    let of = |version: &Version| wording(version.contract.as_deref());
    let champion = draft.status.champion.as_ref();
    champion.is_some_and(|champion| of(champion) != of(candidate))
}

/// Whether traffic moves in steps.
fn shifts(view: &View<'_>, draft: &Draft) -> bool {
    view.cut.strategy == Strategy::Canary
        && matches!(kind(draft), RolloutKind::Model | RolloutKind::Runtime)
        && draft.status.champion.is_some()
        && !traffic::in_gap(draft)
        && draft.status.works_at() != Some(RolloutState::Shifting)
}
