//! Keeping decision records.

use std::sync::Arc;

use jiff::Timestamp;
use routing::outcome::class_of;
use routing::record::{Decision, DecisionKind};
use uuid::Uuid;

use super::event::{append_explored, json};
use crate::error::SqlError;
use crate::sql::{Transaction, Write, values};

/// What a record takes beside the texts of its client.
const RECORD_BYTES: usize = 4096;

/// Keeps a decision; one that is there already stays as it is.
pub(crate) struct KeepDecision {
    pub(crate) tenant: Arc<str>,
    pub(crate) decision: Arc<Decision>,
    pub(crate) beside: Beside,
}

/// What is stored of a decision beside its record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// Sum of failures at the escalation that made it.
    pub(crate) born_score: f64,
    /// What the client said of itself.
    pub(crate) client: Option<String>,
    /// Whether outcomes are stored.
    pub(crate) records: bool,
}

impl Write for KeepDecision {
    type Answer = ();
    const WHAT: &'static str = "keep a decision";

    fn bytes(&self) -> usize {
        bytes(&self.decision) + self.beside.client.as_ref().map_or(0, String::len)
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
        insert(transaction, &self.tenant, &self.decision, &self.beside).await
    }
}

/// Roughly the memory a decision takes.
pub(crate) fn bytes(decision: &Decision) -> usize {
    let texts = [&decision.request, &decision.plan, &decision.lessons];
    let names = decision.skills.iter().chain(&decision.tools.deactivate);
    let text: usize = texts
        .into_iter()
        .flatten()
        .chain(names)
        .map(String::len)
        .sum();
    RECORD_BYTES + text
}

/// Inserts a decision and says so in the feed if it explores.
pub(crate) async fn insert(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    decision: &Decision,
    beside: &Beside,
) -> Result<(), SqlError> {
    const PUT: &str = "INSERT INTO relay_decisions (tenant, id, created, conversation, kind, tier, source, profile, \
        explored, cost, savings, born_score, corrected, records, client, body) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14, $15) ON CONFLICT (tenant, id) DO NOTHING";
    let selected = &decision.selected;
    let savings = decision
        .counterfactual
        .as_ref()
        .and_then(|compared| compared.savings_usd);
    let values = values![
        &**tenant,
        decision.id,
        decision.created,
        decision.conversation_id.clone(),
        kind(decision.kind),
        selected.tier.as_str(),
        decision.assessment.source.as_str(),
        &*decision.profile,
        selected.explored,
        selected.estimate.cost_usd.map(|cost| cost.get()),
        savings,
        beside.born_score,
        beside.records,
        beside.client.as_deref(),
        json(decision)?,
    ];
    let inserted = transaction.execute(PUT, values).await?;
    if inserted > 0 && selected.explored {
        let class = class_of(decision);
        append_explored(transaction, tenant, class, decision.created).await?;
    }
    Ok(())
}

/// Words of column `kind`.
const fn kind(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::User => "user",
        DecisionKind::Escalation => "escalation",
        DecisionKind::Provider => "provider",
        DecisionKind::Direct => "direct",
    }
}

/// Looks up a tenant's decision whose outcomes are stored.
pub(crate) async fn find_recording(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    id: Uuid,
) -> Result<Option<Decision>, SqlError> {
    const GET: &str =
        "SELECT body FROM relay_decisions WHERE tenant = $1 AND id = $2 AND records = 1";
    let row = transaction.first(GET, values![&**tenant, id]).await?;
    row.map(|mut row| parse(&row.text(0)?)).transpose()
}

/// Reads a stored record.
pub(crate) fn parse(body: &str) -> Result<Decision, SqlError> {
    serde_json::from_str(body).map_err(|error| SqlError::unreadable("decision", &error))
}

/// Times are stored in whole milliseconds; what is told at once must equal what is read back.
pub(crate) fn whole(now: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
