//! Reading: one object, a list as it was at any moment of the feed, and the changes after one.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::change::{Change, Verb};
use super::tables::{Meta, number};
use super::transaction::signed;
use crate::catalog::Resource;

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Want {
    /// Empty for all.
    pub(crate) namespace: String,
    /// Empty for all.
    pub(crate) name: String,
    /// Namespace and name of the object before the first.
    pub(crate) after: (String, String),
    /// Most objects of an answer.
    pub(crate) limit: Option<usize>,
    /// The moment; none for now.
    pub(crate) at: Option<u64>,
}

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Some objects, and when that was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) items: Vec<Item>,
    /// Whether there are more than the limit.
    pub(crate) is_cut: bool,
    /// How many follow; only counted where nothing is left out.
    pub(crate) remaining: Option<u64>,
}

/// Changes after some moment up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) after: u64,
    pub(crate) up_to: u64,
}

/// Changes that are read at once.
const CHANGES: u32 = 256;
/// Bytes of objects after which no further change is read.
const BYTES: usize = 4 << 20;

/// Runs reads that belong together.
fn together<T>(
    connection: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Ends when it is dropped, also by an error or a panic: one left open would hold the log, and fail all later reads.
    let _moment = connection.unchecked_transaction()?;
    read()
}

/// The text of one object.
pub(crate) fn text(
    connection: &Connection,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT namespace, name, metadata, spec, status, NULL FROM objects \
               WHERE kind = ?1 AND namespace = ?2 AND name = ?3";
    connection
        .prepare_cached(sql)?
        .query_row(params![resource.key, namespace, name], |row| {
            item(resource, row).map(|item| item.text)
        })
        .optional()
}

/// One object.
pub(super) fn value(
    connection: &Connection,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> rusqlite::Result<Option<Value>> {
    let text = text(connection, resource, namespace, name)?;
    text.map(|text| parse(&text)).transpose()
}

/// A stored text that does not parse was not written by us: the file is damaged.
fn parse(text: &str) -> rusqlite::Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// The last version that was committed.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u64> {
    number(connection, Meta::Version)
}

fn item(resource: &Resource, row: &Row<'_>) -> rusqlite::Result<Item> {
    let whole: Option<String> = row.get(5)?;
    let text = match whole {
        Some(text) => text,
        None => {
            let metadata = row.get_ref(2)?.as_str()?;
            let rest = row.get_ref(3)?.as_str()?;
            let status = row.get_ref(4)?.as_str_or_null()?;
            assemble(resource, metadata, rest, status)
        }
    };
    Ok(Item {
        namespace: row.get(0)?,
        name: row.get(1)?,
        text,
    })
}

fn assemble(resource: &Resource, metadata: &str, rest: &str, status: Option<&str>) -> String {
    let definition = &resource.definition;
    let mut text = format!(
        "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":{metadata}",
        resource.api_version(),
        definition.kind
    );
    let fields = rest.trim_start_matches('{');
    let fields = fields.strip_suffix('}').unwrap_or(fields);
    if !fields.is_empty() {
        text.push(',');
        text.push_str(fields);
    }
    if let Some(status) = status {
        text.push_str(",\"status\":");
        text.push_str(status);
    }
    text.push('}');
    text
}

/// Lists objects that `keep` wants; `None` keeps all and parses none.
pub(crate) fn list(
    connection: &Connection,
    resource: &Resource,
    want: &Want,
    keep: Option<&dyn Fn(&Value) -> bool>,
) -> rusqlite::Result<Page> {
    together(connection, || {
        let version = match want.at {
            Some(at) => at,
            None => version(connection)?,
        };
        // What changed since is there as it was before its first change since.
        let sql = "SELECT namespace, name, metadata, spec, status, NULL FROM objects \
                   WHERE kind = ?1 AND (?2 = '' OR namespace = ?2) AND (?3 = '' OR name = ?3) AND rv <= ?4 \
                   AND (namespace, name) > (?5, ?6) \
                   UNION ALL \
                   SELECT old.namespace, old.name, NULL, NULL, NULL, old.object \
                   FROM changes AS new JOIN changes AS old ON old.rv = new.before_rv \
                   WHERE new.kind = ?1 AND new.rv > ?4 AND new.before_rv BETWEEN 1 AND ?4 \
                   AND (?2 = '' OR old.namespace = ?2) AND (?3 = '' OR old.name = ?3) \
                   AND (old.namespace, old.name) > (?5, ?6) \
                   ORDER BY 1, 2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![
            resource.key,
            want.namespace,
            want.name,
            signed(version),
            want.after.0,
            want.after.1,
        ])?;
        let mut page = Page {
            version,
            ..Page::default()
        };
        while let Some(row) = rows.next()? {
            let item = item(resource, row)?;
            if let Some(keep) = keep
                && !keep(&parse(&item.text)?)
            {
                continue;
            }
            if want.limit.is_some_and(|limit| page.items.len() >= limit) {
                page.is_cut = true;
                break;
            }
            page.items.push(item);
        }
        drop(rows);
        if page.is_cut && keep.is_none() {
            page.remaining = remaining(connection, resource, want, &page)?;
        }
        Ok(page)
    })
}

