//! Probing: contract, checkpoint, device and probe questions are right on every replica.

use api::kinds::laya_server::{RolloutState, Version};
use api::kinds::shared::Device;
use api::reason::Reason;

use super::super::probed::{self, Found, Patience};
use super::super::replicas::{Replica, Replicas};
use super::super::view::{Because, Draft, View};
use super::{Next, path, steps};
use crate::probe::{Readiness, ReplicaProbe};

pub(super) fn next(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    let replicas = view.replicas_of(Some(candidate));
    if let Some(because) = found(view, draft, candidate, &replicas) {
        return Next::Fail(because);
    }
    let count = steps::replicas(view, draft);
    let right = replicas
        .iter()
        .filter(|replica| replica.is_ready())
        .filter_map(|replica| replica.probe)
        .filter(|probe| probe.questions.passed_all && is_measured(view, candidate, probe))
        .count();
    if right < count {
        return unfinished(view, draft, &replicas, right, count);
    }
    let mut probed = candidate.clone();
    probed::record(view, &mut probed, &replicas);
    let next = path::after(view, draft, &probed, RolloutState::Probing);
    draft.status.candidate = Some(probed);
    next
}

/// What is wrong with the candidate for sure.
fn found(
    view: &View<'_>,
    draft: &Draft,
    candidate: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    if let Some(because) = probed::wrong(candidate, replicas, Patience::None)
        && because.reason != Reason::ProbeTimedOut
    {
        return Some(because);
    }
    match probed::device(view, draft, candidate, replicas) {
        Found::Wrong(because) if probed::requires_device(view, candidate) => Some(because),
        _ => None,
    }
}

/// A GPU that is asked for is timed before it is believed.
fn is_measured(view: &View<'_>, candidate: &Version, probe: &ReplicaProbe) -> bool {
    let device = candidate
        .revision
        .as_ref()
        .and_then(|revision| view.checked.documents.get(revision))
        .map(|inputs| inputs.device);
    device != Some(Device::Cuda)
        || view.spec.device_check.max_p50_millis == 0
        || probe.device.p50_millis.is_some()
}

fn unfinished(
    view: &View<'_>,
    draft: &Draft,
    replicas: &Replicas<'_>,
    right: usize,
    count: usize,
) -> Next {
    let failed = replicas
        .iter()
        .find_map(|replica| replica.probe?.questions.failed.as_ref());
    let deadline = view.spec.rollout.progress_deadline_seconds;
    let rollout = draft.status.rollout.as_ref();
    let late = rollout.is_some_and(|rollout| view.clocks.step_passed(rollout, i64::from(deadline)));
    let said = failed.map_or_else(String::new, |failed| format!("; {}", failed.message));
    let message = format!("{right} of {count} replicas answered the probe questions{said}");
    // What a new process has not asked to the end is not late.
    let open = |replica: &Replica<'_>| {
        let asked = |probe: &ReplicaProbe| {
            probe.readiness != Readiness::Unknown
                && (probe.questions.passed_all || probe.questions.failed.is_some())
        };
        replica.runs() && !replica.probe.is_some_and(asked)
    };
    if late && !(view.is_young() && replicas.iter().any(open)) {
        return Next::Fail(Because::new(
            Reason::ProbeTimedOut,
            format!(
                "{message}, within {deadline} s. Look at its load, or raise spec.probe.timeoutMillis"
            ),
        ));
    }
    Next::Wait(Because::new(Reason::Probing, message))
}
