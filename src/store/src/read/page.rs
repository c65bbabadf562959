//! Pages of decisions, newest first.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{SqlError, StoreError};
use crate::records::{DecisionPage, DecisionQuery, StoredDecision, StoredOutcome};
use crate::sql::{Connection, Read, Row, values};
use crate::write;

/// Most decisions of a page, and how many where nobody says.
const MOST: u32 = 500;
const USUAL: u32 = 50;
/// Bytes of records after which a page ends; it has one at least.
const MOST_BYTES: u64 = 4 << 20;

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    created: i64,
    id: String,
}

impl Cursor {
    /// Before the newest: later than all times, above all ids.
    fn start() -> Self {
        Self {
            created: i64::MAX,
            id: String::new(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}", self.created, self.id)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let (created, id) = text.split_once('.').ok_or(StoreError::BadCursor)?;
        let created = i64::from_str_radix(created, 16).map_err(|_| StoreError::BadCursor)?;
        let id: Uuid = id.parse().map_err(|_| StoreError::BadCursor)?;
        let id = id.to_string();
        Ok(Self { created, id })
    }
}

/// A page.
pub(crate) struct Page {
    tenant: String,
    conversation: Option<String>,
    since: i64,
    after: Cursor,
    limit: u32,
}

impl Page {
    /// # Errors
    /// [`StoreError::BadCursor`].
    pub(crate) fn new(tenant: &str, query: &DecisionQuery) -> Result<Self, StoreError> {
        let after = query.cursor.as_deref().map(str::parse).transpose()?;
        Ok(Self {
            tenant: tenant.to_owned(),
            conversation: query.conversation_id.clone(),
            since: query.since.map_or(i64::MIN, Timestamp::as_millisecond),
            after: after.unwrap_or_else(Cursor::start),
            limit: match query.limit {
                0 => USUAL,
                limit => limit.min(MOST),
            },
        })
    }
}

impl Read for Page {
    type Answer = DecisionPage;
    const WHAT: &'static str = "list decisions";

    async fn read(&self, connection: &mut dyn Connection) -> Result<DecisionPage, SqlError> {
        let Some(Span {
            newest,
            oldest,
            more,
        }) = self.span(connection).await?
        else {
            return Ok(DecisionPage::default());
        };
        let rows = self.rows(connection, &newest, &oldest).await?;
        let next_cursor = more.then(|| oldest.to_string());
        let mut outcomes = self.outcomes(connection, newest, oldest).await?;
        let decisions = rows.into_iter().map(|mut row| {
            let id = row.text(0)?;
            Ok(StoredDecision {
                corrected: row.flag(1)?,
                born_score: row.real(2)?,
                client: row.optional_text(4)?,
                records: row.flag(5)?,
                decision: write::decision::parse(&row.text(3)?)?,
                outcomes: outcomes.remove(&id).unwrap_or_default(),
            })
        });
        Ok(DecisionPage {
            decisions: decisions.collect::<Result<_, SqlError>>()?,
            next_cursor,
        })
    }
}

/// The ends of a page.
struct Span {
    newest: Cursor,
    oldest: Cursor,
    /// Whether there is a next page.
    more: bool,
}

impl Page {
    /// Where the page begins and ends. The bodies are only measured here: five hundred of them may not fit into memory.
    async fn span(&self, connection: &mut dyn Connection) -> Result<Option<Span>, SqlError> {
        const ALL: &str = "SELECT created, id, OCTET_LENGTH(body) + COALESCE(OCTET_LENGTH(client), 0) \
            FROM relay_decisions WHERE tenant = $1 AND created >= $2 AND (created, id) < ($3, $4) \
            ORDER BY created DESC, id DESC LIMIT $5";
        const OF_ONE: &str = "SELECT created, id, OCTET_LENGTH(body) + COALESCE(OCTET_LENGTH(client), 0) \
            FROM relay_decisions WHERE tenant = $1 AND created >= $2 AND (created, id) < ($3, $4) \
            AND conversation = $6 ORDER BY created DESC, id DESC LIMIT $5";
        let after = &self.after;
        let values = values![
            &*self.tenant,
            self.since,
            after.created,
            &*after.id,
            // One more says whether there is a next page.
            self.limit + 1,
            self.conversation.clone(),
        ];
        let rows = match &self.conversation {
            None => connection.query(ALL, &values[..5]).await?,
            Some(_) => connection.query(OF_ONE, values).await?,
        };
        let mut places = Vec::with_capacity(rows.len());
        let (mut bytes, mut more) = (0, false);
        for mut row in rows {
            bytes += row.count(2)?;
            let too_much = bytes > MOST_BYTES && !places.is_empty();
            if places.len() >= self.limit as usize || too_much {
                more = true;
                break;
            }
            let created = row.int(0)?;
            let id = row.text(1)?;
            places.push(Cursor { created, id });
        }
        let Some(oldest) = places.pop() else {
            return Ok(None);
        };
        let newest = places.into_iter().next();
        Ok(Some(Span {
            newest: newest.unwrap_or_else(|| oldest.clone()),
            oldest,
            more,
        }))
    }

