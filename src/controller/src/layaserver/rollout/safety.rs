//! What takes a candidate or a new champion back, in each state. Looked at before everything else, also while a rollout
//! stands still.

use api::kinds::laya_server::CanaryLimits;
use api::kinds::laya_server::{RolloutKind, RolloutState, Version};
use api::reason::Reason;
use backend::RunState;

use super::super::advice;
use super::super::available;
use super::super::facts::Facts;
use super::super::probed::{self, Found, Patience};
use super::super::replicas::{DAMAGED, Refusal, Replica, Replicas};
use super::super::restarts;
use super::super::traffic;
use super::super::view::{Because, Draft, View};
use super::back::By;
use super::report;
use crate::probe::Readiness;

/// Restarts of a candidate that are enough.
const MAX_RESTARTS: u32 = 3;

/// Why the rollout must not go on, if it must not, and who says so.
pub(super) fn failure(view: &View<'_>, draft: &Draft) -> Option<(Because, By)> {
    let state = draft.status.works_at()?;
    if let Some(because) = abort(view, draft, state) {
        return Some((because, By::Hand));
    }
    if draft.status.failed_in_place() {
        return None;
    }
    let because = match state {
        RolloutState::Preparing
        | RolloutState::Promoted
        | RolloutState::Draining
        | RolloutState::RollingBack => None,
        RolloutState::Baking => new_champion(view, draft),
        _ => candidate(view, draft, state),
    };
    because.map(|because| (because, By::Itself))
}

/// A person takes it back, at any state before Draining.
fn abort(view: &View<'_>, draft: &Draft, state: RolloutState) -> Option<Because> {
    let abort = view.spec.rollout.abort.as_deref()?;
    if draft.status.candidate.is_none() && draft.status.previous.is_none() {
        // The first version, once promoted: there is nothing to go back to.
        return None;
    }
    let late = matches!(state, RolloutState::Draining | RolloutState::RollingBack);
    (!late && draft.status.rolled() == Some(abort)).then(|| {
        let retry = advice::command(view.object, "rollout retry");
        Because::new(
            Reason::Aborted,
            format!("a person took it back with spec.rollout.abort. Run {retry} to try it again"),
        )
    })
}

fn candidate(view: &View<'_>, draft: &Draft, state: RolloutState) -> Option<Because> {
    let candidate = draft.status.candidate.as_ref()?;
    let replicas = view.replicas_of(Some(candidate));
    if let Some(because) = own_fault(view, draft, candidate, &replicas) {
        return Some(because);
    }
    if let Some(because) = refuses(&replicas) {
        return Some(because);
    }
    match state {
        RolloutState::Shadowing | RolloutState::Gating | RolloutState::AwaitingApproval => {
            answers(view, draft, candidate, &replicas)
        }
        RolloutState::Shifting => answers(view, draft, candidate, &replicas)
            .or_else(|| not_ready(draft, candidate, &replicas))
            .or_else(|| {
                // Only what was counted in this step, by a router that has taken it.
                let rollout = draft.status.rollout.as_ref()?;
                let counted = rollout.step > Some(0) && rollout.checks.is_some();
                counted.then(|| limits(view, draft, candidate))?
            }),
        _ => None,
    }
}

/// What only another version helps against: it ends by itself, or does not fit this machine.
fn own_fault(
    view: &View<'_>,
    draft: &Draft,
    candidate: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    replicas.iter().find_map(|replica| {
        let restarts = replica.seen.restarts;
        if ends_too_often(replica.seen.state, restarts, replica.seen.exit_code) {
            return Some(ended(view, replica, &format!("{restarts} times")));
        }
        if replica.is_down() && replica.crashed() && !is_left_over(draft, replica) {
            return Some(ended(view, replica, "and was not started again"));
        }
        let waiting = replica.seen.waiting.as_ref()?;
        let own = match waiting.reason {
            Reason::ImagePlatformMismatch | Reason::CrashLoop => true,
            Reason::GpuUnavailable => probed::requires_device(view, candidate),
            _ => false,
        };
        own.then(|| Because::new(waiting.reason, waiting.message.clone()))
    })
}

