//! What the router measured of a revision, as far as a rollout judges by it.

use api::kinds::laya_server::RolloutChecks;
use api::revisions::RevisionReport;

use super::super::facts::revision;
use super::super::view::{Draft, View};

/// Why a report is not about the traffic that status names.
pub(super) const NOT_TAKEN: &str = "the router has not taken this step yet";

/// What was measured of a revision; nothing of one that had no request yet. The error says why nothing is known.
pub(super) fn of(view: &View<'_>, revision: &str) -> Result<RevisionReport, String> {
    let report = view.seen.report.as_ref().map_err(Clone::clone)?;
    let own = own_name(view);
    if report.server != own {
        return Err(format!(
            "the router follows {} and not {own}",
            report.server
        ));
    }
    let mut of = report.revisions.iter();
    Ok(of
        .find(|report| report.revision == revision)
        .cloned()
        .unwrap_or_default())
}

fn own_name(view: &View<'_>) -> String {
    let metadata = &view.object.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    format!("{namespace}/{name}")
}

/// Whether the router has the traffic that status names, so that what it counts is about that.
pub(super) fn is_current(view: &View<'_>, draft: &Draft) -> bool {
    let wanted = draft
        .status
        .traffic
        .as_ref()
        .and_then(|traffic| traffic.generation)
        .unwrap_or(0);
    let report = view.seen.report.as_ref();
    report
        .is_ok_and(|report| report.traffic_generation >= wanted && report.server == own_name(view))
}

/// Share of requests that failed or came too late.
pub(super) fn error_ratio(report: &RevisionReport) -> f64 {
    ratio(
        report.errors.saturating_add(report.timeouts),
        report.requests,
    )
}

/// Share of compared answers that differ.
pub(super) fn disagreement(report: &RevisionReport) -> f64 {
    ratio(report.disagreements, report.comparisons)
}

#[allow(clippy::cast_precision_loss)] // Counts below 2^52.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The version that what is rolled out is compared with: the one that it is to replace, or has replaced.
fn other(view: &View<'_>, draft: &Draft) -> Option<RevisionReport> {
    let status = &draft.status;
    let other = match status.candidate {
        Some(_) => status.champion.as_ref(),
        None => status.previous.as_ref(),
    };
    of(view, revision(other)?).ok()
}

fn checks(report: &RevisionReport, other: Option<&RevisionReport>) -> RolloutChecks {
    let count = |number: u64| i64::try_from(number).ok();
    let compared = report.comparisons > 0;
    RolloutChecks {
        requests: count(report.requests),
        error_ratio: Some(format!("{:.4}", error_ratio(report))),
        p95_millis: report.p95_millis.map(i64::from),
        champion_p95_millis: other.and_then(|other| other.p95_millis).map(i64::from),
        comparisons: compared.then(|| count(report.comparisons)).flatten(),
        disagreement: compared.then(|| format!("{:.4}", disagreement(report))),
    }
}

/// Shows what was measured, each time it has doubled: a count that only grows is no reason to write a status.
pub(super) fn show(view: &View<'_>, draft: &mut Draft, report: &RevisionReport) {
    let new = checks(report, other(view, draft).as_ref());
    let rollout = draft.rollout();
    let seen =
        |checks: &RolloutChecks| checks.requests.unwrap_or(0) + checks.comparisons.unwrap_or(0);
    let worth = match &rollout.checks {
        None => true,
        Some(old) => seen(&new) >= 2 * seen(old).max(1) || seen(&new) < seen(old),
    };
    if worth {
        rollout.checks = Some(new);
    }
}
