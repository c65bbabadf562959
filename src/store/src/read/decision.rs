//! Looking decisions up.

use routing::record::Decision;
use uuid::Uuid;

use crate::error::SqlError;
use crate::records::{StoredDecision, StoredOutcome};
use crate::sql::{Connection, Read, first, values};
use crate::write;

/// A decision by its id, with its outcomes.
pub(crate) struct ById {
    pub(crate) tenant: String,
    pub(crate) id: Uuid,
}

impl Read for ById {
    type Answer = Option<StoredDecision>;
    const WHAT: &'static str = "read a decision";

    async fn read(
        &self,
        connection: &mut dyn Connection,
    ) -> Result<Option<StoredDecision>, SqlError> {
        const GET: &str = "SELECT body, corrected, born_score, client, records FROM relay_decisions \
            WHERE tenant = $1 AND id = $2";
        let values = values![&*self.tenant, self.id];
        let Some(mut row) = first(connection, GET, values).await? else {
            return Ok(None);
        };
        Ok(Some(StoredDecision {
            decision: write::decision::parse(&row.text(0)?)?,
            corrected: row.flag(1)?,
            born_score: row.real(2)?,
            client: row.optional_text(3)?,
            records: row.flag(4)?,
            outcomes: outcomes(connection, &self.tenant, self.id).await?,
        }))
    }
}

/// The attempts of a decision, in order.
pub(crate) async fn outcomes(
    connection: &mut dyn Connection,
    tenant: &str,
    decision: Uuid,
) -> Result<Vec<StoredOutcome>, SqlError> {
    const GET: &str = "SELECT report, corrected, recorded FROM relay_outcomes \
        WHERE tenant = $1 AND decision = $2 ORDER BY attempt";
    let rows = connection.query(GET, values![tenant, decision]).await?;
    rows.into_iter()
        .map(|mut row| write::outcome::parse(&mut row))
        .collect()
}

/// The newest decision of a conversation that is part of a task.
pub(crate) struct LastOfConversation {
    pub(crate) tenant: String,
    pub(crate) conversation: String,
}

impl Read for LastOfConversation {
    type Answer = Option<Decision>;
    const WHAT: &'static str = "read the last decision of a conversation";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Option<Decision>, SqlError> {
        const GET: &str = "SELECT body FROM relay_decisions \
            WHERE tenant = $1 AND conversation = $2 AND kind <> 'direct' ORDER BY created DESC, id DESC LIMIT 1";
        let values = values![&*self.tenant, &*self.conversation];
        let row = first(connection, GET, values).await?;
        row.map(|mut row| write::decision::parse(&row.text(0)?))
            .transpose()
    }
}
