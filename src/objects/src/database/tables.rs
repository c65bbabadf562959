//! The tables (control-plane 9), and the few facts about the store itself.

use rusqlite::{Connection, OptionalExtension, params};
use store::file::{File, Layout, reason};

use crate::failure::Failure;

/// How `objects.db` is laid out. A file of a newer version is kept aside under the same name as a damaged one.
pub(crate) const LAYOUT: Layout = Layout {
    steps: &[|| include_str!("0001_objects.sql").to_owned()],
    start_tables: &["meta", "objects"],
    newer_word: "damaged",
};

/// What is known about the store itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    StoreId,
    /// The last resource version that was given out.
    Version,
    /// Changes up to this one are no longer in the feed.
    Floor,
    /// The back end in use.
    Backend,
}

impl Meta {
    const fn key(self) -> &'static str {
        match self {
            Self::StoreId => "store_id",
            Self::Version => "resource_version",
            Self::Floor => "feed_floor",
            Self::Backend => "backend",
        }
    }
}

/// Reads a fact.
pub(crate) fn meta(connection: &Connection, fact: Meta) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([fact.key()], |row| row.get(0))
        .optional()
}

/// A fact that is a number; 0 where it is not known.
pub(super) fn number(connection: &Connection, fact: Meta) -> rusqlite::Result<u64> {
    let text = meta(connection, fact)?.unwrap_or_default();
    Ok(text.parse().unwrap_or(0))
}

/// Writes a fact.
pub(crate) fn put_meta(connection: &Connection, fact: Meta, value: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")?
        .execute(params![fact.key(), value])
        .map(drop)
}

/// What an error of the file means to a client; a damaged file is remembered, so that the next start reads it through.
pub(crate) fn explain(file: &File, error: &rusqlite::Error) -> Failure {
    use rusqlite::ffi::ErrorCode;
    let path = file.raw.path().unwrap_or_default();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Failure::no_space(path),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            store::file::suspect(std::path::Path::new(path));
            tracing::error!(path, "the object store is damaged; restart to set it aside");
            Failure::internal(&format!("{path}: {}", reason(error)))
        }
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen,
        ) => Failure::unavailable(&format!("{path}: {}", reason(error))),
        _ => Failure::internal(&format!("{path}: {}", reason(error))),
    }
}
