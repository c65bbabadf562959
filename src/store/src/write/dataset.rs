//! Changes of a tenant's rows (training.md 2.4, 2.6): the caller looks at all rows and says what to change, while nobody
//! else changes them.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::SqlError;
use crate::records::{Dataset, DatasetEdit, RowWrite, StoredRow};
use crate::sql::{Cache, Rows, Transaction, Write, values};

/// Earlier versions kept of a row.
pub(crate) const MOST_VERSIONS: i64 = 5;
/// Rows that a writer remembers of all tenants, in bytes of their lines.
const REMEMBERED_BYTES: usize = 64 << 20;

/// Changes the rows of a tenant.
pub(crate) struct Edit<T> {
    pub(crate) tenant: Arc<str>,
    pub(crate) edit: DatasetEdit<T>,
}

impl<T: Send + 'static> Write for Edit<T> {
    type Answer = T;
    const WHAT: &'static str = "change learned tasks";
    // Tens of thousands of rows are read, changed and compared.
    const PATIENCE: u32 = 5;

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<T, SqlError> {
        let tenant = &self.tenant;
        let mut rows = current(transaction, tenant).await?;
        let edited = catch_unwind(AssertUnwindSafe(|| (self.edit)(&rows.dataset)));
        // The writer outlives what it is given to run.
        let (writes, answer) =
            edited.map_err(|_| SqlError::Refused("the change itself panicked".to_owned()))?;
        if !writes.is_empty() {
            rows.dataset.revision += 1;
            let mut gone = HashSet::new();
            for write in &writes {
                match write {
                    RowWrite::Put(row) => put(transaction, tenant, &mut rows, row).await?,
                    RowWrite::Remove(id) => {
                        remove(transaction, tenant, id).await?;
                        gone.extend(rows.found.remove(id));
                    }
                }
            }
            close_gaps(&mut rows, &gone);
            save(transaction, tenant, &rows).await?;
        }
        transaction.cache.remember(tenant, rows);
        Ok(answer)
    }
}

/// The rows as they are in this transaction.
async fn current(transaction: &mut Transaction<'_>, tenant: &Arc<str>) -> Result<Rows, SqlError> {
    const GET: &str =
        "SELECT revision, highest_session, next_place FROM relay_datasets WHERE tenant = $1";
    const ROWS: &str = "SELECT id, line FROM relay_rows WHERE tenant = $1 ORDER BY place";
    let remembered = transaction.cache.datasets.remove(tenant);
    let Some(row) = transaction.first(GET, values![&**tenant]).await? else {
        return Ok(Rows::default());
    };
    let revision = row.count(0)?;
    if let Some(rows) = remembered.filter(|rows| rows.dataset.revision == revision) {
        return Ok(rows);
    }
    let stored = transaction.query(ROWS, values![&**tenant]).await?;
    let stored = stored.into_iter().map(|mut row| {
        let (id, line) = (row.text(0)?, row.text(1)?);
        Ok(StoredRow { id, line })
    });
    let mut rows = Rows {
        dataset: Dataset {
            revision,
            highest_session_number: row.count(1)?,
            rows: stored.collect::<Result<_, SqlError>>()?,
        },
        next_place: row.int(2)?,
        found: HashMap::new(),
    };
    find_all(&mut rows);
    Ok(rows)
}

/// Notes where each row is.
fn find_all(rows: &mut Rows) {
    let all = rows.dataset.rows.iter().enumerate();
    rows.found = all.map(|(at, row)| (row.id.clone(), at)).collect();
}

/// Takes rows out of the dataset, by where they are: all at once, as it moves the others.
fn close_gaps(rows: &mut Rows, gone: &HashSet<usize>) {
    if gone.is_empty() {
        return;
    }
    let mut at = 0..;
    rows.dataset
        .rows
        .retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
    find_all(rows);
}

