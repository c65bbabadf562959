//! The threads that read, each with a connection of its own, so that no read waits for a write.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::connection::{File, now};
use crate::error::{OpenError, StoreError};
use crate::sql::Read;

/// Reads that may wait for each thread.
const WAITING_PER_THREAD: usize = 256;
/// What a connection keeps of the file in memory, in KiB.
const CACHE_KIB: u32 = 8_192;

type Job = Box<dyn FnOnce(&mut File) + Send>;

/// The entrance to the reading threads; they end when it is dropped.
#[derive(Debug)]
pub struct Readers {
    /// Nothing after it was closed.
    jobs: Mutex<Option<mpsc::SyncSender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// Connects and starts the threads.
    ///
    /// # Errors
    /// When the file cannot be opened again, or the system has no thread for us.
    pub fn start(path: &Path, threads: usize) -> Result<Self, OpenError> {
        Self::start_with_cache(path, threads, CACHE_KIB)
    }

    /// As [`start`](Self::start), where each connection keeps at most so many KiB of the file in memory.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_cache(path: &Path, threads: usize, kib: u32) -> Result<Self, OpenError> {
        let threads = threads.max(1);
        let (jobs, queue) = mpsc::sync_channel::<Job>(threads * WAITING_PER_THREAD);
        let queue = Arc::new(Mutex::new(queue));
        let mut running = Vec::new();
        for number in 1..=threads {
            let told = |error: rusqlite::Error| OpenError::File {
                path: path.to_owned(),
                reason: super::connection::reason(&error),
            };
            let mut file = File::connect(path).map_err(told)?;
            file.set_up().map_err(told)?;
            // A negative size is one in KiB.
            file.raw
                .pragma_update(None, "cache_size", -i64::from(kib))
                .map_err(told)?;
            let queue = queue.clone();
            let thread = std::thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || {
                    loop {
                        let job = locked(&queue).recv();
                        match job {
                            Ok(job) => outlive(|| job(&mut file)),
                            Err(_) => return,
                        }
                    }
                })
                .map_err(OpenError::Thread)?;
            running.push(thread);
        }
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            threads: Mutex::new(running),
        })
    }

    /// Reads on one of the threads. Where the caller goes away first, the read is not begun.
    pub(crate) async fn read<R: Read>(&self, read: R) -> Result<R::Answer, StoreError> {
        let job = move |file: &mut File| now(read.read(file)).map_err(|error| error.at(R::WHAT));
        self.run(R::WHAT, job).await?
    }

    /// Runs something on one of the threads. Where the caller goes away first, it is not begun.
    ///
    /// # Errors
    /// [`StoreError::Full`] when too many wait, [`StoreError::Away`] when it was closed or the job panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        job: impl FnOnce(&mut File) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |file| {
            if !reply.is_closed() {
                let _ = reply.send(job(file));
            }
        });
        let jobs = locked(&self.jobs).clone();
        let away = |reason: &str| StoreError::Away {
            what,
            reason: reason.to_owned(),
        };
        jobs.ok_or_else(|| away("it was closed"))?
            .try_send(job)
            .map_err(|_| StoreError::Full { what })?;
        answer.await.map_err(|_| away("the read was given up"))
    }

    /// Ends the threads, and with them their connections. Blocks until they have ended.
    pub fn close(&self) {
        drop(locked(&self.jobs).take());
        for thread in std::mem::take(&mut *locked(&self.threads)) {
            if thread.join().is_err() {
                tracing::error!("a reading thread of the store panicked");
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a read. One that panics fails alone: the thread and its connection are there for the next.
fn outlive(read: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(read)).is_err() {
        tracing::error!("a read of the store panicked");
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::error::SqlError;
    use crate::sql::Connection;
    use crate::sqlite::LAYOUT;

    struct Panics(bool);

    impl Read for Panics {
        type Answer = usize;
        const WHAT: &'static str = "panic";

        async fn read(&self, connection: &mut dyn Connection) -> Result<usize, SqlError> {
            let rows = connection.query("SELECT 1", &[]).await?;
            assert!(!self.0, "told to");
            Ok(rows.len())
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay.db");
        drop(crate::sqlite::open(&path, &LAYOUT, Timestamp::UNIX_EPOCH).unwrap());
        let readers = Readers::start(&path, 1).unwrap();
        let gone = readers.read(Panics(true)).await;
        assert!(matches!(gone, Err(StoreError::Away { .. })), "{gone:?}");
        assert_eq!(readers.read(Panics(false)).await, Ok(1));
    }
}
