//! A tenant's rows.

use crate::error::SqlError;
use crate::records::{Dataset, StoredRow};
use crate::sql::{Connection, Read, values};

/// All of them.
pub(crate) struct All {
    pub(crate) tenant: String,
}

impl Read for All {
    type Answer = Dataset;
    const WHAT: &'static str = "read learned tasks";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Dataset, SqlError> {
        // One statement, so that the rows are those of the revision.
        const GET: &str = "SELECT d.revision, d.highest_session, r.id, r.line FROM relay_datasets d \
            LEFT JOIN relay_rows r ON r.tenant = d.tenant WHERE d.tenant = $1 ORDER BY r.place";
        let rows = connection.query(GET, values![&*self.tenant]).await?;
        let mut dataset = Dataset::default();
        dataset.rows.reserve(rows.len());
        for mut row in rows {
            dataset.revision = row.count(0)?;
            dataset.highest_session_number = row.count(1)?;
            if let Some(id) = row.optional_text(2)? {
                let line = row.text(3)?;
                dataset.rows.push(StoredRow { id, line });
            }
        }
        Ok(dataset)
    }
}

/// Earlier lines of a row, newest first.
pub(crate) struct Versions {
    pub(crate) tenant: String,
    pub(crate) id: String,
}

impl Read for Versions {
    type Answer = Vec<String>;
    const WHAT: &'static str = "read earlier versions of a row";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Vec<String>, SqlError> {
        const GET: &str = "SELECT line FROM relay_row_versions WHERE tenant = $1 AND id = $2 ORDER BY revision DESC";
        let values = values![&*self.tenant, &*self.id];
        let rows = connection.query(GET, values).await?;
        rows.into_iter().map(|mut row| row.text(0)).collect()
    }
}
