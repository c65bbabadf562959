//! The change feed: evidence and explorations one by one, quota and datasets as their latest state.

use std::sync::Arc;

use crate::error::SqlError;
use crate::records::Changes;
use crate::sql::{Connection, Read, values};
use crate::write::event;

/// Most events of one answer.
pub(crate) const MOST: usize = 50_000;

/// What changed after a number.
pub(crate) struct After(pub(crate) u64);

impl Read for After {
    type Answer = Changes;
    const WHAT: &'static str = "read what changed";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Changes, SqlError> {
        // One statement, so that the three tables are seen at one moment.
        const GET: &str = "SELECT change, tenant, kind, '' AS subject, body FROM relay_changes WHERE change > $1 \
            UNION ALL SELECT change, tenant, 'quota', provider, state FROM relay_quota WHERE change > $1 \
            UNION ALL SELECT change, tenant, 'dataset', '', CAST(revision AS TEXT) FROM relay_datasets WHERE change > $1 \
            ORDER BY 1 LIMIT $2";
        let rows = connection.query(GET, values![self.0, MOST]).await?;
        let mut changes = Changes {
            last: self.0,
            events: Vec::with_capacity(rows.len()),
        };
        let mut reader = event::Reader::default();
        let mut tenant: Arc<str> = Arc::from("");
        for mut row in rows {
            changes.last = row.count(0)?;
            let name = row.text(1)?;
            if *tenant != *name {
                tenant = name.into();
            }
            let (kind, subject, body) = (row.text(2)?, row.text(3)?, row.text(4)?);
            match reader.read(&kind, subject, &body) {
                Ok(Some(event)) => changes.events.push((tenant.clone(), event)),
                Ok(None) => {}
                // One bad line must not hide all others for ever.
                Err(error) => {
                    tracing::warn!(change = changes.last, %error, "a change was left out")
                }
            }
        }
        Ok(changes)
    }
}
