//! Frozen datasets (training.md 3).

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::SqlError;
use crate::records::Snapshot;
use crate::sql::{Transaction, Write, values};

/// Keeps a snapshot; one that is there is kept for another 30 days.
pub(crate) struct KeepSnapshot {
    pub(crate) tenant: Arc<str>,
    pub(crate) snapshot: Snapshot,
    pub(crate) now: Timestamp,
}

impl Write for KeepSnapshot {
    type Answer = ();
    const WHAT: &'static str = "keep a snapshot";

    fn bytes(&self) -> usize {
        256 + self.snapshot.body.len()
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
        const PUT: &str = "INSERT INTO relay_snapshots (tenant, digest, read, body) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (tenant, digest) DO UPDATE SET read = excluded.read";
        let Snapshot { digest, body } = &self.snapshot;
        let values = values![&*self.tenant, &**digest, self.now, &**body];
        transaction.execute(PUT, values).await?;
        Ok(())
    }
}

/// Notes that a snapshot was read.
pub(crate) struct Touch {
    pub(crate) tenant: Arc<str>,
    pub(crate) digest: String,
    pub(crate) now: Timestamp,
}

impl Write for Touch {
    type Answer = ();
    const WHAT: &'static str = "note that a snapshot was read";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
        const PUT: &str = "UPDATE relay_snapshots SET read = $3 WHERE tenant = $1 AND digest = $2";
        let values = values![&*self.tenant, &*self.digest, self.now];
        transaction.execute(PUT, values).await?;
        Ok(())
    }
}
