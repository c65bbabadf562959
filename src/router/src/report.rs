//! `GET /v1/report`: what routing brought, and on which assumptions (routing.md 21).

use std::sync::Arc;

use api::exchange::{ReportCost, ReportGroup, ReportResponse};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use routing::registry::ModelRef;
use service::http::{Tenant, json_response};
use service::problem::Failure;
use store::ReportRow;

use crate::decide::Decider;
use crate::escalate::away;
use crate::query::Query;

/// How far it looks back when nobody says.
const DEFAULT_SPAN: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(crate) async fn route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let now = Timestamp::now();
    let mut query = Query::read(query.as_deref(), &["since"])?;
    let since = query.since("since", now)?;
    let since = since.unwrap_or_else(|| now.checked_sub(DEFAULT_SPAN).unwrap_or(now));
    let rows = decider.store.report_rows(&tenant.0, since).await;
    let rows = rows.map_err(|error| away(&error))?;
    let active = decider.policy.current();
    let baseline = active.policy.source.baseline.as_ref();
    Ok(json_response(&report(&rows, since, now, baseline)))
}

fn report(
    rows: &[ReportRow],
    since: Timestamp,
    until: Timestamp,
    baseline: Option<&ModelRef>,
) -> ReportResponse {
    let mut report = ReportResponse {
        since,
        until,
        total: ReportGroup::default(),
        by_tier: Default::default(),
        by_source: Default::default(),
        escalations: 0,
        provider_moves: 0,
        explorations: 0,
        cost: ReportCost::default(),
        assumptions: assumptions(baseline),
    };
    for row in rows {
        add(&mut report.total, row);
        add(report.by_tier.entry(row.tier).or_default(), row);
        let source = row.source.as_str().to_owned();
        add(report.by_source.entry(source).or_default(), row);
        report.escalations += row.escalations;
        report.provider_moves += row.provider_moves;
        report.explorations += row.explored;
        let cost = &mut report.cost;
        cost.estimated += row.estimated_cost;
        cost.savings += row.estimated_savings;
        cost.unknown += row.unknown_cost;
        cost.reported += row.reported_cost;
    }
    report.cost.baseline = report.cost.estimated + report.cost.savings;
    report
}

fn add(group: &mut ReportGroup, row: &ReportRow) {
    group.decisions += row.count;
    group.judged += row.judged;
    group.successes += row.successes;
}

fn assumptions(baseline: Option<&ModelRef>) -> Vec<String> {
    let baseline = match baseline {
        Some(model) => format!("the baseline is {model}, as the policy says"),
        None => {
            "the baseline is the first strong model that each request could have used".to_owned()
        }
    };
    vec![
        baseline,
        "tokens are those that earlier tasks of the same class used, or typical ones where none are known".to_owned(),
        "the baseline is taken to need the same tokens and no retries; prices are those of the registry when the decision was made".to_owned(),
        "decisions whose cost or baseline is unknown are counted, and left out of the three estimates".to_owned(),
    ]
}
