//! Removing what is older than it need be, a little at a time: each write here is one step.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::SqlError;
use crate::sql::{Transaction, Write, values};

/// Decisions or other rows that one step removes at most.
pub(crate) const STEP: u64 = 200;

/// Removes the oldest decisions of a tenant made before a moment, with all that hangs on them.
pub(crate) struct Decisions {
    pub(crate) tenant: Arc<str>,
    pub(crate) before: Timestamp,
}

impl Write for Decisions {
    type Answer = u64;
    const WHAT: &'static str = "prune decisions";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<u64, SqlError> {
        const ESCALATIONS: &str = "DELETE FROM relay_escalations WHERE tenant = $1 AND decision IN \
            (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
        const FAULTS: &str = "DELETE FROM relay_faults WHERE tenant = $1 AND decision IN \
            (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
        // Outcomes go with their decision.
        const DECISIONS: &str = "DELETE FROM relay_decisions WHERE tenant = $1 AND id IN \
            (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
        let values = values![&*self.tenant, self.before, STEP];
        transaction.execute(ESCALATIONS, values).await?;
        transaction.execute(FAULTS, values).await?;
        transaction.execute(DECISIONS, values).await
    }
}

/// Tables whose rows go by age alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aged {
    Snapshots,
    Events,
    Imports,
    Escalations,
    Faults,
}

/// Removes the rows of a table from before a moment.
pub(crate) struct Older {
    pub(crate) table: Aged,
    pub(crate) before: Timestamp,
}

impl Write for Older {
    type Answer = u64;
    const WHAT: &'static str = "prune old entries";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<u64, SqlError> {
        let sql = match self.table {
            Aged::Snapshots => {
                "DELETE FROM relay_snapshots WHERE (tenant, digest) IN \
                 (SELECT tenant, digest FROM relay_snapshots WHERE read < $1 LIMIT $2)"
            }
            Aged::Events => {
                "DELETE FROM relay_changes WHERE change IN \
                 (SELECT change FROM relay_changes WHERE recorded < $1 ORDER BY change LIMIT $2)"
            }
            Aged::Imports => {
                "DELETE FROM relay_imports WHERE (tenant, key) IN \
                 (SELECT tenant, key FROM relay_imports WHERE seen < $1 LIMIT $2)"
            }
            Aged::Escalations => {
                "DELETE FROM relay_escalations WHERE (tenant, decision, key) IN \
                 (SELECT tenant, decision, key FROM relay_escalations WHERE recorded < $1 LIMIT $2)"
            }
            Aged::Faults => {
                "DELETE FROM relay_faults WHERE (tenant, decision) IN \
                 (SELECT tenant, decision FROM relay_faults WHERE recorded < $1 LIMIT $2)"
            }
        };
        transaction.execute(sql, values![self.before, STEP]).await
    }
}
