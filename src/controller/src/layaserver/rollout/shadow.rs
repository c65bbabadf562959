//! Shadowing: the candidate answers copies of requests until enough were compared, or for long enough.

use api::kinds::laya_server::{RolloutState, Version};
use api::reason::Reason;

use super::super::view::{Because, Draft, View};
use super::{Next, path, report};

pub(super) fn next(view: &View<'_>, draft: &mut Draft, candidate: &Version) -> Next {
    let shadow = view.spec.rollout.shadow.clone().unwrap_or_default();
    let revision = candidate.revision.clone().unwrap_or_default();
    let rollout = draft.status.rollout.clone().unwrap_or_default();
    let over = view
        .clocks
        .step_passed(&rollout, i64::from(shadow.max_seconds));
    let taken = report::of(view, &revision).and_then(|report| {
        // Before that its counts may be those of a former life.
        let current = report::is_current(view, draft);
        current
            .then_some(report)
            .ok_or_else(|| report::NOT_TAKEN.to_owned())
    });
    let report = match taken {
        Ok(report) => report,
        Err(why) => {
            let message = format!("what the router compared is not known: {why}");
            return if over {
                Next::Pause(Because::new(
                    Reason::Paused,
                    format!("{message}. It goes on when the router reports again"),
                ))
            } else {
                Next::Wait(Because::new(Reason::Shadowing, message))
            };
        }
    };
    report::show(view, draft, &report);
    let needed = u64::try_from(shadow.min_comparisons).unwrap_or(0);
    let enough = report.comparisons >= needed;
    if !enough && !over {
        let message = format!("fewer than {needed} answers were compared");
        return Next::Wait(Because::new(Reason::Shadowing, message));
    }
    let differ = report::disagreement(&report);
    match &shadow.max_disagreement {
        Some(limit) if report.comparisons > 0 && differ > limit.value() => {
            Next::Fail(Because::new(
                Reason::LimitsExceeded,
                format!(
                    "{:.2} % of {} answers differ from the champion's, {:.2} % are allowed. Look at the candidate, or raise spec.rollout.shadow.maxDisagreement",
                    differ * 100.0,
                    report.comparisons,
                    limit.value() * 100.0
                ),
            ))
        }
        _ => path::after(view, draft, candidate, RolloutState::Shadowing),
    }
}
