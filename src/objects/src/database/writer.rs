//! The thread that writes: takes what waits, commits it as one transaction, hands the changes on, then answers.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use store::file::{File, SoleUse};
use tokio::sync::oneshot;

use super::change::Change;
use super::feed::Feed;
use super::job::{Command, Commands, Job, Outcome};
use super::tables::{Meta, explain, put_meta};
use super::transaction::{Counts, Transaction};
use super::upkeep::upkeep;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::options::Clock;

/// Most operations of one transaction.
const GROUP: usize = 256;
/// How often old changes, events and tombstones are looked for.
const UPKEEP: Duration = Duration::from_secs(60);

type Group = Vec<Box<dyn Job>>;

/// What the thread works with.
pub(crate) struct Writer {
    pub(crate) file: File,
    pub(crate) commands: Commands,
    pub(crate) feed: Arc<Feed>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    /// Held until nothing more is written, so that the next who opens the file finds it at rest.
    pub(crate) lock: SoleUse,
}

/// Starts the thread.
///
/// # Errors
/// When the system has no thread for us.
pub(crate) fn start(writer: Writer) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("objects-writer".to_owned())
        .spawn(move || writer.run())
        .map(drop)
}

impl Writer {
    fn run(mut self) {
        let mut next_upkeep = Instant::now();
        let closed = loop {
            if Instant::now() >= next_upkeep {
                self.look_after();
                next_upkeep = Instant::now() + UPKEEP;
            }
            match self.gather(next_upkeep) {
                (group, None) => self.write(group),
                (group, Some(closed)) => {
                    self.write(group);
                    break closed;
                }
            }
        };
        self.feed.close();
        // A reader may hold the log open; the next start takes it in then.
        let _ = self
            .file
            .raw
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(self.file);
        drop(self.lock);
        if let Some(reply) = closed {
            let _ = reply.send(());
        }
    }

    /// Waits for operations and takes those that wait, and whether the end was asked for, by whom.
    fn gather(&self, until: Instant) -> (Group, Option<Option<oneshot::Sender<()>>>) {
        let mut group = Group::new();
        let patience = until.saturating_duration_since(Instant::now());
        let mut command = match self.commands.0.recv_timeout(patience) {
            Ok(command) => command,
            Err(RecvTimeoutError::Timeout) => return (group, None),
            Err(RecvTimeoutError::Disconnected) => return (group, Some(None)),
        };
        loop {
            match command {
                Command::Close(reply) => return (group, Some(Some(reply))),
                Command::Do(job) if job.is_abandoned() => {}
                Command::Do(job) => group.push(job),
            }
            if group.len() >= GROUP {
                return (group, None);
            }
            command = match self.commands.0.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Empty) => return (group, None),
                Err(TryRecvError::Disconnected) => return (group, Some(None)),
            };
        }
    }

    fn write(&mut self, mut group: Group) {
        if group.is_empty() {
            return;
        }
        match self.transact(&mut group) {
            Ok(()) => group.into_iter().for_each(|job| job.answer(None)),
            Err(_) if group.len() > 1 => {
                for job in group {
                    self.write(vec![job]);
                }
            }
            Err(failure) => {
                tracing::warn!(error = failure.message, "nothing was written");
                for job in group {
                    job.answer(Some(failure.clone()));
                }
            }
        }
    }

    /// Runs and commits a group. After an error nothing of it was written.
    fn transact(&mut self, group: &mut Group) -> Result<(), Failure> {
        let at = (self.clock)();
        let done = transact(&self.file.raw, &self.catalog, self.counts, at, |all| {
            for job in group.iter_mut() {
                one(all, job.as_mut())?;
            }
            Ok(())
        });
        match done {
            Ok((counts, changes)) => {
                self.counts = counts;
                self.feed.publish(changes);
                Ok(())
            }
            Err(error) => {
                if !self.file.raw.is_autocommit() {
                    let _ = self.file.raw.execute_batch("ROLLBACK");
                }
                Err(explain(&self.file, &error))
            }
        }
    }

    /// Removes what is too old. Fails quietly: the next time will do.
    fn look_after(&mut self) {
        let at = (self.clock)();
        let feed = self.feed.clone();
        let done = transact(&self.file.raw, &self.catalog, self.counts, at, |all| {
            upkeep(all, &feed)
        });
        match done {
            Ok((counts, changes)) => {
                self.counts = counts;
                self.feed.publish(changes);
            }
            Err(error) => {
                if !self.file.raw.is_autocommit() {
                    let _ = self.file.raw.execute_batch("ROLLBACK");
                }
                let failure = explain(&self.file, &error);
                tracing::warn!(error = failure.message, "old changes were not removed");
            }
        }
    }
}

type Done = (Counts, Vec<Arc<Change>>);

/// Runs and commits one transaction. After an error the caller rolls back.
pub(crate) fn transact(
    connection: &Connection,
    catalog: &Catalog,
    counts: Counts,
    at: jiff::Timestamp,
    work: impl FnOnce(&mut Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<Done> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut all = Transaction::new(connection, catalog, counts, at);
    work(&mut all)?;
    let (after, changes) = all.end();
    if after.version != counts.version {
        put_meta(connection, Meta::Version, &after.version.to_string())?;
    }
    connection.execute_batch("COMMIT")?;
    Ok((after, changes))
}

/// Runs one operation; what a refused one wrote is undone.
fn one(all: &mut Transaction<'_>, job: &mut dyn Job) -> rusqlite::Result<()> {
    let mark = all.mark()?;
    match job.run(all)? {
        Outcome::Keep => all.keep(),
        Outcome::Undo => all.undo(mark),
    }
}
