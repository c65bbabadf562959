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

impl Decisions {
    const ESCALATIONS: &str = "DELETE FROM relay_escalations WHERE tenant = $1 AND decision IN \
        (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
    const FAULTS: &str = "DELETE FROM relay_faults WHERE tenant = $1 AND decision IN \
        (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
    // Outcomes go with their decision.
    const DECISIONS: &str = "DELETE FROM relay_decisions WHERE tenant = $1 AND id IN \
        (SELECT id FROM relay_decisions WHERE tenant = $1 AND created < $2 ORDER BY created, id LIMIT $3)";
}

impl Write for Decisions {
    type Answer = u64;
    const WHAT: &'static str = "prune decisions";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<u64, SqlError> {
        let values = values![&*self.tenant, self.before, STEP];
        transaction.execute(Self::ESCALATIONS, values).await?;
        transaction.execute(Self::FAULTS, values).await?;
        transaction.execute(Self::DECISIONS, values).await
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
    Quota,
}

impl Aged {
    /// One step: `$1` is the moment, `$2` how many rows at most. Each finds them by an index on their age.
    const fn sql(self) -> &'static str {
        match self {
            Self::Snapshots => {
                "DELETE FROM relay_snapshots WHERE (tenant, digest) IN \
                 (SELECT tenant, digest FROM relay_snapshots WHERE read < $1 LIMIT $2)"
            }
            Self::Events => {
                "DELETE FROM relay_changes WHERE change IN \
                 (SELECT change FROM relay_changes WHERE recorded < $1 LIMIT $2)"
            }
            Self::Imports => {
                "DELETE FROM relay_imports WHERE (tenant, key) IN \
                 (SELECT tenant, key FROM relay_imports WHERE seen < $1 LIMIT $2)"
            }
            Self::Escalations => {
                "DELETE FROM relay_escalations WHERE (tenant, decision, key) IN \
                 (SELECT tenant, decision, key FROM relay_escalations WHERE recorded < $1 LIMIT $2)"
            }
            Self::Faults => {
                "DELETE FROM relay_faults WHERE (tenant, decision) IN \
                 (SELECT tenant, decision FROM relay_faults WHERE recorded < $1 LIMIT $2)"
            }
            Self::Quota => {
                "DELETE FROM relay_quota WHERE (tenant, provider) IN \
                 (SELECT tenant, provider FROM relay_quota WHERE recorded < $1 LIMIT $2)"
            }
        }
    }
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
        let values = values![self.before, STEP];
        transaction.execute(self.table.sql(), values).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite goes about a statement.
    fn plan(file: &rusqlite::Connection, sql: &str) -> Vec<String> {
        let mut statement = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = statement.raw_query();
        let mut plan = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            plan.push(row.get(3).unwrap());
        }
        plan
    }

    #[test]
    fn no_step_walks_over_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay.db");
        let (file, _) =
            crate::sqlite::open(&path, &crate::sqlite::LAYOUT, Timestamp::UNIX_EPOCH).unwrap();
        for (name, sql) in [
            ("snapshots", Aged::Snapshots.sql()),
            ("events", Aged::Events.sql()),
            ("imports", Aged::Imports.sql()),
            ("escalations", Aged::Escalations.sql()),
            ("faults", Aged::Faults.sql()),
            ("quota", Aged::Quota.sql()),
            ("escalations of decisions", Decisions::ESCALATIONS),
            ("faults of decisions", Decisions::FAULTS),
            ("decisions", Decisions::DECISIONS),
        ] {
            let plan = plan(&file.raw, sql);
            let walks = plan.iter().any(|step| step.starts_with("SCAN"));
            let finds = plan.iter().filter(|step| step.starts_with("SEARCH"));
            assert!(!walks && finds.count() >= 2, "{name}: {plan:?}");
        }
    }
}
