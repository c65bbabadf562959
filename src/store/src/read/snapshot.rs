//! Frozen datasets.

use jiff::Timestamp;

use crate::error::SqlError;
use crate::sql::{Connection, Read, first, values};

/// A snapshot by its digest, and when it was read before.
pub(crate) struct ByDigest {
    pub(crate) tenant: String,
    pub(crate) digest: String,
}

impl Read for ByDigest {
    type Answer = Option<(String, Timestamp)>;
    const WHAT: &'static str = "read a snapshot";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Self::Answer, SqlError> {
        const GET: &str =
            "SELECT body, read FROM relay_snapshots WHERE tenant = $1 AND digest = $2";
        let values = values![&*self.tenant, &*self.digest];
        let row = first(connection, GET, values).await?;
        row.map(|mut row| Ok((row.text(0)?, row.time(1)?)))
            .transpose()
    }
}