/// Whether a replica that the engine starts again by itself was started again often enough. Why one refused its checkpoint is
/// read from its log while it does not run, so one that is seen between two such ends has longer.
fn ends_too_often(state: RunState, restarts: u32, exit_code: Option<i32>) -> bool {
    let enough = match state {
        RunState::Running if exit_code == Some(DAMAGED) => 2 * MAX_RESTARTS,
        RunState::Running | RunState::Restarting => MAX_RESTARTS,
        _ => return false,
    };
    restarts >= enough
}

/// A replica says of itself that it must not serve: it never will, so nobody waits for its deadline.
fn refuses(replicas: &Replicas<'_>) -> Option<Because> {
    replicas.iter().filter(|it| it.runs()).find_map(|replica| {
        let Readiness::NotReady {
            reason,
            message,
            verdict: Some(verdict),
        } = &replica.probe?.readiness
        else {
            return None;
        };
        let advice = match verdict {
            Reason::ContractMismatch => "Serve a checkpoint of this contract",
            _ => "Serve another checkpoint, or publish this one again",
        };
        Some(Because::new(
            *verdict,
            format!("the server itself refuses to serve it: {reason}: {message}. {advice}"),
        ))
    })
}

/// What ended before this rollout began says nothing of it, and is started again: a candidate that was dropped for a newer
/// wish may be wished once more before it was removed.
pub(super) fn is_left_over(draft: &Draft, replica: &Replica<'_>) -> bool {
    let began = draft.status.rollout.as_ref().and_then(|it| it.started_at);
    let before = replica.seen.started_at < began && replica.seen.started_at.is_some();
    replica.is_down() && replica.crashed() && before
}

fn ended(view: &View<'_>, replica: &Replica<'_>, how: &str) -> Because {
    let reason = replica.crash_reason();
    let code = replica.seen.exit_code;
    let code = code.map_or_else(String::new, |code| format!(" with code {code}"));
    if let Some(Refusal { reason, said }) = replica.refusal() {
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        let advice = match reason {
            Reason::BadCheckpoint => {
                "Publish the checkpoint again, or serve another one".to_owned()
            }
            _ => {
                let retry = advice::command(view.object, "rollout retry");
                format!("Run {retry} once its model is repaired")
            }
        };
        let message =
            format!("a replica ended {how}{code}: it refuses its checkpoint{said}. {advice}");
        return Because::new(reason, message);
    }
    let advice = match reason {
        Reason::OutOfMemory => format!(
            "Its limit of {} MiB was too little: raise spec.resources.limits.memory",
            replica.seen.memory_bytes >> 20
        ),
        _ => "Look at its logs".to_owned(),
    };
    Because::new(reason, format!("a replica ended {how}{code}. {advice}"))
}

fn answers(
    view: &View<'_>,
    draft: &Draft,
    version: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    if let Some(because) = probed::wrong(version, replicas, Patience::Three) {
        return Some(because);
    }
    match probed::device(view, draft, version, replicas) {
        Found::Wrong(because) if probed::requires_device(view, version) => Some(because),
        _ => None,
    }
}

/// A candidate that has traffic and takes none. One whose traffic was taken for another reason, as by a suspension, fails
/// nobody.
fn not_ready(draft: &Draft, candidate: &Version, replicas: &Replicas<'_>) -> Option<Because> {
    let step = draft.status.rollout.as_ref()?.step.unwrap_or(0);
    let asked = traffic::has(draft, candidate.revision.as_deref()?);
    if step == 0 || !asked || replicas.maybe_ready() > 0 {
        return None;
    }
    let said = replicas.iter().find_map(available::not_ready);
    let said = said.unwrap_or_else(|| "none of its replicas runs".to_owned());
    let ended = replicas.iter().find(|replica| replica.crashed());
    let reason = ended.map_or(Reason::ProbeTimedOut, Replica::crash_reason);
    Some(Because::new(
        reason,
        format!("it had traffic and does not answer: {said}. Look at its logs"),
    ))
}

