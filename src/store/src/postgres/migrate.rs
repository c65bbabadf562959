//! Bringing the database up to date. Several routers may start at once: the first does it, the others wait.

use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connected;
use super::lock;
use crate::error::SqlError;
use crate::migrations;
use crate::sql::{Connection, first};

/// A step over large tables takes its time.
const LONGEST: Duration = Duration::from_secs(120);

/// Takes the steps that the database lacks, in one transaction.
pub(super) async fn up_to_date(connected: &mut Connected) -> Result<(), SqlError> {
    if version(connected).await? == migrations::newest() {
        return Ok(());
    }
    let slow = |_| {
        SqlError::Away(format!(
            "the database was not up to date within {LONGEST:?}"
        ))
    };
    timeout(LONGEST, migrate(connected)).await.map_err(slow)?
}

async fn migrate(connected: &mut Connected) -> Result<(), SqlError> {
    let millis = LONGEST.as_millis();
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = {millis}; SET LOCAL lock_timeout = {millis}; \
         SET LOCAL idle_in_transaction_session_timeout = {millis}; SELECT pg_advisory_xact_lock({}); \
         CREATE TABLE IF NOT EXISTS relay_schema (version BIGINT NOT NULL)",
        lock::MIGRATE
    );
    connected.script(&begin).await?;
    let from = version(connected).await?;
    let newest = migrations::newest();
    if from > newest {
        let _ = connected.script("ROLLBACK").await;
        return Err(SqlError::Away(format!(
            "the database is of version {from}, this program knows {newest}: start a newer one"
        )));
    }
    for step in migrations::missing(from) {
        connected.script(&step.postgres()).await?;
    }
    connected
        .script(&format!(
            "DELETE FROM relay_schema; INSERT INTO relay_schema (version) VALUES ({newest}); COMMIT"
        ))
        .await
}

/// The step the database is at; 0 for one that is empty.
async fn version(connected: &mut Connected) -> Result<i64, SqlError> {
    const THERE: &str =
        "SELECT COUNT(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('relay_schema')";
    const GET: &str = "SELECT COALESCE(MAX(version), 0) FROM relay_schema";
    let there = first(connected, THERE, &[]).await?;
    if there.is_none_or(|row| row.int(0) != Ok(1)) {
        return Ok(0);
    }
    let row = connected.query(GET, &[]).await?.into_iter().next();
    row.map_or(Ok(0), |row| row.int(0))
}