    /// The decisions of a page. Its ends are given, so that decisions which came since push none out of it.
    async fn rows(
        &self,
        connection: &mut dyn Connection,
        newest: &Cursor,
        oldest: &Cursor,
    ) -> Result<Vec<Row>, SqlError> {
        const ALL: &str = "SELECT id, corrected, born_score, body, client, records FROM relay_decisions \
            WHERE tenant = $1 AND (created, id) >= ($2, $3) AND (created, id) <= ($4, $5) \
            ORDER BY created DESC, id DESC";
        const OF_ONE: &str = "SELECT id, corrected, born_score, body, client, records FROM relay_decisions \
            WHERE tenant = $1 AND (created, id) >= ($2, $3) AND (created, id) <= ($4, $5) \
            AND conversation = $6 ORDER BY created DESC, id DESC";
        let values = values![
            &*self.tenant,
            oldest.created,
            &*oldest.id,
            newest.created,
            &*newest.id,
            self.conversation.clone(),
        ];
        match &self.conversation {
            None => connection.query(ALL, &values[..5]).await,
            Some(_) => connection.query(OF_ONE, values).await,
        }
    }

    /// The outcomes of all decisions of a page. Its ends are given, so that decisions which came since change nothing.
    async fn outcomes(
        &self,
        connection: &mut dyn Connection,
        newest: Cursor,
        oldest: Cursor,
    ) -> Result<HashMap<String, Vec<StoredOutcome>>, SqlError> {
        // SQLite takes the tables of a cross join in this order; left to itself it walks over all outcomes.
        const GET: &str = "SELECT o.report, o.corrected, o.recorded, o.decision FROM relay_decisions d \
            CROSS JOIN relay_outcomes o WHERE o.tenant = d.tenant AND o.decision = d.id \
            AND d.tenant = $1 AND (d.created, d.id) >= ($2, $3) AND (d.created, d.id) <= ($4, $5) \
            AND (CAST($6 AS TEXT) IS NULL OR d.conversation = $6) ORDER BY o.decision, o.attempt";
        let values = values![
            &*self.tenant,
            oldest.created,
            oldest.id,
            newest.created,
            newest.id,
            self.conversation.clone(),
        ];
        let mut all: HashMap<String, Vec<StoredOutcome>> = HashMap::new();
        for mut row in connection.query(GET, values).await? {
            let outcome = write::outcome::parse(&mut row)?;
            all.entry(row.text(3)?).or_default().push(outcome);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let id = "0193d2b1-0000-7000-8000-000000000001".to_owned();
        let cursor = Cursor {
            created: 1_764_504_000_123,
            id,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in [
            "",
            ".",
            "12",
            "zz.0193d2b1-0000-7000-8000-000000000001",
            "1.x",
        ] {
            assert_eq!(Cursor::from_str(text), Err(StoreError::BadCursor), "{text}");
        }
    }
}
