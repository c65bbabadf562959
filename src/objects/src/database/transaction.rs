//! What an operation can do while it runs: read and write objects. Each write is a change with the next resource version.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

use super::change::{Change, Verb};
use super::snapshot;
use crate::catalog::{Catalog, Resource};
use crate::failure::Failure;

/// Most bytes of an object.
const MAX_OBJECT: usize = 1 << 20;
/// How much more one may have that is about to go: the largest must still be able to.
const END_ROOM: usize = 64 << 10;
/// Most objects that are no events.
const MAX_OBJECTS: usize = 10_000;
/// Most events.
pub(super) const MAX_EVENTS: usize = 1_000;

/// Why an operation ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It must not happen.
    Refused(Failure),
    /// The file does not do it.
    Sql(rusqlite::Error),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// What the writer knows without asking the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The last resource version that was given out.
    pub(crate) version: u64,
    pub(crate) objects: usize,
    pub(crate) events: usize,
}

/// A state to go back to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    counts: Counts,
    changes: usize,
}

/// A transaction that several operations share.
pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    catalog: &'a Catalog,
    at: Timestamp,
    counts: Counts,
    changes: Vec<Arc<Change>>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        catalog: &'a Catalog,
        counts: Counts,
        at: Timestamp,
    ) -> Self {
        Self {
            connection,
            catalog,
            at,
            counts,
            changes: Vec::new(),
        }
    }

    pub(super) fn end(self) -> (Counts, Vec<Arc<Change>>) {
        (self.counts, self.changes)
    }

    pub(super) fn mark(&self) -> rusqlite::Result<Mark> {
        self.connection
            .prepare_cached("SAVEPOINT operation")?
            .execute([])?;
        Ok(Mark {
            counts: self.counts,
            changes: self.changes.len(),
        })
    }

    pub(super) fn keep(&self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("RELEASE operation")?
            .execute([])
            .map(drop)
    }

    pub(super) fn undo(&mut self, mark: Mark) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("ROLLBACK TO operation")?
            .execute([])?;
        self.counts = mark.counts;
        self.changes.truncate(mark.changes);
        self.keep()
    }

    /// Undoes what `work` wrote, and answers what it said: a dry run.
    pub(crate) fn dry<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.connection
            .prepare_cached("SAVEPOINT dry")?
            .execute([])?;
        let mark = Mark {
            counts: self.counts,
            changes: self.changes.len(),
        };
        let answer = work(self);
        if matches!(answer, Err(Stop::Sql(_))) {
            // The whole transaction is undone, and may be by now: on a full disk SQLite does it.
            return answer;
        }
        self.connection
            .prepare_cached("ROLLBACK TO dry")?
            .execute([])?;
        self.connection.prepare_cached("RELEASE dry")?.execute([])?;
        self.counts = mark.counts;
        self.changes.truncate(mark.changes);
        answer
    }

    /// What was changed so far.
    pub(crate) fn changes(&self) -> &[Arc<Change>] {
        &self.changes
    }

    pub(crate) const fn connection(&self) -> &'a Connection {
        self.connection
    }

    pub(crate) const fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// When this is.
    pub(crate) const fn at(&self) -> Timestamp {
        self.at
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    /// The stored object of a name.
    pub(crate) fn get(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Stop> {
        let Some(resource) = self.catalog.stored(kind) else {
            return Ok(None);
        };
        Ok(snapshot::value(self.connection, resource, namespace, name)?)
    }

    /// Stores an object. `before` is what is stored now.
    pub(crate) fn put(
        &mut self,
        resource: &Resource,
        object: Value,
        before: Option<Value>,
    ) -> Result<Arc<Change>, Stop> {
        if before.is_none() {
            self.make_room(resource, &object)?;
        }
        let verb = if before.is_some() {
            Verb::Modified
        } else {
            Verb::Added
        };
        let change = self.changed(resource, verb, object, before)?;
        let row = Row::of(&change.object);
        let metadata = row.metadata.to_string();
        let spec = Value::Object(row.rest).to_string();
        let status = row.status.map(Value::to_string);
        let sql = "INSERT INTO objects (kind, namespace, name, uid, rv, generation, metadata, spec, status) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                   ON CONFLICT (kind, namespace, name) DO UPDATE SET \
                   uid = ?4, rv = ?5, generation = ?6, metadata = ?7, spec = ?8, status = ?9";
        self.connection.prepare_cached(sql)?.execute(params![
            resource.key,
            row.namespace,
            row.name,
            row.uid,
            signed(change.version),
            row.metadata["generation"].as_i64().unwrap_or(0),
            metadata,
            spec,
            status,
        ])?;
        self.note_owners(resource, &change)?;
        Ok(change)
    }

    /// Removes an object as it is stored.
    pub(crate) fn remove(
        &mut self,
        resource: &Resource,
        object: Value,
    ) -> Result<Arc<Change>, Stop> {
        self.remove_as(resource, object.clone(), object)
    }

    /// Removes an object. `object` is its last state, as it is told; `before` is what is stored.
    pub(crate) fn remove_as(
        &mut self,
        resource: &Resource,
        object: Value,
        before: Value,
    ) -> Result<Arc<Change>, Stop> {
        let change = self.changed(resource, Verb::Deleted, object, Some(before))?;
        let row = Row::of(&change.object);
        let key = params![resource.key, row.namespace, row.name];
        for sql in [
            "DELETE FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
            "DELETE FROM owners WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
        ] {
            self.connection.prepare_cached(sql)?.execute(key)?;
        }
        if resource.is_event() {
            self.counts.events = self.counts.events.saturating_sub(1);
        } else {
            self.counts.objects = self.counts.objects.saturating_sub(1);
            let sql = "INSERT OR REPLACE INTO tombstones (uid, kind, namespace, name, at) VALUES (?1, ?2, ?3, ?4, ?5)";
            self.connection.prepare_cached(sql)?.execute(params![
                row.uid,
                resource.key,
                row.namespace,
                row.name,
                self.at.as_millisecond(),
            ])?;
        }
        Ok(change)
    }

    /// Counts a new object, or refuses it. Of events the oldest goes.
    fn make_room(&mut self, resource: &Resource, object: &Value) -> Result<(), Stop> {
        if resource.is_event() {
            while self.counts.events >= MAX_EVENTS {
                let Some((namespace, name)) = self.oldest(&resource.key)? else {
                    break;
                };
                let Some(oldest) = self.get(&resource.key, &namespace, &name)? else {
                    break;
                };
                self.remove(resource, oldest)?;
            }
            self.counts.events += 1;
            return Ok(());
        }
        if self.counts.objects >= MAX_OBJECTS {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("the local store holds at most {MAX_OBJECTS} objects");
            return Err(Failure::forbidden(resource.about(name), &why).into());
        }
        self.counts.objects += 1;
        Ok(())
    }

    fn oldest(&self, kind: &str) -> rusqlite::Result<Option<(String, String)>> {
        let sql = "SELECT namespace, name FROM objects WHERE kind = ?1 ORDER BY rv LIMIT 1";
        self.connection
            .prepare_cached(sql)?
            .query_row([kind], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
    }

    /// Gives the change its version and writes it down.
    fn changed(
        &mut self,
        resource: &Resource,
        verb: Verb,
        mut object: Value,
        before: Option<Value>,
    ) -> Result<Arc<Change>, Stop> {
        let version = self.counts.version + 1;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let text = object.to_string();
        let row = Row::of(&object);
        let limit = if row.metadata["deletionTimestamp"].is_string() {
            MAX_OBJECT + END_ROOM
        } else {
            MAX_OBJECT
        };
        if text.len() > limit && verb != Verb::Deleted {
            let why = format!("the object has {} bytes, limit is {limit}", text.len());
            return Err(Failure::too_large(&why).into());
        }
        let before_version = before
            .as_ref()
            .and_then(|before| before["metadata"]["resourceVersion"].as_str())
            .and_then(|text| text.parse().ok())
            .unwrap_or(0_i64);
        let sql = "INSERT INTO changes (rv, at, kind, namespace, name, uid, verb, before_rv, object) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.connection.prepare_cached(sql)?.execute(params![
            signed(version),
            self.at.as_millisecond(),
            resource.key,
            row.namespace,
            row.name,
            row.uid,
            verb.as_str(),
            before_version,
            text,
        ])?;
        self.counts.version = version;
        let namespace = row.namespace.to_owned();
        let kind = resource.key.clone();
        let state = (object, Bytes::from(text));
        let change = Arc::new(Change::new(version, kind, namespace, verb, state, before));
        self.changes.push(change.clone());
        Ok(change)
    }

    fn note_owners(&self, resource: &Resource, change: &Change) -> rusqlite::Result<()> {
        let owners = |object: &Value| -> Vec<String> {
            let list = object["metadata"]["ownerReferences"].as_array();
            let list = list.map(Vec::as_slice).unwrap_or_default();
            let uids = list.iter().filter_map(|owner| owner["uid"].as_str());
            uids.map(str::to_owned).collect()
        };
        let now = owners(&change.object);
        if change.before.as_ref().map(owners).unwrap_or_default() == now {
            return Ok(());
        }
        let row = Row::of(&change.object);
        self.connection
            .prepare_cached("DELETE FROM owners WHERE kind = ?1 AND namespace = ?2 AND name = ?3")?
            .execute(params![resource.key, row.namespace, row.name])?;
        for owner in now {
            let sql = "INSERT OR IGNORE INTO owners (kind, namespace, name, owner) VALUES (?1, ?2, ?3, ?4)";
            self.connection.prepare_cached(sql)?.execute(params![
                resource.key,
                row.namespace,
                row.name,
                owner
            ])?;
        }
        Ok(())
    }
}

/// SQLite's numbers have a sign; versions never come near the end.
pub(super) fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// An object as columns.
struct Row<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    metadata: &'a Value,
    status: Option<&'a Value>,
    rest: Map<String, Value>,
}

impl<'a> Row<'a> {
    fn of(object: &'a Value) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let others = object.as_object().into_iter().flat_map(Map::iter);
        let rest = others
            .filter(|(key, _)| {
                !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status")
            })
            .map(|(key, value)| (key.clone(), value.clone()));
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            metadata,
            status: object.get("status"),
            rest: rest.collect(),
        }
    }
}
