//! A connection to the server, as the rest of the crate knows connections.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use bytes::BytesMut;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, WrongType, to_sql_checked};
use tokio_postgres::{Client, NoTls, Statement};

use super::address::Address;
use crate::error::SqlError;
use crate::sql::{BoxFuture, Connection, Row, Value};

/// An open connection. Dropped, it is closed, and so is what it had begun.
pub(crate) struct Connected {
    pub(crate) client: Client,
    /// Moves the bytes; ends with the connection.
    pub(crate) driver: JoinHandle<()>,
    statements: HashMap<&'static str, Statement>,
    place: String,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connected {
    /// Connects, and sets the bounds within which the server works for us.
    pub(crate) async fn open(address: &Address, deadline: Duration) -> Result<Self, SqlError> {
        let place = address.place();
        let slow = |_| SqlError::Away(format!("{place}: no answer within {deadline:?}"));
        timeout(deadline, Self::connect(address, deadline))
            .await
            .map_err(slow)?
    }

    async fn connect(address: &Address, deadline: Duration) -> Result<Self, SqlError> {
        let place = address.place();
        let (client, connection) = address
            .config
            .connect(NoTls)
            .await
            .map_err(|error| explain(&place, &error))?;
        let driver = tokio::spawn(async move {
            // Whoever uses the connection is told the same.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        let connected = Self {
            client,
            driver,
            statements: HashMap::new(),
            place,
        };
        let millis = deadline.as_millis();
        // A router that is stopped in the middle of a transaction must not stop the others. What is acknowledged is on
        // disk, whatever the server's default.
        let bounds = format!(
            "SET statement_timeout = {millis}; SET lock_timeout = {millis}; \
             SET idle_in_transaction_session_timeout = {}; \
             SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') = 'off'",
            millis * 2
        );
        connected.script(&bounds).await?;
        Ok(connected)
    }

    /// Runs statements that answer nothing.
    pub(crate) async fn script(&self, sql: &str) -> Result<(), SqlError> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|error| self.explain(&error))
    }

    async fn statement(&mut self, sql: &'static str) -> Result<Statement, SqlError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql).await;
        let statement = prepared.map_err(|error| self.explain(&error))?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    fn explain(&self, error: &tokio_postgres::Error) -> SqlError {
        explain(&self.place, error)
    }
}

/// Says what an error means. A server's details are left out: they hold values.
fn explain(place: &str, error: &tokio_postgres::Error) -> SqlError {
    match error.as_db_error() {
        Some(said) => {
            let code = said.code().code();
            let text = format!("{place}: {} ({code})", said.message());
            if is_refused(code) {
                SqlError::Refused(text)
            } else {
                SqlError::Away(text)
            }
        }
        None if error
            .source()
            .is_some_and(|source| source.is::<WrongType>()) =>
        {
            SqlError::Refused(format!("{place}: a value is not of its column's type"))
        }
        None => {
            let source = error.source().map(|source| format!(": {source}"));
            SqlError::Away(format!("{place}: {error}{}", source.unwrap_or_default()))
        }
    }
}

/// Whether it is the statement that is wrong, and not the server's condition (PostgreSQL manual, appendix A).
fn is_refused(code: &str) -> bool {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    let class = code.get(..2).unwrap_or_default();
    matches!(class, "21" | "22" | "23" | "42" | "54") && code != INSUFFICIENT_PRIVILEGE
}

impl Connection for Connected {
    fn execute<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<u64, SqlError>> {
        Box::pin(async move {
            let statement = self.statement(sql).await?;
            let changed = self.client.execute(&statement, &places(values)).await;
            changed.map_err(|error| self.explain(&error))
        })
    }

    fn query<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<Vec<Row>, SqlError>> {
        Box::pin(async move {
            let statement = self.statement(sql).await?;
            let rows = self.client.query(&statement, &places(values)).await;
            let rows = rows.map_err(|error| self.explain(&error))?;
            let read = |row: tokio_postgres::Row| {
                let values = (0..row.len()).map(|column| row.try_get(column));
                values.collect::<Result<_, _>>().map(Row)
            };
            let rows = rows.into_iter().map(read).collect::<Result<_, _>>();
            rows.map_err(|error| self.explain(&error))
        })
    }
}

fn places(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    let values = values.iter();
    values.map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// PostgreSQL's texts cannot hold the character 0; it is written as this noncharacter and a digit, and so is the
/// noncharacter itself. Equal texts stay equal.
const ESCAPE: char = '\u{10FFFF}';

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => out.extend([ESCAPE, '0']),
            ESCAPE => out.extend([ESCAPE, '1']),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn unescaped(text: &str) -> String {
    if !text.contains(ESCAPE) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE if chars.next() == Some('0') => out.push('\0'),
            c => out.push(c),
        }
    }
    out
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) if *ty == Type::INT8 => value.to_sql(ty, out),
            Self::Real(value) if *ty == Type::FLOAT8 => value.to_sql(ty, out),
            Self::Text(text) if *ty == Type::TEXT => escaped(text).to_sql(ty, out),
            _ => Err(Box::new(WrongType::new::<Self>(ty.clone()))),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Self::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Int(i64::from(i32::from_sql(ty, raw)?)),
            Type::FLOAT8 => Self::Real(f64::from_sql(ty, raw)?),
            _ => Self::Text(unescaped(<&str>::from_sql(ty, raw)?)),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT8 | Type::INT4 | Type::FLOAT8 | Type::TEXT | Type::VARCHAR | Type::UNKNOWN
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were() {
        for text in [
            "",
            "plain",
            "\0",
            "a\0b",
            "\u{10FFFF}",
            "\u{10FFFF}0",
            "\u{10FFFF}\0\0",
        ] {
            let stored = escaped(text);
            assert!(!stored.contains('\0'));
            assert_eq!(unescaped(&stored), text);
        }
    }

    #[test]
    fn a_server_in_trouble_is_away_and_a_bad_statement_is_refused() {
        for (name, code, refused) in [
            ("unique violation", "23505", true),
            ("value too long", "22001", true),
            ("no such table", "42P01", true),
            ("no right", "42501", false),
            ("disk full", "53100", false),
            ("shutting down", "57P01", false),
            ("statement time-out", "57014", false),
            ("lock time-out", "55P03", false),
            ("read only", "25006", false),
            ("deadlock", "40P01", false),
        ] {
            assert_eq!(is_refused(code), refused, "{name}");
        }
    }
}
