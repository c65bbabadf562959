//! The store as its users see it: what it can be asked, whichever engine is behind it.

mod pruning;
mod reads;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{OpenError, StoreError};
use crate::options::{Location, Notice, StoreOptions};
use crate::postgres;
use crate::queue::{Pending, Queue, Up};
use crate::records::Kept;
use crate::sql::{Read, Write};
use crate::sqlite;

/// A store that was opened, and what a person should know about that.
#[derive(Debug)]
pub struct Opened {
    /// Ready for use; of PostgreSQL it may be away at first.
    pub store: Store,
    /// To be said at start.
    pub notices: Vec<Notice>,
}

/// A handle; clones share one queue and one writer.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    queue: Queue,
    engine: Engine,
    up: watch::Receiver<bool>,
    deadline: Duration,
}

enum Engine {
    Sqlite(sqlite::Readers),
    Postgres(postgres::Readers),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("up", &self.is_up())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store. A file is made if it is not there and kept aside if it is damaged or newer than this program; a
    /// server that does not answer is tried again in the background for ever.
    ///
    /// # Errors
    /// When the file cannot be made, read or written, or the address of the database is malformed.
    pub async fn open(location: Location, options: StoreOptions) -> Result<Opened, OpenError> {
        match location {
            Location::Sqlite(path) => {
                // Opening reads and syncs a file; the runtime must not wait for that.
                tokio::task::spawn_blocking(move || Self::open_file(path, &options))
                    .await
                    .map_err(|error| OpenError::Thread(std::io::Error::other(error)))?
            }
            Location::Postgres(url) => Self::open_server(&url, &options).await,
        }
    }

    fn open_file(path: PathBuf, options: &StoreOptions) -> Result<Opened, OpenError> {
        let (file, notices) = sqlite::open(&path, &sqlite::LAYOUT, Timestamp::now())?;
        let readers = sqlite::Readers::start(&path, options.readers)?;
        let (queue, commands) = Queue::new(options);
        let (set_up, up) = watch::channel(true);
        let pending = Pending::new(commands, options.group.max(1));
        sqlite::start(file, path, pending, Up::new(set_up)).map_err(OpenError::Thread)?;
        let inner = Inner {
            queue,
            engine: Engine::Sqlite(readers),
            up,
            deadline: options.deadline,
        };
        let store = Self(Arc::new(inner));
        Ok(Opened { store, notices })
    }

    async fn open_server(url: &str, options: &StoreOptions) -> Result<Opened, OpenError> {
        let deadline = options.deadline;
        let address = postgres::Address::parse(url, deadline)
            .map_err(|reason| OpenError::Address { reason })?;
        let (queue, commands) = Queue::new(options);
        let (set_up, up) = watch::channel(false);
        let (tried, mut was_tried) = watch::channel(false);
        let reachable = Arc::new(AtomicBool::new(false));
        let readers = postgres::Readers::new(
            address.clone(),
            deadline,
            options.readers,
            reachable.clone(),
        );
        postgres::start(postgres::Writer {
            address,
            pending: Pending::new(commands, options.group.max(1)),
            up: Up::new(set_up),
            reachable,
            deadline,
            tried,
        });
        // Whether it is up is worth knowing at start, but not worth much time.
        let _ = timeout(deadline, was_tried.wait_for(|tried| *tried)).await;
        let inner = Inner {
            queue,
            engine: Engine::Postgres(readers),
            up,
            deadline,
        };
        Ok(Opened {
            store: Self(Arc::new(inner)),
            notices: Vec::new(),
        })
    }

    /// Whether the last connection or commit worked, and there still is a writer: there is none after
    /// [`Store::close`], or after it panicked.
    #[must_use]
    pub fn is_up(&self) -> bool {
        *self.0.up.borrow()
    }

    /// Tells when [`Store::is_up`] changes.
    #[must_use]
    pub fn reconnected(&self) -> watch::Receiver<bool> {
        self.0.up.clone()
    }

    /// Writes what waits and lets go of the file or the connection that writes; what is asked after it is refused.
    ///
    /// # Errors
    /// When that did not happen within the deadline, or the engine does not take what waits.
    pub async fn close(&self, deadline: Duration) -> Result<(), StoreError> {
        const WHAT: &str = "close the store";
        let waiting = || StoreError::Away {
            what: WHAT,
            reason: format!("writes that still wait: {}", self.0.queue.len()),
        };
        let closed = async {
            let written = match self.0.queue.close().await {
                // Closed before.
                None => Ok(()),
                Some(answer) => answer.await.unwrap_or_else(|_| Err(waiting())),
            };
            let inner = self.0.clone();
            let ended = tokio::task::spawn_blocking(move || match &inner.engine {
                Engine::Sqlite(readers) => readers.close(),
                Engine::Postgres(_) => {}
            });
            // Who reads no longer can; there is nothing to add to that.
            let _ = ended.await;
            written
        };
        timeout(deadline, closed)
            .await
            .unwrap_or_else(|_| Err(waiting()))
    }

    fn put<W: Write>(&self, write: W) -> Kept {
        if self.0.queue.put(write) {
            Kept::Queued
        } else {
            Kept::Full
        }
    }

    async fn write<W: Write>(&self, write: W) -> Result<W::Answer, StoreError> {
        let away = |reason: &str| StoreError::Away {
            what: W::WHAT,
            reason: reason.to_owned(),
        };
        let answer = self.0.queue.ask(write)?;
        match timeout(self.0.deadline * W::PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(away("it was closed")),
            Err(_) => Err(away("it did not answer in time")),
        }
    }

    async fn read<R: Read>(&self, read: R) -> Result<R::Answer, StoreError> {
        match &self.0.engine {
            Engine::Sqlite(readers) => timeout(self.0.deadline, readers.read(read))
                .await
                .unwrap_or_else(|_| {
                    Err(StoreError::Away {
                        what: R::WHAT,
                        reason: "it did not answer in time".to_owned(),
                    })
                }),
            Engine::Postgres(readers) => readers.read(read).await,
        }
    }

    /// The right to do what one process per database does; nothing where another has it.
    async fn lead(&self) -> Result<Option<Lead>, StoreError> {
        match &self.0.engine {
            // Processes on one machine may prune at once; each step is a transaction.
            Engine::Sqlite(_) => Ok(Some(Lead { held: None })),
            Engine::Postgres(readers) => {
                let lead = readers.lead().await.map_err(|error| error.at("prune"))?;
                Ok(lead.map(|held| Lead { held: Some(held) }))
            }
        }
    }
}

/// The right to do what one process per database does, until it is ended or dropped.
struct Lead {
    held: Option<postgres::Connected>,
}

impl Lead {
    /// Dropped, it ends when the server notices; ended, it has.
    async fn end(self) {
        if let Some(held) = self.held {
            postgres::give_up_lead(held).await;
        }
    }
}
