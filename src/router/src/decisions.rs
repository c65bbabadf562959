//! Stored decisions: `GET /v1/decisions/{id}` and `GET /v1/decisions` (routing.md 17, 18).

use std::sync::Arc;

use api::FieldError;
use api::exchange::{DecisionWithOutcomes, DecisionsResponse, RecordedOutcome};
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use service::http::{Tenant, json_response};
use service::problem::Failure;
use store::{DecisionQuery, StoredDecision, StoredOutcome};
use uuid::Uuid;

use crate::decide::Decider;
use crate::escalate::{away, unknown_decision};
use crate::query::Query;

/// Decisions of a page when nobody asked for another number.
const PAGE: usize = 50;
/// Most decisions of a page.
const MOST: usize = 500;

pub(crate) async fn one(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let id: Uuid = id
        .parse()
        .map_err(|_| Failure::invalid(vec![FieldError::new("id", "is no UUID")]))?;
    let stored = decider.stored(&tenant, id).await;
    match stored.map_err(|error| away(&error))? {
        Some(stored) => Ok(json_response(&shown(stored))),
        None => Err(unknown_decision(id)),
    }
}

pub(crate) async fn list(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let mut query = Query::read(
        query.as_deref(),
        &["conversation_id", "since", "limit", "cursor"],
    )?;
    let limit = query.number("limit", 1..=MOST)?.unwrap_or(PAGE);
    let query = DecisionQuery {
        conversation_id: query.take("conversation_id"),
        since: query.time("since")?,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        cursor: query.take("cursor"),
    };
    let page = decider.store.decisions(&tenant.0, &query).await;
    let page = page.map_err(|error| match error {
        store::StoreError::BadCursor => Failure::invalid(vec![FieldError::new(
            "cursor",
            "is none that this router gave out",
        )]),
        error => away(&error),
    })?;
    Ok(json_response(&DecisionsResponse {
        decisions: page.decisions.into_iter().map(shown).collect(),
        next_cursor: page.next_cursor,
    }))
}

fn shown(stored: StoredDecision) -> DecisionWithOutcomes {
    let outcome = |outcome: StoredOutcome| {
        let StoredOutcome {
            mut report,
            corrected,
            recorded,
        } = outcome;
        if corrected || report.corrected.is_some() {
            report.corrected = Some(corrected);
        }
        RecordedOutcome {
            report,
            recorded_at: recorded,
        }
    };
    DecisionWithOutcomes {
        decision: stored.decision,
        outcomes: stored.outcomes.into_iter().map(outcome).collect(),
    }
}
