//! Recording what happened to a decision (routing.md 11, 18).

use std::sync::Arc;

use jiff::Timestamp;
use routing::history::Counts;
use routing::outcome::{OutcomeReport, correction_event, first_event, observe};
use routing::record::Decision;
use uuid::Uuid;

use super::decision;
use super::event::{append_evidence, json};
use super::quota;
use crate::error::SqlError;
use crate::records::{Recorded, StoredOutcome};
use crate::sql::{Row, Transaction, Write, values};

/// What a report counts of an attempt at most, so that sums stay within 64 bits; the report itself keeps its figures.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// Records a report, or finds that it is recorded.
pub(crate) struct RecordOutcome {
    tenant: Arc<str>,
    report: OutcomeReport,
    now: Timestamp,
}

impl RecordOutcome {
    /// What a provider said of its error is left out: it may quote the prompt, and says no more than its class. Reports
    /// that differ in nothing else are the same.
    pub(crate) fn new(tenant: Arc<str>, mut report: OutcomeReport, now: Timestamp) -> Self {
        if let Some(error) = &mut report.provider_error {
            error.class = Some(error.class());
            error.message = None;
        }
        Self {
            tenant,
            report,
            now,
        }
    }
}

impl Write for RecordOutcome {
    type Answer = Recorded;
    const WHAT: &'static str = "record an outcome";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<Recorded, SqlError> {
        let Some(found) = self.find(transaction).await? else {
            return Ok(Recorded::UnknownDecision);
        };
        let decision = Arc::new(found.decision);
        if !found.records {
            return Ok(Recorded::NotWanted { decision });
        }
        let Some(known) = found.known else {
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

/// What a report is about.
struct Found {
    decision: Decision,
    /// Whether outcomes are stored.
    records: bool,
    /// Whether the user called it wrong before any attempt was reported.
    corrected: bool,
    /// The attempt, if it is recorded.
    known: Option<Known>,
}

impl RecordOutcome {
    async fn find(&self, transaction: &mut Transaction<'_>) -> Result<Option<Found>, SqlError> {
        // Both at once: the way to the server and back is what an outcome costs.
        const GET: &str = "SELECT o.report, o.corrected, o.recorded, o.answer, d.body, d.corrected, d.records \
            FROM relay_decisions d LEFT JOIN relay_outcomes o \
            ON o.tenant = d.tenant AND o.decision = d.id AND o.attempt = $3 WHERE d.tenant = $1 AND d.id = $2";
        let report = &self.report;
        let values = values![&*self.tenant, report.decision_id, report.attempt];
        let Some(mut row) = transaction.first(GET, values).await? else {
            return Ok(None);
        };
        let is_known = row.optional_int(2)?.is_some();
        Ok(Some(Found {
            known: is_known.then(|| known(&mut row)).transpose()?,
            decision: decision::parse(&row.text(4)?)?,
            corrected: row.flag(5)?,
            records: row.flag(6)?,
        }))
    }

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
            usage.input_tokens.min(MOST_TOKENS),
            usage.cached_input_tokens.min(MOST_TOKENS),
            usage.cache_write_tokens.min(MOST_TOKENS),
            usage.output_tokens.min(MOST_TOKENS),
            json(report)?,
        ];
        transaction.execute(PUT, values).await?;
        if let Some(event) = first_event(decision, report, corrected, now) {
            append_evidence(transaction, tenant, &event, now).await?;
        }
        if let Some(cost) = cost {
            let provider = &decision.selected.provider;
            let state = quota::state(transaction, tenant, provider).await?;
            let state = state.after_cost(cost, now);
            quota::put(transaction, tenant, provider, state, now);
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
struct Known {
    outcome: StoredOutcome,
    answer: Option<String>,
}

/// Reads `report, corrected, recorded, answer` from the first four columns.
fn known(row: &mut Row) -> Result<Known, SqlError> {
    Ok(Known {
        outcome: parse(row)?,
        answer: row.optional_text(3)?,
    })
}

/// The last attempt of a decision.
pub(crate) async fn last_attempt(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    decision: Uuid,
) -> Result<Option<StoredOutcome>, SqlError> {
    const LAST: &str = "SELECT report, corrected, recorded FROM relay_outcomes \
        WHERE tenant = $1 AND decision = $2 ORDER BY attempt DESC LIMIT 1";
    let row = transaction
        .first(LAST, values![&**tenant, decision])
        .await?;
    row.map(|mut row| parse(&mut row)).transpose()
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
