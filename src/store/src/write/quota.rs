//! What is left of a provider (routing.md 10), and errors of providers in a row.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use routing::bounded::Ratio;
use routing::provider_error::ErrorClass;
use routing::quota::QuotaState;

use super::event::json;
use crate::error::SqlError;
use crate::records::ProviderFaultReport;
use crate::sql::{Quota, Transaction, Write, values};

/// What is known of a provider, with what this transaction changed.
pub(crate) async fn state(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    provider: &str,
) -> Result<QuotaState, SqlError> {
    const GET: &str = "SELECT state FROM relay_quota WHERE tenant = $1 AND provider = $2";
    let key = (tenant.clone(), provider.to_owned());
    if let Some(known) = transaction.quota.get(&key) {
        return Ok(known.state);
    }
    let row = transaction.first(GET, values![&**tenant, provider]).await?;
    let state = match row {
        None => QuotaState::default(),
        Some(mut row) => serde_json::from_str(&row.text(0)?)
            .map_err(|error| SqlError::unreadable("quota", &error))?,
    };
    let changed = None;
    transaction.quota.insert(key, Quota { state, changed });
    Ok(state)
}

/// Changes a state. It is kept for 90 days after `at`.
pub(crate) fn put(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    provider: &str,
    state: QuotaState,
    at: Timestamp,
) {
    let key = (tenant.clone(), provider.to_owned());
    let changed = Some(at);
    transaction.quota.insert(key, Quota { state, changed });
}

/// Stores what the transaction changed; the feed tells the latest state.
pub(crate) async fn store(transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
    const PUT: &str = "INSERT INTO relay_quota (tenant, provider, change, recorded, state) \
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, provider) DO UPDATE SET change = excluded.change, \
        recorded = excluded.recorded, state = excluded.state";
    for ((tenant, provider), quota) in std::mem::take(&mut transaction.quota) {
        if let Some(at) = quota.changed {
            let change = transaction.change();
            let values = values![&*tenant, provider, change, at, json(&quota.state)?];
            transaction.execute(PUT, values).await?;
        }
    }
    Ok(())
}

/// Notes what a provider says is left.
pub(crate) struct Measure {
    pub(crate) tenant: Arc<str>,
    pub(crate) provider: String,
    pub(crate) left: Ratio,
    pub(crate) resets: Timestamp,
}

impl Write for Measure {
    type Answer = QuotaState;
    const WHAT: &'static str = "note what a provider has left";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<QuotaState, SqlError> {
        let before = state(transaction, &self.tenant, &self.provider).await?;
        let after = before.after_measure(self.left, self.resets);
        // Until it resets it holds.
        let until = self.resets;
        put(transaction, &self.tenant, &self.provider, after, until);
        Ok(after)
    }
}

/// Errors further apart than this are not in a row.
const IN_A_ROW: SignedDuration = SignedDuration::from_mins(10);

/// Notes an error of a provider inside a task.
pub(crate) struct Fault {
    pub(crate) tenant: Arc<str>,
    pub(crate) report: ProviderFaultReport,
    pub(crate) now: Timestamp,
}

impl Write for Fault {
    type Answer = (QuotaState, u32);
    const WHAT: &'static str = "note an error of a provider";

    async fn apply(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<(QuotaState, u32), SqlError> {
        let (tenant, report) = (&self.tenant, &self.report);
        let mut quota = state(transaction, tenant, &report.provider).await?;
        if let Some(fault) = report.fault {
            quota = quota.after_fault(fault, report.retry_after, self.now);
            put(transaction, tenant, &report.provider, quota, self.now);
        }
        Ok((quota, self.count(transaction).await?))
    }
}

impl Fault {
    /// Errors of this class in a row, this one included.
    async fn count(&self, transaction: &mut Transaction<'_>) -> Result<u32, SqlError> {
        const GET: &str =
            "SELECT class, in_row, recorded FROM relay_faults WHERE tenant = $1 AND decision = $2";
        const PUT: &str = "INSERT INTO relay_faults (tenant, decision, class, in_row, recorded) \
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, decision) DO UPDATE SET \
            class = excluded.class, in_row = excluded.in_row, recorded = excluded.recorded";
        let (decision, class) = (self.report.decision, word(self.report.class));
        let before = transaction
            .first(GET, values![&*self.tenant, decision])
            .await?;
        let before = match before {
            None => 0,
            Some(mut row) => {
                let recent = self.now.duration_since(row.time(2)?) <= IN_A_ROW;
                let same = row.text(0)? == class;
                if same && recent { row.int(1)? } else { 0 }
            }
        };
        let count = before.saturating_add(1);
        let values = values![&*self.tenant, decision, class, count, self.now];
        transaction.execute(PUT, values).await?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Words of column `class`.
const fn word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::RateLimited => "rate_limited",
        ErrorClass::Unavailable => "unavailable",
        ErrorClass::Auth => "auth",
        ErrorClass::ContextOverflow => "context_overflow",
        ErrorClass::Other => "other",
    }
}