async fn put(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    rows: &mut Rows,
    row: &StoredRow,
) -> Result<(), SqlError> {
    const INSERT: &str = "INSERT INTO relay_rows (tenant, id, place, line) VALUES ($1, $2, $3, $4)";
    const UPDATE: &str = "UPDATE relay_rows SET line = $3 WHERE tenant = $1 AND id = $2";
    let revision = rows.dataset.revision;
    let known = rows.found.get(&row.id).copied();
    match known.and_then(|at| rows.dataset.rows.get_mut(at)) {
        Some(known) => {
            if known.line != row.line {
                keep_version(transaction, tenant, known, revision).await?;
                known.line.clone_from(&row.line);
                let values = values![&**tenant, &*row.id, &*row.line];
                transaction.execute(UPDATE, values).await?;
            }
        }
        None => {
            let values = values![&**tenant, &*row.id, rows.next_place, &*row.line];
            transaction.execute(INSERT, values).await?;
            rows.next_place += 1;
            let at = rows.dataset.rows.len();
            rows.found.insert(row.id.clone(), at);
            rows.dataset.rows.push(row.clone());
        }
    }
    let highest = &mut rows.dataset.highest_session_number;
    *highest = (*highest).max(session_number(&row.id).unwrap_or(0));
    Ok(())
}

/// Keeps a line that is about to be replaced, and no more than the newest few.
async fn keep_version(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    row: &StoredRow,
    revision: u64,
) -> Result<(), SqlError> {
    // A row that one edit replaces twice had one version before it.
    const PUT: &str = "INSERT INTO relay_row_versions (tenant, id, revision, line) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (tenant, id, revision) DO NOTHING";
    const TRIM: &str = "DELETE FROM relay_row_versions WHERE tenant = $1 AND id = $2 AND revision NOT IN \
        (SELECT revision FROM relay_row_versions WHERE tenant = $1 AND id = $2 ORDER BY revision DESC LIMIT $3)";
    let values = values![&**tenant, &*row.id, revision, &*row.line];
    transaction.execute(PUT, values).await?;
    let values = values![&**tenant, &*row.id, MOST_VERSIONS];
    transaction.execute(TRIM, values).await?;
    Ok(())
}

/// Forgetting a row is forgetting what it was before, too.
async fn remove(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    id: &str,
) -> Result<(), SqlError> {
    const ROW: &str = "DELETE FROM relay_rows WHERE tenant = $1 AND id = $2";
    const VERSIONS: &str = "DELETE FROM relay_row_versions WHERE tenant = $1 AND id = $2";
    for sql in [ROW, VERSIONS] {
        transaction.execute(sql, values![&**tenant, id]).await?;
    }
    Ok(())
}

async fn save(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    rows: &Rows,
) -> Result<(), SqlError> {
    const PUT: &str = "INSERT INTO relay_datasets (tenant, revision, highest_session, next_place, change) \
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant) DO UPDATE SET revision = excluded.revision, \
        highest_session = excluded.highest_session, next_place = excluded.next_place, change = excluded.change";
    let change = transaction.change();
    let dataset = &rows.dataset;
    let values = values![
        &**tenant,
        dataset.revision,
        dataset.highest_session_number,
        rows.next_place,
        change,
    ];
    transaction.execute(PUT, values).await?;
    Ok(())
}

/// The number in the id of a session row.
fn session_number(id: &str) -> Option<u64> {
    let digits = id.strip_prefix('s')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    // Numbers that do not fit a column are no numbers of ours.
    let number: u64 = digits.parse().ok().filter(|_| plain)?;
    i64::try_from(number).is_ok().then_some(number)
}

impl Cache {
    fn remember(&mut self, tenant: &Arc<str>, rows: Rows) {
        let bytes = |rows: &Rows| -> usize {
            let lines = rows.dataset.rows.iter();
            lines.map(|row| row.line.len()).sum()
        };
        let before: usize = self.datasets.values().map(bytes).sum();
        if before + bytes(&rows) > REMEMBERED_BYTES {
            self.datasets.clear();
        }
        if bytes(&rows) <= REMEMBERED_BYTES {
            self.datasets.insert(tenant.clone(), rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_session_rows_have_a_session_number() {
        for (id, number) in [
            ("s00012", Some(12)),
            ("s123456", Some(123_456)),
            ("r00012", None),
            ("s", None),
            ("s+1", None),
            ("s99999999999999999999", None),
            ("s18446744073709551615", None),
        ] {
            assert_eq!(session_number(id), number, "{id}");
        }
    }
}
