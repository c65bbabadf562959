//! Shifting: the steps of a canary. Each holds for its time and until enough requests were seen; the first pass with a
//! report starts its clock, and without one it stands still.

use api::event::EventReason;
use api::kinds::laya_server::{CanaryStep, RolloutState, Strategy, Version};
use api::reason::Reason;

use super::super::facts::Facts;
use super::super::view::{Because, Draft, View};
use super::{Next, report};

/// Seconds without a report after which a step gives up waiting.
pub(super) const BLIND_SECONDS: i64 = 300;

fn canary_steps<'a>(view: &View<'a>) -> &'a [CanaryStep] {
    let canary = view.spec.rollout.canary.as_ref();
    canary.map_or(&[], |canary| canary.steps.as_slice())
}

fn step(draft: &Draft) -> usize {
    let rollout = draft.status.rollout.as_ref();
    let step = rollout.and_then(|rollout| rollout.step).unwrap_or(0);
    usize::try_from(step).unwrap_or(0)
}

/// Percent of traffic that the candidate has in the step that was taken.
pub(in super::super) fn weight(view: &View<'_>, draft: &Draft) -> i32 {
    let step = step(draft);
    let steps = canary_steps(view);
    match step.checked_sub(1) {
        None => 0,
        // Steps that were removed from spec meanwhile do not take traffic away.
        Some(at) => steps.get(at).or(steps.last()).map_or(0, |step| step.weight),
    }
}

/// Replicas that the candidate should have now: all of them, but with a canary as many as the weight needs.
pub(in super::super) fn replicas(view: &View<'_>, draft: &Draft) -> usize {
    let all = usize::try_from(view.cut.replicas).unwrap_or(0);
    if view.cut.strategy != Strategy::Canary || draft.status.champion.is_none() {
        return all;
    }
    if draft.status.works_at() != Some(RolloutState::Shifting) {
        return all.min(1);
    }
    let taken = step(draft);
    let next = if is_held(view, draft) {
        taken
    } else {
        taken.max(1) - 1
    };
    let weight = match canary_steps(view).get(next) {
        Some(step) => step.weight,
        None => 100,
    };
    for_weight(all, weight)
}

/// Whether the step that was taken has held long enough.
fn is_held(view: &View<'_>, draft: &Draft) -> bool {
    let taken = step(draft);
    let Some(rollout) = &draft.status.rollout else {
        return false;
    };
    let Some(at) = taken.checked_sub(1) else {
        return true;
    };
    let hold = canary_steps(view)
        .get(at)
        .map_or(0, |step| step.hold_seconds);
    rollout.checks.is_some()
        && rollout.state == Some(RolloutState::Shifting)
        && view.clocks.step_passed(rollout, i64::from(hold))
}

/// ⌈weight × all / 100⌉, at least one.
fn for_weight(all: usize, weight: i32) -> usize {
    let weight = usize::try_from(weight).unwrap_or(0);
    (all * weight).div_ceil(100).clamp(1, all.max(1))
}

pub(super) fn next(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    let steps = canary_steps(view);
    let taken = step(draft);
    if view.cut.strategy != Strategy::Canary || steps.is_empty() {
        return when_ready(view, draft, candidate, Next::Promote);
    }
    if taken > 0
        && let Some(next) = holding(view, draft, candidate)
    {
        return next;
    }
    let next = if taken < steps.len() {
        Next::Step(i32::try_from(taken + 1).unwrap_or(i32::MAX))
    } else {
        Next::Promote
    };
    when_ready(view, draft, candidate, next)
}

/// What keeps the step that was taken; `None` when it has held.
fn holding(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Option<Next> {
    let revision = candidate.revision.clone().unwrap_or_default();
    let clocks = view.clocks;
    let report = match report::of(view, &revision) {
        Ok(report) => report,
        Err(why) => return Some(blind(view, draft, &why)),
    };
    if !report::is_current(view, draft) {
        return Some(blind(view, draft, report::NOT_TAKEN));
    }
    if draft.rollout().checks.is_none() {
        clocks.thaw(draft.rollout());
    }
    report::show(view, draft, &report);
    let limits = view.spec.rollout.canary.as_ref();
    let needed = limits.map_or(0, |canary| canary.limits.min_requests);
    let percent = weight(view, draft);
    if report.requests < u64::try_from(needed).unwrap_or(0) {
        return Some(Next::Wait(Because::new(
            Reason::Shifting,
            format!(
                "the candidate has {percent} % of the traffic; fewer than {needed} requests were seen"
            ),
        )));
    }
    (!is_held(view, draft)).then(|| {
        let message = format!("the candidate has {percent} % of the traffic");
        Next::Wait(Because::new(Reason::Shifting, message))
    })
}

/// Nothing is known of the step: its clock stops, and after a while the rollout stands still.
fn blind(view: &View<'_>, draft: &mut Draft, why: &str) -> Next {
    let clocks = view.clocks;
    let rollout = draft.rollout();
    let message = format!("what the router measured is not known: {why}");
    if rollout.checks.is_some() {
        clocks.freeze(rollout);
        rollout.checks = None;
        return Next::Wait(Because::new(Reason::Shifting, message));
    }
    let since = rollout.step_started_at;
    if since.is_some_and(|since| clocks.passed("step", since, BLIND_SECONDS)) {
        return Next::Pause(Because::new(
            Reason::Paused,
            format!("{message}. It goes on when the router reports again"),
        ));
    }
    Next::Wait(Because::new(Reason::Shifting, message))
}

/// Goes on once as many replicas of the candidate are ready, and have answered all questions, as the next step needs; row
/// Scaling starts them.
pub(super) fn when_ready(view: &View<'_>, draft: &Draft, candidate: &Version, next: Next) -> Next {
    let count = replicas(view, draft);
    let found = view.replicas_of(Some(candidate));
    let fit = found.iter().filter(|replica| {
        replica.is_ready()
            && replica
                .probe
                .is_some_and(|probe| probe.questions.passed_all)
    });
    let fit = fit.count();
    if fit >= count {
        return next;
    }
    let at = draft.status.works_at().unwrap_or(RolloutState::Shifting);
    let waits = Because::new(
        super::word(at),
        format!("{fit} of {count} replicas of the candidate are ready for the next step"),
    );
    Next::Wait(waits)
}

/// The candidate gets the share of a step.
pub(super) fn take(view: &View<'_>, draft: &mut Draft, step: i32) {
    let clocks = view.clocks;
    let rollout = draft.rollout();
    rollout.step = Some(step);
    rollout.checks = None;
    clocks.restart(rollout);
    let percent = weight(view, draft);
    let message = format!("the candidate has {percent} % of the traffic");
    draft.waits = Some(Because::new(Reason::Shifting, message.clone()));
    draft.tell(EventReason::StepTaken, format!("step {step}: {message}"));
}
