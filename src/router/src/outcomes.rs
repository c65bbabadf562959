//! `POST /v1/outcomes`: what happened to a decision, recorded once per attempt (routing.md 11, 18). An acknowledged outcome
//! is on disk.

use std::sync::Arc;
use std::time::Duration;

use api::Decision;
use api::exchange::{HistoryStanding, OutcomeResponse};
use api::problem::Slug;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::history::standing;
use routing::outcome::{OutcomeReport, class_of};
use routing::selection::prior_success;
use service::http::{JsonBody, Tenant, json_bytes, json_response};
use service::problem::Failure;
use store::{Recorded, StoreError};

use crate::decide::Decider;
use crate::escalate::away;

/// Waits before a decision counts as unknown: another replica may be about to commit it.
const LOOK_AGAIN: [Duration; 3] = [
    Duration::from_millis(30),
    Duration::from_millis(120),
    Duration::from_millis(350),
];

pub(crate) async fn route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    JsonBody(report): JsonBody<OutcomeReport>,
) -> Result<Response, Failure> {
    report.check().map_err(Failure::invalid)?;
    decider.outcome(&tenant, report).await
}

impl Decider {
    async fn outcome(&self, tenant: &Tenant, report: OutcomeReport) -> Result<Response, Failure> {
        if !self.policy.current().policy.source.telemetry {
            return self.not_recorded(tenant, &report).await;
        }
        let recorded = self
            .record(tenant, &report)
            .await
            .map_err(|error| away(&error))?;
        let (decision, is_new) = match recorded {
            Recorded::New { decision } => (decision, true),
            Recorded::Corrected { decision } => (decision, false),
            Recorded::Same {
                answer: Some(answer),
                ..
            } => return Ok(json_bytes(answer.into_bytes())),
            Recorded::Same { decision, .. } => (decision, false),
            Recorded::NotWanted { decision } => {
                return Ok(json_response(&self.answer(tenant, &decision, false)));
            }
            Recorded::Conflict { recorded } => return Err(conflict(&report, &recorded)),
            Recorded::UnknownDecision => return Err(self.not_found(report.decision_id)),
        };
        if is_new {
            self.metrics.outcome(decision.selected.tier, report.result);
        }
        // What was just written is part of the answer; should the store go away now, it still is written.
        let _ = self.knowledge.catch_up().await;
        let answer = self.answer(tenant, &decision, true);
        let text = serde_json::to_string(&answer).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Failure::new(Slug::Internal, "the answer cannot be written as JSON")
        })?;
        // Without room for it, the same report sent again is answered with what is known then.
        let _ = self
            .store
            .keep_answer(&tenant.0, report.decision_id, report.attempt, text.clone());
        Ok(json_bytes(text.into_bytes()))
    }

    /// Where recording is off the outcome is accepted and let go, so that a client needs no second way.
    async fn not_recorded(
        &self,
        tenant: &Tenant,
        report: &OutcomeReport,
    ) -> Result<Response, Failure> {
        let id = report.decision_id;
        let decision = match self.recent.named(tenant, id) {
            Some((decision, _)) => decision,
            None => {
                let stored = self.stored(tenant, id).await;
                let stored = stored.map_err(|error| away(&error))?;
                Arc::new(stored.ok_or_else(|| self.not_found(id))?.decision)
            }
        };
        Ok(json_response(&self.answer(tenant, &decision, false)))
    }

    async fn record(
        &self,
        tenant: &Tenant,
        report: &OutcomeReport,
    ) -> Result<Recorded, StoreError> {
        let now = Timestamp::now();
        let mut recorded = self
            .store
            .record_outcome(&tenant.0, report.clone(), now)
            .await?;
        for wait in self.look_again() {
            if !matches!(recorded, Recorded::UnknownDecision) {
                break;
            }
            tokio::time::sleep(wait).await;
            recorded = self
                .store
                .record_outcome(&tenant.0, report.clone(), now)
                .await?;
        }
        Ok(recorded)
    }

    /// A stored decision, also when another replica is about to commit it.
    pub(crate) async fn stored(
        &self,
        tenant: &Tenant,
        id: uuid::Uuid,
    ) -> Result<Option<store::StoredDecision>, StoreError> {
        let mut stored = self.store.decision(&tenant.0, id).await?;
        for wait in self.look_again() {
            if stored.is_some() {
                break;
            }
            tokio::time::sleep(wait).await;
            stored = self.store.decision(&tenant.0, id).await?;
        }
        Ok(stored)
    }

    /// In the order of one process nothing is late by more than a group of writes.
    fn look_again(&self) -> impl Iterator<Item = Duration> {
        let waits = if self.shared_store {
            LOOK_AGAIN.len()
        } else {
            2
        };
        LOOK_AGAIN.into_iter().take(waits)
    }

    fn answer(&self, tenant: &Tenant, decision: &Decision, recorded: bool) -> OutcomeResponse {
        let now = Timestamp::now();
        let class = class_of(decision);
        let model = &decision.selected.model;
        let evidence = self
            .knowledge
            .of(&tenant.0)
            .history()
            .evidence(class, model, now);
        let p0 = prior_success(decision.selected.tier, decision.policy.required_tier);
        let active = self.policy.current();
        let profile = active.policy.profile(&decision.profile);
        let minimum = profile.map_or(Ratio::ZERO, |profile| profile.min_success);
        let standing = standing(p0, minimum, evidence);
        OutcomeResponse {
            recorded,
            history: HistoryStanding {
                key: class.to_string(),
                model: model.clone(),
                successes: evidence.successes.get(),
                failures: evidence.failures.get(),
                mean: standing.posterior.mean,
                upper: standing.posterior.upper,
                excluded: standing.excluded,
            },
        }
    }
}

fn conflict(sent: &OutcomeReport, recorded: &OutcomeReport) -> Failure {
    let what = if sent.result == recorded.result {
        "other figures".to_owned()
    } else {
        format!("result `{}`", recorded.result.as_str())
    };
    Failure::new(
        Slug::Conflict,
        format!(
            "attempt {} of decision {} is recorded with {what}",
            sent.attempt, sent.decision_id
        ),
    )
    .hint("only `corrected` may change; a further try of the same decision is the next attempt")
}
