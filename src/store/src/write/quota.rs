//! What is left of a provider (routing.md 10), and errors of providers in a row.

use std::sync::Arc;

use routing::quota::QuotaState;

use super::event::json;
use crate::error::SqlError;
use crate::sql::{Transaction, values};

/// What is stored of a provider.
pub(crate) async fn state(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    provider: &str,
) -> Result<QuotaState, SqlError> {
    const GET: &str = "SELECT state FROM relay_quota WHERE tenant = $1 AND provider = $2";
    let row = transaction.first(GET, values![&**tenant, provider]).await?;
    let Some(mut row) = row else {
        return Ok(QuotaState::default());
    };
    serde_json::from_str(&row.text(0)?).map_err(|error| SqlError::unreadable("quota", &error))
}

/// Stores a state; the feed tells the latest one.
pub(crate) async fn put(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    provider: &str,
    state: QuotaState,
) -> Result<(), SqlError> {
    const PUT: &str = "INSERT INTO relay_quota (tenant, provider, change, state) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (tenant, provider) DO UPDATE SET change = excluded.change, state = excluded.state";
    let change = transaction.change();
    let values = values![&**tenant, provider, change, json(&state)?];
    transaction.execute(PUT, values).await?;
    Ok(())
}
