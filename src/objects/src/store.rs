//! The store as its users see it: opened once, asked through a service, closed.

mod instance;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use store::file::{File, Readers, open_alone, reason};
use tokio::sync::Semaphore;

use crate::catalog::Catalog;
use crate::database::{
    Counts, Feed, LAYOUT, Meta, Queue, Writer, explain, meta, put_meta, snapshot, start, transact,
};
use crate::failure::Failure;
use crate::operation;
use crate::options::{Clock, Notice, ObjectStoreOptions, OpenError};
use crate::rest::{Documents, ObjectService};
use instance::Settled;

/// How long to wait for another process to let go of the file: one that ends takes a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// What each reading thread keeps of the file in memory: the system's cache has the rest.
const READER_CACHE_KIB: u32 = 1_024;
/// Writes that may be under way. Each may hold a body of 3 MiB.
const WRITES: usize = 64;

/// A store that was opened, and what a person should know about that.
#[derive(Debug)]
pub struct Opened {
    /// Ready for use.
    pub store: ObjectStore,
    /// To be said at start.
    pub notices: Vec<Notice>,
}

/// A handle; clones share one file and one writer.
#[derive(Clone)]
pub struct ObjectStore(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) queue: Queue,
    pub(crate) readers: Readers,
    pub(crate) feed: Arc<Feed>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) documents: Documents,
    pub(crate) clock: Clock,
    pub(crate) writes: Semaphore,
    pub(crate) bookmarks: Duration,
    id: String,
    path: PathBuf,
}

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectStore")
            .field("path", &self.0.path)
            .field("id", &self.0.id)
            .finish_non_exhaustive()
    }
}

impl ObjectStore {
    /// Opens `objects.db` at `path`: made if it is not there, kept aside if it is damaged or newer than this program. The
    /// store's id is also in the file `instance`, and outlives the store there. Blocks while it reads the file.
    ///
    /// # Errors
    /// When the file cannot be made, read or written, another process has it, or a document is no CRD.
    pub fn open(
        path: &Path,
        instance: &Path,
        options: ObjectStoreOptions,
    ) -> Result<Opened, OpenError> {
        let catalog = Arc::new(Catalog::new(&options.documents)?);
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            files::make_private_folder(folder).map_err(|error| unusable(path, &error))?;
        }
        let (file, set_aside, lock) = open_alone(path, &LAYOUT, (options.clock)(), LOCK_PATIENCE)?
            .ok_or_else(|| OpenError::InUse {
                path: path.to_owned(),
            })?;
        let mut notices: Vec<Notice> = set_aside.into_iter().map(into_notice).collect();
        let told = |error: rusqlite::Error| OpenError::File {
            path: path.to_owned(),
            reason: reason(&error),
        };
        bound(&file.raw, options.max_file_bytes).map_err(told)?;
        let is_set_aside = !notices.is_empty();
        let Settled { id, is_replaced } =
            instance::settle(&file.raw, instance, &options, &mut notices)?;
        first_version(&file.raw, is_set_aside || is_replaced, &options.clock).map_err(told)?;
        let counts = counts(&file.raw, &catalog).map_err(told)?;
        // Every object lies in a namespace, and there is always one.
        let now = (options.clock)();
        let (counts, _) = transact(&file.raw, &catalog, counts, now, |all| {
            operation::default_namespace(all)
        })
        .map_err(told)?;
        let floor = meta(&file.raw, Meta::Floor).map_err(told)?;
        let floor = floor.and_then(|text| text.parse().ok()).unwrap_or(0);
        let readers = Readers::start_with_cache(path, options.readers, READER_CACHE_KIB)?;
        let feed = Arc::new(Feed::new(counts.version, floor));
        let (queue, commands) = Queue::new();
        let writer = Writer {
            file,
            commands,
            feed: feed.clone(),
            catalog: catalog.clone(),
            clock: options.clock.clone(),
            counts,
            lock,
        };
        start(writer).map_err(OpenError::Thread)?;
        let store = Self(Arc::new(Inner {
            queue,
            readers,
            feed,
            catalog,
            documents: Documents::default(),
            clock: options.clock,
            writes: Semaphore::new(WRITES),
            bookmarks: options.bookmarks,
            id,
            path: path.to_owned(),
        }));
        Ok(Opened { store, notices })
    }

    /// The service that speaks the Kubernetes API: for `kube::Client::new(store.service(), "default")`, and for servers.
    #[must_use]
    pub fn service(&self) -> ObjectService {
        ObjectService::new(self.0.clone())
    }

    /// Which store this is, in hex; the same for as long as the file or `instance` is there.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether an object of this uid was deleted within the last thirty days.
    ///
    /// # Errors
    /// When the file does not answer.
    pub async fn was_deleted(&self, uid: &str) -> Result<bool, ReadError> {
        let uid = uid.to_owned();
        let read = move |connection: &Connection| snapshot::was_deleted(connection, &uid);
        self.0
            .read("look for a tombstone", read)
            .await
            .map_err(ReadError::from)
    }

    /// The back end that was in use last.
    ///
    /// # Errors
    /// When the file does not answer.
    pub async fn backend(&self) -> Result<Option<String>, ReadError> {
        let read = |connection: &Connection| meta(connection, Meta::Backend);
        let found = self.0.read("read the back end in use", read).await;
        found.map_err(ReadError::from)
    }

    /// Notes the back end in use.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn set_backend(&self, name: &str) -> Result<(), ReadError> {
        let name = name.to_owned();
        let written = self
            .0
            .queue
            .run(move |all| Ok(put_meta(all.connection(), Meta::Backend, &name)?));
        written.await.map_err(ReadError::from)
    }

    /// Writes what waits, ends all watches and lets go of the file; what is asked after it is refused.
    ///
    /// # Errors
    /// When that did not happen within the deadline.
    pub async fn close(&self, deadline: Duration) -> Result<(), ReadError> {
        let inner = self.0.clone();
        let closed = tokio::task::spawn_blocking(move || {
            if let Some(answer) = inner.queue.close() {
                // Where the writer has gone before it could answer, there is nothing to wait for.
                let _ = answer.blocking_recv();
            }
            inner.feed.close();
            inner.readers.close();
        });
        match tokio::time::timeout(deadline, closed).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(ReadError(format!("closing the object store: {error}"))),
            Err(_) => Err(ReadError(
                "the object store did not close in time".to_owned(),
            )),
        }
    }
}

