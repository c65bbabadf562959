//! A connection to the file, as the rest of the crate knows connections.

use std::cell::Cell;
use std::future::{Future, ready};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rusqlite::ffi::ErrorCode;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{OpenFlags, ToSql};

use crate::error::SqlError;
use crate::sql::{BoxFuture, Connection, Row, Value};

/// Statements that stay compiled.
const CACHED_STATEMENTS: usize = 64;
/// Names of the places of a statement.
const PLACES: [&str; 16] = [
    "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15",
    "$16",
];

/// How long to wait for another process that writes to the same file (daemon.md 3.3), looking each millisecond: SQLite's
/// own handler looks ten times a second in the end, and finds a busy file busy each time.
pub(crate) const BUSY: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

fn wait_for_others(looked: i32) -> bool {
    std::thread::sleep(LOOK_AGAIN);
    u128::try_from(looked).is_ok_and(|looked| looked < BUSY.as_millis())
}

/// A connection and the file it is to.
#[derive(Debug)]
pub struct File {
    /// For statements of one's own.
    pub raw: rusqlite::Connection,
    path: PathBuf,
    /// Whether an answer ever said that the file is damaged.
    damaged: Cell<bool>,
}

impl File {
    /// Connects to a file that exists.
    ///
    /// # Errors
    /// When the system or SQLite refuses.
    pub fn connect(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut raw = rusqlite::Connection::open_with_flags(path, flags)?;
        raw.busy_handler(Some(wait_for_others))?;
        raw.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(Self {
            raw,
            path: path.to_owned(),
            damaged: Cell::new(false),
        })
    }

    /// Sets what every connection needs. Changes the file to WAL if it is not.
    ///
    /// # Errors
    /// When the file is not writable or no database.
    pub fn set_up(&self) -> rusqlite::Result<()> {
        self.raw.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
             PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192; PRAGMA journal_size_limit = 67108864; \
             PRAGMA wal_autocheckpoint = 4000;",
        )
    }

    /// Runs statements that answer nothing.
    pub(crate) fn script(&self, sql: &str) -> Result<(), SqlError> {
        self.raw
            .execute_batch(sql)
            .map_err(|error| self.explain(&error))
    }

    /// Whether an answer ever said that the file is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.get()
    }

    fn statement(
        &self,
        sql: &'static str,
        values: &[Value],
    ) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        let mut statement = self.raw.prepare_cached(sql)?;
        for (value, name) in values.iter().zip(PLACES) {
            // A place that the statement leaves out is nothing to bind.
            if let Some(place) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(place, value)?;
            }
        }
        Ok(statement)
    }

    fn execute_now(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<u64> {
        let mut statement = self.statement(sql, values)?;
        let changed = statement.raw_execute()?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn query_now(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.statement(sql, values)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(value) => Value::Int(value),
                    ValueRef::Real(value) => Value::Real(value),
                    ValueRef::Text(text) | ValueRef::Blob(text) => Value::Text(owned(text)),
                })
            });
            all.push(Row(values.collect::<rusqlite::Result<_>>()?));
        }
        Ok(all)
    }

    /// Says what an error means, and where.
    pub(crate) fn explain(&self, error: &rusqlite::Error) -> SqlError {
        let said = format!("{}: {}", self.path.display(), reason(error));
        let code = error.sqlite_error_code();
        if code == Some(ErrorCode::DatabaseCorrupt) {
            self.damaged.set(true);
        }
        match code {
            Some(
                ErrorCode::ConstraintViolation
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::ApiMisuse
                | ErrorCode::Unknown,
            )
            | None => SqlError::Refused(said),
            Some(_) => SqlError::Away(said),
        }
    }
}

/// SQLite's texts are what was put in, unless the file is damaged.
fn owned(text: &[u8]) -> String {
    match str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    }
}

/// An error without the statement, in words a person knows.
#[must_use]
pub fn reason(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "no space left on the disk".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process is writing to it and does not end".to_owned()
        }
        Some(ErrorCode::ReadOnly) => "it may not be written to".to_owned(),
        Some(ErrorCode::CannotOpen) => "it cannot be opened".to_owned(),
        Some(ErrorCode::DatabaseCorrupt) => "it is damaged".to_owned(),
        Some(ErrorCode::NotADatabase) => "it is not a database".to_owned(),
        _ => match error {
            rusqlite::Error::SqliteFailure(code, text) => {
                text.clone().unwrap_or_else(|| code.to_string())
            }
            other => other.to_string(),
        },
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Connection for File {
    fn execute<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<u64, SqlError>> {
        let done = self.execute_now(sql, values);
        Box::pin(ready(done.map_err(|error| self.explain(&error))))
    }

    fn query<'a>(
        &'a mut self,
        sql: &'static str,
        values: &'a [Value],
    ) -> BoxFuture<'a, Result<Vec<Row>, SqlError>> {
        let rows = self.query_now(sql, values);
        Box::pin(ready(rows.map_err(|error| self.explain(&error))))
    }
}

/// Runs a future that never waits, as all on this engine do.
pub(crate) fn now<T>(future: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(SqlError::Refused(
            "a statement waited where nothing waits".to_owned(),
        )),
    }
}