fn remaining(
    connection: &Connection,
    resource: &Resource,
    want: &Want,
    page: &Page,
) -> rusqlite::Result<Option<u64>> {
    let Some(last) = page.items.last() else {
        return Ok(None);
    };
    let sql = "SELECT count(*) FROM objects WHERE kind = ?1 AND (?2 = '' OR namespace = ?2) \
               AND (?3 = '' OR name = ?3) AND (namespace, name) > (?4, ?5)";
    let count: i64 = connection.prepare_cached(sql)?.query_row(
        params![
            resource.key,
            want.namespace,
            want.name,
            last.namespace,
            last.name
        ],
        |row| row.get(0),
    )?;
    Ok(u64::try_from(count).ok())
}

/// Some of the changes of a kind, oldest first, and whether there may be more.
pub(crate) fn changes(
    connection: &Connection,
    kind: &Arc<str>,
    namespace: &str,
    span: Span,
) -> rusqlite::Result<(Vec<Arc<Change>>, bool)> {
    let sql = "SELECT new.rv, new.namespace, new.verb, new.object, old.object \
               FROM changes AS new LEFT JOIN changes AS old ON old.rv = new.before_rv AND new.before_rv > 0 \
               WHERE new.kind = ?1 AND new.rv > ?2 AND new.rv <= ?3 AND (?4 = '' OR new.namespace = ?4) \
               ORDER BY new.rv LIMIT ?5";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![
        kind,
        signed(span.after),
        signed(span.up_to),
        namespace,
        CHANGES
    ])?;
    let mut changes = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        if bytes > BYTES {
            return Ok((changes, true));
        }
        let version: i64 = row.get(0)?;
        let text: String = row.get(3)?;
        let before: Option<String> = row.get(4)?;
        bytes += text.len();
        let verb: String = row.get(2)?;
        changes.push(Arc::new(Change::new(
            u64::try_from(version).unwrap_or(0),
            kind.clone(),
            row.get(1)?,
            Verb::parse(&verb),
            (parse(&text)?, Bytes::from(text)),
            before.map(|text| parse(&text)).transpose()?,
        )));
    }
    let is_full = changes.len() == CHANGES as usize;
    Ok((changes, is_full))
}

/// Kind and name of what lies in a namespace.
pub(crate) fn in_namespace(
    connection: &Connection,
    namespace: &str,
) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT kind, name FROM objects WHERE namespace = ?1 ORDER BY kind, name";
    connection
        .prepare_cached(sql)?
        .query_map([namespace], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Whether anything lies in a namespace.
pub(crate) fn has_any(connection: &Connection, namespace: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM objects WHERE namespace = ?1")?
        .exists([namespace])
}

/// Kind, namespace and name of what an object owns.
pub(crate) fn owned_by(
    connection: &Connection,
    uid: &str,
) -> rusqlite::Result<Vec<(String, String, String)>> {
    let sql = "SELECT kind, namespace, name FROM owners WHERE owner = ?1 ORDER BY 1, 2, 3";
    connection
        .prepare_cached(sql)?
        .query_map([uid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// Whether there is an object of this uid.
pub(crate) fn is_alive(connection: &Connection, uid: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM objects WHERE uid = ?1")?
        .exists([uid])
}

/// Whether there was one within the last thirty days, and it was deleted.
pub(crate) fn was_deleted(connection: &Connection, uid: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM tombstones WHERE uid = ?1")?
        .exists([uid])
}