/// What the store was asked besides its service, and could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self(failure.message)
    }
}

impl Inner {
    /// Reads on one of the reading threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let read = self
            .readers
            .run(what, move |file: &mut File| {
                read(&file.raw).map_err(|error| explain(file, &error))
            })
            .await;
        match read {
            Ok(read) => read,
            Err(error) => Err(Failure::unavailable(&error.to_string())),
        }
    }
}

/// Bounds the file. SQLite refuses what does not fit as it does on a full disk.
fn bound(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = bytes / u64::try_from(page).unwrap_or(4_096).max(1);
    let pages = i64::try_from(pages)
        .unwrap_or(i64::MAX)
        .min(i64::from(u32::MAX - 1));
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}

fn unusable(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn into_notice(notice: store::Notice) -> Notice {
    match notice {
        store::Notice::SetAside { path, reason } => Notice::SetAside { path, reason },
    }
}

/// A store that takes the place of another begins above all versions that the other can have given out, so that nobody takes
/// an old version for a new one: fewer than one a millisecond were.
fn first_version(
    connection: &Connection,
    is_replaced: bool,
    clock: &Clock,
) -> rusqlite::Result<()> {
    if !is_replaced || snapshot::version(connection)? > 0 {
        return Ok(());
    }
    let version = clock().as_millisecond().max(1).to_string();
    put_meta(connection, Meta::Version, &version)?;
    put_meta(connection, Meta::Floor, &version)
}

fn counts(connection: &Connection, catalog: &Catalog) -> rusqlite::Result<Counts> {
    let mut counts = Counts {
        version: snapshot::version(connection)?,
        objects: 0,
        events: 0,
    };
    let mut statement = connection.prepare("SELECT kind, count(*) FROM objects GROUP BY kind")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, count): (String, i64) = (row.get(0)?, row.get(1)?);
        let count = usize::try_from(count).unwrap_or(0);
        match catalog.stored(&kind) {
            Some(resource) if resource.is_event() => counts.events += count,
            _ => counts.objects += count,
        }
    }
    Ok(counts)
}
