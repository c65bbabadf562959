//! What is removed by itself: events of a day, changes of a day beyond the newest ten thousand, tombstones of a month.

use rusqlite::params;

use super::feed::Feed;
use super::tables::{Meta, number, put_meta};
use super::transaction::{Stop, Transaction, signed};

const DAY_MILLIS: i64 = 24 * 3_600 * 1_000;
const TOMBSTONE_DAYS: i64 = 30;
/// Changes that are kept however old they are.
const NEWEST: u64 = 10_000;
/// Changes that are kept at most, however young they are: the file must not grow without end.
const MOST: u64 = 500_000;
/// What one transaction removes at most.
const AT_ONCE: u32 = 20_000;

/// Removes what is too old.
pub(crate) fn upkeep(all: &mut Transaction<'_>, feed: &Feed) -> rusqlite::Result<()> {
    match events(all).and_then(|()| Ok(changes(all, feed)?)) {
        Ok(()) => {}
        Err(Stop::Sql(error)) => return Err(error),
        Err(Stop::Refused(failure)) => {
            tracing::warn!(error = failure.message, "upkeep was refused")
        }
    }
    let oldest = all.at().as_millisecond() - TOMBSTONE_DAYS * DAY_MILLIS;
    all.connection()
        .prepare_cached("DELETE FROM tombstones WHERE at < ?1")?
        .execute([oldest])
        .map(drop)
}

fn events(all: &mut Transaction<'_>) -> Result<(), Stop> {
    let kinds: Vec<_> = all.catalog().resources().cloned().collect();
    let oldest = all.at().as_millisecond() - DAY_MILLIS;
    for resource in kinds {
        if !resource.is_event() || all.catalog().stored(&resource.key).is_none() {
            continue;
        }
        let sql = "SELECT objects.namespace, objects.name FROM objects JOIN changes ON changes.rv = objects.rv \
                   WHERE objects.kind = ?1 AND changes.at < ?2 LIMIT ?3";
        let old: Vec<(String, String)> = all
            .connection()
            .prepare_cached(sql)?
            .query_map(params![resource.key, oldest, AT_ONCE], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        for (namespace, name) in old {
            if let Some(event) = all.get(&resource.key, &namespace, &name)? {
                all.remove(&resource, event)?;
            }
        }
    }
    Ok(())
}

fn changes(all: &Transaction<'_>, feed: &Feed) -> rusqlite::Result<()> {
    let head = all.counts().version;
    let old: Option<i64> = all
        .connection()
        .prepare_cached("SELECT max(rv) FROM changes WHERE at < ?1")?
        .query_row([all.at().as_millisecond() - DAY_MILLIS], |row| row.get(0))?;
    let old = old.and_then(|rv| u64::try_from(rv).ok()).unwrap_or(0);
    let floor = old
        .min(head.saturating_sub(NEWEST))
        .max(head.saturating_sub(MOST));
    if floor <= number(all.connection(), Meta::Floor)? {
        return Ok(());
    }
    feed.raise_floor(floor);
    put_meta(all.connection(), Meta::Floor, &floor.to_string())?;
    let sql = "DELETE FROM changes WHERE rv IN (SELECT rv FROM changes WHERE rv <= ?1 \
               AND rv NOT IN (SELECT rv FROM objects) \
               AND rv NOT IN (SELECT before_rv FROM changes WHERE rv > ?1) LIMIT ?2)";
    all.connection()
        .prepare_cached(sql)?
        .execute(params![signed(floor), AT_ONCE])
        .map(drop)
}