/// More errors, or slower, than the limits allow; judged by enough requests only.
fn limits(view: &View<'_>, draft: &Draft, candidate: &Version) -> Option<Because> {
    let champion = draft.status.champion.as_ref();
    let champion = champion.and_then(|champion| champion.revision.as_deref());
    let limits = canary_limits(view);
    errors(view, candidate, &limits).or_else(|| {
        let revision = candidate.revision.as_deref()?;
        let new = report::of(view, revision).ok()?;
        let old = report::of(view, champion?).ok()?;
        let enough = u64::try_from(limits.min_requests).unwrap_or(0);
        let (new_p95, old_p95) = (new.p95_millis?, old.p95_millis?);
        let allowed = limits.max_p95_ratio.value();
        let slow = f64::from(new_p95) > allowed * f64::from(old_p95.max(1));
        (slow && new.requests >= enough).then(|| {
            Because::new(
                Reason::LimitsExceeded,
                format!("its 95th percentile is {new_p95} ms, the champion's {old_p95} ms, and {allowed} times that is allowed. Look at its metrics"),
            )
        })
    })
}

fn canary_limits(view: &View<'_>) -> CanaryLimits {
    let canary = view.spec.rollout.canary.as_ref();
    canary.map_or_else(CanaryLimits::default, |canary| canary.limits.clone())
}

fn errors(view: &View<'_>, version: &Version, limits: &CanaryLimits) -> Option<Because> {
    let report = report::of(view, version.revision.as_deref()?).ok()?;
    let enough = u64::try_from(limits.min_requests).unwrap_or(0);
    let ratio = report::error_ratio(&report);
    let allowed = limits.max_error_ratio.value();
    (report.requests >= enough && report.requests > 0 && ratio > allowed).then(|| {
        Because::new(
            Reason::LimitsExceeded,
            format!(
                "{:.2} % of {} requests failed, {:.2} % are allowed. Look at its metrics",
                ratio * 100.0,
                report.requests,
                allowed * 100.0
            ),
        )
    })
}

/// What takes the new champion back while the old one still runs.
fn new_champion(view: &View<'_>, draft: &Draft) -> Option<Because> {
    let champion = draft.status.champion.as_ref()?;
    draft.status.previous.as_ref()?;
    let replicas = view.replicas_of(Some(champion));
    died(view, draft, &replicas)
        .or_else(|| answers(view, draft, champion, &replicas))
        .or_else(|| {
            // What served here before has counts of its former life, and going back is never judged.
            let kind = draft.status.rollout.as_ref()?.kind;
            let judged = kind != Some(RolloutKind::Revert);
            judged.then(|| errors(view, champion, &canary_limits(view)))?
        })
}

/// It ended by its own fault and nobody answers in its place, or it ends again and again.
fn died(view: &View<'_>, draft: &Draft, replicas: &Replicas<'_>) -> Option<Because> {
    let count = draft.status.restarts.as_ref().and_then(|seen| seen.count);
    let restarted = count > Some(0);
    let ended = replicas.iter().find(|replica| {
        replica.crashed() || (restarted && !replica.is_ready() && !replica.is_unasked())
    });
    let alone = replicas.maybe_ready() == 0;
    match ended {
        Some(replica) if alone => Some(ended_in_bake(view, replica)),
        _ if restarts::is_loop(view, draft) => {
            let last = replicas.iter().max_by_key(|replica| replica.seen.restarts);
            Some(last.map_or_else(
                || Because::new(Reason::CrashLoop, "its replicas ended again and again"),
                |last| ended_in_bake(view, last),
            ))
        }
        _ => None,
    }
}

fn ended_in_bake(view: &View<'_>, replica: &Replica<'_>) -> Because {
    ended(view, replica, "soon after it was promoted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_refuses_its_checkpoint_is_judged_while_its_log_can_be_read() {
        use RunState::{Exited, Restarting, Running, Stopping};
        for (state, restarts, exit_code, expected) in [
            (Running, 2, Some(1), false),
            (Running, 3, Some(1), true),
            (Running, 3, None, true),
            (Running, 3, Some(DAMAGED), false),
            (Running, 5, Some(DAMAGED), false),
            (Running, 6, Some(DAMAGED), true),
            (Restarting, 2, Some(DAMAGED), false),
            (Restarting, 3, Some(DAMAGED), true),
            (Stopping, 9, Some(1), false),
            (Exited, 9, Some(1), false),
        ] {
            let found = ends_too_often(state, restarts, exit_code);
            assert_eq!(found, expected, "{state:?} {restarts} {exit_code:?}");
        }
    }
}
