//! Rollouts (control-plane 10): one file a state or two. A state looks at the world and says what is next ([`Next`]); here
//! that becomes facts, actions and events.

mod back;
mod bake;
mod begin;
mod gate;
mod hold;
mod path;
mod prepare;
mod probe;
mod report;
mod safety;
mod shadow;
mod start;
pub(super) mod steps;

use api::event::EventReason;
use api::kinds::laya_server::{RolloutState, Version};
use api::reason::Reason;

use super::action::Action;
use super::facts::Facts;
use super::traffic;
use super::view::{Because, Draft, View};
use super::wish::Wished;

pub(super) use begin::begin;
pub(super) use prepare::gpu_holds_both;

/// What a state says is next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// It stays, and this is what it waits for.
    Wait(Because),
    /// It does something about what it waits for.
    Do(Vec<Action>, Because),
    /// It goes on to this state.
    Go(RolloutState),
    /// Rules answer from now on and the old one stops: there is no room for two, or Replace is the strategy.
    OpenGap,
    /// The candidate gets the share of this step.
    Step(i32),
    /// It stands still until its cause is gone.
    Pause(Because),
    /// The candidate is taken back.
    Fail(Because),
    /// The candidate is champion.
    Promote,
    /// The rollout is over.
    End,
}

/// Whether a row of the table had something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Something,
    Nothing,
}

/// What comes before anything else: a failure, a wish that changed, a pause that begins or ends. Changes facts only.
pub(super) fn settle(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    if draft.status.state().is_none() {
        return Ran::Nothing;
    }
    if begin::drop_unwished(view, draft, wished) == Ran::Something {
        return Ran::Something;
    }
    if let Some((because, by)) = safety::failure(view, draft) {
        return back::fail(view, draft, &because, by);
    }
    hold::settle(view, draft)
}

/// A suspended server's rollout stands still.
pub(super) fn hold(view: &View<'_>, draft: &mut Draft) {
    if draft.status.state().is_some() {
        hold::settle(view, draft);
    }
    if draft.status.state() == Some(RolloutState::Paused) {
        draft.waits = Some(hold::told(view, draft));
    }
}

/// Goes on with the rollout that runs.
pub(super) fn advance(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    let Some(state) = draft.status.state() else {
        return Ran::Nothing;
    };
    let next = next(view, draft, wished, state);
    follow(view, draft, next)
}

fn next(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>, state: RolloutState) -> Next {
    match state {
        RolloutState::Paused => Next::Wait(hold::told(view, draft)),
        RolloutState::RollingBack => back::next(view, draft),
        RolloutState::Promoted => bake::promoted(view, draft),
        RolloutState::Baking => bake::baking(view, draft),
        RolloutState::Draining => bake::draining(view, draft),
        _ => match draft.status.candidate.clone() {
            Some(candidate) => with_candidate(view, draft, wished, state, &candidate),
            // A status that somebody wrote by hand: nothing is on its way.
            None => Next::End,
        },
    }
}

fn with_candidate(
    view: &View<'_>,
    draft: &mut Draft,
    wished: &Wished<'_>,
    state: RolloutState,
    candidate: &Version,
) -> Next {
    match state {
        RolloutState::Preparing => prepare::next(view, draft, wished, candidate),
        RolloutState::Starting => start::starting(view, draft, candidate),
        RolloutState::Loading => start::loading(view, draft, candidate),
        RolloutState::Probing => probe::next(view, draft, candidate),
        RolloutState::Shadowing => shadow::next(view, draft, candidate),
        RolloutState::Gating => gate::gating(view, draft, candidate),
        RolloutState::AwaitingApproval => gate::approval(view, draft, candidate),
        _ => steps::next(view, draft, candidate),
    }
}

fn follow(view: &View<'_>, draft: &mut Draft, next: Next) -> Ran {
    match next {
        Next::Wait(because) => {
            draft.waits = Some(because);
            Ran::Nothing
        }
        Next::Do(actions, because) => {
            draft.actions.extend(actions);
            draft.waits = Some(because);
            Ran::Something
        }
        Next::Go(state) => {
            enter(view, draft, state);
            Ran::Something
        }
        Next::OpenGap => {
            enter(view, draft, RolloutState::Starting);
            traffic::open_gap(draft);
            draft.tell(
                EventReason::GapStarted,
                "rules answer while the old version stops and the new one starts",
            );
            Ran::Something
        }
        Next::Step(step) => {
            steps::take(view, draft, step);
            Ran::Something
        }
        Next::Pause(because) => {
            hold::pause(view, draft);
            draft.waits = Some(because);
            Ran::Something
        }
        Next::Fail(because) => back::fail(view, draft, &because, back::By::Itself),
        Next::Promote => {
            bake::promote(view, draft);
            Ran::Something
        }
        Next::End => {
            bake::end(view, draft);
            Ran::Something
        }
    }
}

/// Goes to a state, whose clock begins, and says what is done there; the next pass does it.
fn enter(view: &View<'_>, draft: &mut Draft, state: RolloutState) {
    draft.go(view, state);
    if state == RolloutState::Shifting {
        draft.rollout().step = Some(0);
        draft.rollout().checks = None;
    }
    draft.waits = Some(Because::new(word(state), told(state)));
}

/// A state as a reason of `RolledOut`.
pub(super) const fn word(state: RolloutState) -> Reason {
    match state {
        RolloutState::Preparing => Reason::Preparing,
        RolloutState::Starting => Reason::Starting,
        RolloutState::Loading => Reason::Loading,
        RolloutState::Probing => Reason::Probing,
        RolloutState::Shadowing => Reason::Shadowing,
        RolloutState::Gating => Reason::Gating,
        RolloutState::AwaitingApproval => Reason::AwaitingApproval,
        RolloutState::Shifting => Reason::Shifting,
        RolloutState::RollingBack => Reason::RollingBack,
        RolloutState::Paused => Reason::Paused,
        RolloutState::Promoted
        | RolloutState::Baking
        | RolloutState::Draining
        | RolloutState::Done
        | RolloutState::Unknown => Reason::Baking,
    }
}

/// What is done in a state, for people.
pub(super) const fn told(state: RolloutState) -> &'static str {
    match state {
        RolloutState::Preparing => "model, image and room are looked at",
        RolloutState::Starting => "replicas of the candidate start",
        RolloutState::Loading => "the candidate loads its model",
        RolloutState::Probing => "the candidate is asked probe questions",
        RolloutState::Shadowing => "the candidate answers copies of requests",
        RolloutState::Gating => "the candidate is judged",
        RolloutState::AwaitingApproval => "a person must let the candidate through",
        RolloutState::Shifting => "the candidate gets traffic",
        RolloutState::Promoted => "the candidate is champion",
        RolloutState::Baking => "the new champion is watched while the old one runs on",
        RolloutState::Draining => "the old version finishes its requests and stops",
        RolloutState::RollingBack => "traffic goes back to the last good version",
        RolloutState::Paused => "the rollout stands still",
        RolloutState::Done | RolloutState::Unknown => "the rollout is over",
    }
}
