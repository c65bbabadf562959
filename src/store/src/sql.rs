//! The little of SQL that both engines share: values, rows and a connection. Every statement is written once, with
//! `$1`-style places; integers are 64 bits, times are milliseconds since 1970, ids and JSON are text.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use routing::quota::QuotaState;
use uuid::Uuid;

use crate::error::SqlError;
use crate::records::Dataset;
use crate::write::quota;

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One value of a row or of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u64> for Value {
    /// Beyond 2⁶³ − 1 no count of ours goes; a client's may, and stays at the top.
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Int(value.as_millisecond())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The values for the places of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// One row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    /// Takes a text out of the row.
    pub(crate) fn text(&mut self, column: usize) -> Result<String, SqlError> {
        self.optional_text(column)?
            .ok_or_else(|| unexpected(column, "a text"))
    }

    pub(crate) fn optional_text(&mut self, column: usize) -> Result<Option<String>, SqlError> {
        match self.0.get_mut(column) {
            Some(Value::Text(text)) => Ok(Some(std::mem::take(text))),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column, "a text")),
        }
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, SqlError> {
        self.optional_int(column)?
            .ok_or_else(|| unexpected(column, "a number"))
    }

    pub(crate) fn optional_int(&self, column: usize) -> Result<Option<i64>, SqlError> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column, "a number")),
        }
    }

    pub(crate) fn count(&self, column: usize) -> Result<u64, SqlError> {
        let value = self.int(column)?;
        u64::try_from(value).map_err(|_| unexpected(column, "a count"))
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, SqlError> {
        Ok(self.int(column)? != 0)
    }

    /// A sum of no rows is nothing, and counts as 0.
    pub(crate) fn real(&self, column: usize) -> Result<f64, SqlError> {
        match self.0.get(column) {
            Some(Value::Real(value)) => Ok(*value),
            // SQLite stores whole numbers as integers where it can.
            Some(Value::Int(value)) => Ok(*value as f64),
            Some(Value::Null) => Ok(0.0),
            _ => Err(unexpected(column, "a number")),
        }
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, SqlError> {
        Timestamp::from_millisecond(self.int(column)?).map_err(|_| unexpected(column, "a time"))
    }
}

fn unexpected(column: usize, wanted: &str) -> SqlError {
    SqlError::Refused(format!("column {column} of an answer is not {wanted}"))
}

/// A connection of either engine, inside a transaction or not. SQLite's futures are ready at once.
pub(crate) trait Connection: Send {
    /// Runs a statement; how many rows it changed.
    fn execute<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<u64, SqlError>>;

    /// Runs a statement that answers rows.
    fn query<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<Vec<Row>, SqlError>>;
}

/// The first row of an answer.
pub(crate) async fn first(
    connection: &mut dyn Connection,
    sql: &'static str,
    values: &[Value],
) -> Result<Option<Row>, SqlError> {
    Ok(connection.query(sql, values).await?.into_iter().next())
}

/// A read: what it asks and what it makes of the answer.
pub(crate) trait Read: Send + Sync + 'static {
    /// What it answers.
    type Answer: Send + 'static;
    /// For errors: `read a decision`.
    const WHAT: &'static str;

    fn read(
        &self,
        connection: &mut dyn Connection,
    ) -> impl Future<Output = Result<Self::Answer, SqlError>> + Send;
}

/// A write. May be applied more than once if its group is rolled back; nothing it did before is there then.
pub(crate) trait Write: Send + Sync + 'static {
    /// What it answers once it is on disk.
    type Answer: Send + 'static;
    /// For errors: `record an outcome`.
    const WHAT: &'static str;

    /// How many times the usual deadline its caller waits.
    const PATIENCE: u32 = 1;

    /// Roughly the memory it takes while it waits.
    fn bytes(&self) -> usize {
        512
    }

    fn apply(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> impl Future<Output = Result<Self::Answer, SqlError>> + Send;
}

/// A group of writes under way: the connection and the next number of the change feed. The counter's row is locked from
/// the start of the transaction to its end, so that the order of numbers is the order of commits.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a mut dyn Connection,
    /// Datasets as this transaction left them.
    pub(crate) cache: &'a mut Cache,
    /// Quota that this transaction looked at, by tenant and provider; what it changed is written once, at its end.
    pub(crate) quota: BTreeMap<(Arc<str>, String), Quota>,
    first: i64,
    next: i64,
}

/// A provider's quota in a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    pub(crate) state: QuotaState,
    /// When it was changed last, if it is not what is stored.
    pub(crate) changed: Option<Timestamp>,
}

/// What a writer remembers from one transaction to the next; to be thrown away when one is rolled back.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// The last revision of a tenant's rows that was written or read. The database says whether it still is the last.
    pub(crate) datasets: HashMap<Arc<str>, Rows>,
}

/// A tenant's rows and where the next one goes.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) dataset: Dataset,
    pub(crate) next_place: i64,
    /// Where in the dataset a row is, by its id.
    pub(crate) found: HashMap<String, usize>,
}

impl<'a> Transaction<'a> {
    /// Takes the lock and the first number; the engine has begun its transaction.
    pub(crate) async fn begin(
        connection: &'a mut dyn Connection,
        cache: &'a mut Cache,
    ) -> Result<Self, SqlError> {
        const TAKE: &str =
            "UPDATE relay_counter SET value = value + 1 WHERE id = 1 RETURNING value";
        let row = first(connection, TAKE, &[]).await?;
        let first = row
            .ok_or_else(|| SqlError::Refused("the counter of changes is gone".to_owned()))?
            .int(0)?;
        Ok(Self {
            connection,
            cache,
            quota: BTreeMap::new(),
            first,
            next: first,
        })
    }

    /// The number of the next change.
    pub(crate) const fn change(&mut self) -> i64 {
        let change = self.next;
        self.next += 1;
        change
    }

    /// Writes the quota that changed and how many numbers were used; the engine commits after it.
    pub(crate) async fn end(mut self) -> Result<(), SqlError> {
        const PUT: &str = "UPDATE relay_counter SET value = $1 WHERE id = 1";
        quota::store(&mut self).await?;
        let last = self.next - 1;
        if last > self.first {
            self.connection.execute(PUT, values![last]).await?;
        }
        Ok(())
    }

    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<u64, SqlError> {
        self.connection.execute(sql, values).await
    }

    pub(crate) async fn first(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<Option<Row>, SqlError> {
        first(self.connection, sql, values).await
    }

    pub(crate) async fn query(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<Vec<Row>, SqlError> {
        self.connection.query(sql, values).await
    }
}
