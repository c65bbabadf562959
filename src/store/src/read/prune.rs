//! What pruning has to know.

use jiff::Timestamp;

use crate::error::SqlError;
use crate::sql::{Connection, Read, first, values};

/// Who has decisions.
pub(crate) struct Tenants;

impl Read for Tenants {
    type Answer = Vec<String>;
    const WHAT: &'static str = "list the tenants";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Vec<String>, SqlError> {
        // From one name to the next in the index; a `DISTINCT` walks over all of it.
        const GET: &str = "WITH RECURSIVE known (tenant) AS (SELECT MIN(tenant) FROM relay_decisions UNION ALL \
            SELECT (SELECT MIN(d.tenant) FROM relay_decisions d WHERE d.tenant > known.tenant) FROM known \
            WHERE known.tenant IS NOT NULL) SELECT tenant FROM known WHERE tenant IS NOT NULL";
        let rows = connection.query(GET, &[]).await?;
        rows.into_iter().map(|mut row| row.text(0)).collect()
    }
}

/// When the `most`-th newest decision of a tenant was made; nothing if there are fewer.
pub(crate) struct Nth {
    pub(crate) tenant: String,
    pub(crate) most: u64,
}

impl Read for Nth {
    type Answer = Option<Timestamp>;
    const WHAT: &'static str = "count decisions";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Option<Timestamp>, SqlError> {
        const GET: &str = "SELECT created FROM relay_decisions WHERE tenant = $1 \
            ORDER BY created DESC LIMIT 1 OFFSET $2";
        let values = values![&*self.tenant, self.most.saturating_sub(1)];
        let row = first(connection, GET, values).await?;
        row.map(|row| row.time(0)).transpose()
    }
}
