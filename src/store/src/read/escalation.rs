//! The answer that stands for an escalation.

use uuid::Uuid;

use crate::error::SqlError;
use crate::sql::{Connection, Read, first, values};

/// By decision and key.
pub(crate) struct Answer {
    pub(crate) tenant: String,
    pub(crate) decision: Uuid,
    pub(crate) key: String,
}

impl Read for Answer {
    type Answer = Option<String>;
    const WHAT: &'static str = "read an escalation";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Option<String>, SqlError> {
        const GET: &str =
            "SELECT answer FROM relay_escalations WHERE tenant = $1 AND decision = $2 AND key = $3";
        let values = values![&*self.tenant, self.decision, &*self.key];
        let row = first(connection, GET, values).await?;
        row.map(|mut row| row.text(0)).transpose()
    }
}
