//! Recording what happened to a decision (routing.md 11, 18).

use std::sync::Arc;

use jiff::Timestamp;
use routing::history::Counts;
use routing::outcome::{OutcomeReport, correction_event, first_event, observe};
use routing::record::Decision;
use uuid::Uuid;

use super::decision::find;
use super::event::{append_evidence, json};
use super::quota;
use crate::error::SqlError;
use crate::records::{Recorded, StoredOutcome};
use crate::sql::{Row, Transaction, Write, values};

/// Records a report, or finds that it is recorded.
pub(crate) struct RecordOutcome {
    pub(crate) tenant: Arc<str>,
    pub(crate) report: OutcomeReport,
    pub(crate) now: Timestamp,
}

impl Write for RecordOutcome {
    type Answer = Recorded;
    const WHAT: &'static str = "record an outcome";

    fn bytes(&self) -> usize {
        let error = self.report.provider_error.as_ref();
        512 + error
            .and_then(|error| error.message.as_ref())
            .map_or(0, String::len)
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<Recorded, SqlError> {
        let id = self.report.decision_id;
        let Some(found) = find(transaction, &self.tenant, id).await? else {
            return Ok(Recorded::UnknownDecision);
        };
        let decision = Arc::new(found.decision);
        let attempt = self.report.attempt;
        let Some(known) = attempt_of(transaction, &self.tenant, id, Some(attempt)).await? else {
            let corrected = self.report.corrected.unwrap_or(found.corrected);
            self.insert(transaction, &decision, corrected).await?;
            return Ok(Recorded::New { decision });
        };
        if !known.outcome.report.agrees_with(&self.report) {
            let recorded = Box::new(known.outcome.report);
            return Ok(Recorded::Conflict { recorded });
        }
        match self.report.corrected {
            Some(corrected) if corrected != known.outcome.corrected => {
                correct(
                    transaction,
                    &self.tenant,
                    &decision,
                    &known.outcome,
                    corrected,
                    self.now,
                )
                .await?;
                Ok(Recorded::Corrected { decision })
            }
            _ => Ok(Recorded::Same {
                decision,
                answer: known.answer,
            }),
        }
    }
}

impl RecordOutcome {
    async fn insert(
        &self,
        transaction: &mut Transaction<'_>,
        decision: &Decision,
        corrected: bool,
    ) -> Result<(), SqlError> {
        const PUT: &str = "INSERT INTO relay_outcomes (tenant, decision, attempt, recorded, final, counts, corrected, \
            cost, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, report) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let (report, tenant, now) = (&self.report, &self.tenant, self.now);
        let usage = report.usage.unwrap_or_default();
        let cost = usage.cost();
        let values = values![
            &**tenant,
            report.decision_id,
            report.attempt,
            now,
            report.is_final,
            counts(decision, report, corrected, now),
            corrected,
            cost.map(|cost| cost.get()),
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            json(report)?,
        ];
        transaction.execute(PUT, values).await?;
        if let Some(event) = first_event(decision, report, corrected, now) {
            append_evidence(transaction, tenant, &event, now).await?;
        }
        if let Some(cost) = cost {
            let provider = &decision.selected.provider;
            let state = quota::state(transaction, tenant, provider).await?;
            quota::put(transaction, tenant, provider, state.after_cost(cost, now)).await?;
        }
        Ok(())
    }
}

/// Words of column `counts`: 0 says nothing, 1 for the model, 2 against it.
fn counts(decision: &Decision, report: &OutcomeReport, corrected: bool, at: Timestamp) -> i64 {
    match observe(decision, report, corrected, at).map(|seen| seen.counts) {
        None => 0,
        Some(Counts::Success) => 1,
        Some(Counts::Failure) => 2,
    }
}

/// An attempt with the answer that was given.
pub(crate) struct Known {
    pub(crate) outcome: StoredOutcome,
    answer: Option<String>,
}

/// The attempt of this number, or the last one.
pub(crate) async fn attempt_of(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    decision: Uuid,
    attempt: Option<u32>,
) -> Result<Option<Known>, SqlError> {
    const ONE: &str = "SELECT report, corrected, recorded, answer FROM relay_outcomes \
        WHERE tenant = $1 AND decision = $2 AND attempt = $3";
    const LAST: &str = "SELECT report, corrected, recorded, answer FROM relay_outcomes \
        WHERE tenant = $1 AND decision = $2 ORDER BY attempt DESC LIMIT 1";
    let row = match attempt {
        Some(attempt) => {
            let values = values![&**tenant, decision, attempt];
            transaction.first(ONE, values).await?
        }
        None => {
            transaction
                .first(LAST, values![&**tenant, decision])
                .await?
        }
    };
    row.map(|mut row| {
        Ok(Known {
            outcome: parse(&mut row)?,
            answer: row.optional_text(3)?,
        })
    })
    .transpose()
}

/// Reads `report, corrected, recorded` from the first three columns.
pub(crate) fn parse(row: &mut Row) -> Result<StoredOutcome, SqlError> {
    let text = row.text(0)?;
    let report =
        serde_json::from_str(&text).map_err(|error| SqlError::unreadable("outcome", &error))?;
    Ok(StoredOutcome {
        report,
        corrected: row.flag(1)?,
        recorded: row.time(2)?,
    })
}

/// Makes an attempt corrected, or takes that back. The answer that was given no longer holds.
pub(crate) async fn correct(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    decision: &Decision,
    known: &StoredOutcome,
    corrected: bool,
    now: Timestamp,
) -> Result<(), SqlError> {
    const PUT: &str = "UPDATE relay_outcomes SET corrected = $4, counts = $5, answer = NULL \
        WHERE tenant = $1 AND decision = $2 AND attempt = $3";
    let (report, at) = (&known.report, known.recorded);
    let counts = counts(decision, report, corrected, at);
    let values = values![&**tenant, decision.id, report.attempt, corrected, counts];
    transaction.execute(PUT, values).await?;
    if let Some(event) = correction_event(decision, report, corrected, at) {
        append_evidence(transaction, tenant, &event, now).await?;
    }
    Ok(())
}
