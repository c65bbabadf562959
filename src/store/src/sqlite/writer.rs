//! The thread that writes: takes what waits, commits it as one transaction, then tells everybody.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::connection::{File, now};
use super::file;
use crate::error::{SqlError, StoreError};
use crate::options::StoreOptions;
use crate::queue::{Command, Waiting};
use crate::sql::Transaction;

/// The first pause after a write that the disk did not take, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

struct Writer {
    file: File,
    path: PathBuf,
    commands: mpsc::Receiver<Command>,
    up: watch::Sender<bool>,
    group: usize,
    /// Not on disk yet, oldest first.
    pending: VecDeque<Box<dyn Waiting>>,
    pause: Duration,
    close: Option<oneshot::Sender<Result<(), StoreError>>>,
    ended: bool,
}

/// Starts the thread.
///
/// # Errors
/// When the system has no thread for us.
pub(crate) fn start(
    file: File,
    path: PathBuf,
    commands: mpsc::Receiver<Command>,
    up: watch::Sender<bool>,
    options: &StoreOptions,
) -> std::io::Result<()> {
    let writer = Writer {
        file,
        path,
        commands,
        up,
        group: options.group.max(1),
        pending: VecDeque::new(),
        pause: PAUSES.0,
        close: None,
        ended: false,
    };
    std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || writer.run())
        .map(drop)
}

impl Writer {
    fn run(mut self) {
        loop {
            self.gather();
            if self.pending.is_empty() {
                if self.ended {
                    break;
                }
                continue;
            }
            if let Err(error) = self.write_group() {
                self.away(&error);
                if self.ended {
                    return self.give_up(&error);
                }
                self.wait();
            }
        }
        // A reader may hold the log open; the next start takes it in then.
        let _ = self.file.script("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(self.file);
        if let Some(close) = self.close {
            let _ = close.send(Ok(()));
        }
    }

    /// Takes what waits, up to a group; waits for the first if there is nothing.
    fn gather(&mut self) {
        if self.pending.is_empty() && !self.ended {
            match self.commands.blocking_recv() {
                Some(command) => self.take(command),
                None => self.ended = true,
            }
        }
        self.take_waiting();
    }

    fn take_waiting(&mut self) {
        while self.pending.len() < self.group || self.ended {
            match self.commands.try_recv() {
                Ok(command) => self.take(command),
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Write(entry) => self.pending.push_back(entry),
            Command::Close(reply) => {
                self.commands.close();
                self.close = Some(reply);
                self.ended = true;
            }
        }
    }

    /// Writes the first group of what is pending. An error means that the file takes no writes; what nobody waits for
    /// is still pending then.
    fn write_group(&mut self) -> Result<(), SqlError> {
        self.pending.retain(|entry| !entry.is_abandoned());
        let size = self.group.min(self.pending.len());
        let mut group: Vec<_> = self.pending.drain(..size).collect();
        let written = match self.transact(&mut group) {
            Err(SqlError::Refused(_)) if group.len() > 1 => return self.one_by_one(group),
            written => written,
        };
        match written {
            Ok(()) => {
                self.works();
                group.into_iter().for_each(Waiting::committed);
                Ok(())
            }
            Err(error @ SqlError::Refused(_)) => {
                group.into_iter().for_each(|entry| entry.failed(&error));
                Ok(())
            }
            Err(error @ SqlError::Away(_)) => {
                self.keep(group);
                Err(error)
            }
        }
    }

    /// After one of a group was refused, each goes alone.
    fn one_by_one(&mut self, group: Vec<Box<dyn Waiting>>) -> Result<(), SqlError> {
        let mut group = group.into_iter();
        while let Some(entry) = group.next() {
            let mut alone = vec![entry];
            match self.transact(&mut alone) {
                Ok(()) => alone.into_iter().for_each(Waiting::committed),
                Err(error @ SqlError::Refused(_)) => {
                    alone.into_iter().for_each(|entry| entry.failed(&error));
                }
                Err(error @ SqlError::Away(_)) => {
                    self.keep(alone.into_iter().chain(group).collect());
                    return Err(error);
                }
            }
        }
        self.works();
        Ok(())
    }

    fn transact(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<(), SqlError> {
        self.file.script("BEGIN IMMEDIATE")?;
        let written = apply(&mut self.file, group).and_then(|()| self.file.script("COMMIT"));
        if written.is_err() && !self.file.raw.is_autocommit() {
            let _ = self.file.script("ROLLBACK");
        }
        written
    }

    /// Puts what was not written back, in order.
    fn keep(&mut self, group: Vec<Box<dyn Waiting>>) {
        for entry in group.into_iter().rev() {
            self.pending.push_front(entry);
        }
    }

    fn works(&mut self) {
        self.pause = PAUSES.0;
        if !self.up.send_replace(true) {
            tracing::info!(path = %self.path.display(), "the store takes writes again");
        }
    }

    /// Tells those who wait, and holds the rest.
    fn away(&mut self, error: &SqlError) {
        if self.up.send_replace(false) {
            tracing::warn!(%error, "the store takes no writes; decisions are held");
        }
        if self.file.is_damaged() {
            file::suspect(&self.path);
        }
        self.take_waiting();
        let (waited, held) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition::<VecDeque<_>, _>(|entry| entry.is_acknowledged());
        waited.into_iter().for_each(|entry| entry.failed(error));
        self.pending = held;
    }

    /// Until it is time to try again, or somebody waits for a write.
    fn wait(&mut self) {
        let until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
        while Instant::now() < until {
            match self.commands.try_recv() {
                Ok(command) => {
                    self.take(command);
                    let asked = self
                        .pending
                        .back()
                        .is_some_and(|last| last.is_acknowledged());
                    if asked || self.ended {
                        return;
                    }
                }
                Err(mpsc::error::TryRecvError::Empty) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    fn give_up(mut self, error: &SqlError) {
        let lost = self.pending.len();
        tracing::error!(lost, %error, "the store is closed with writes that the disk did not take");
        self.pending.clear();
        if let Some(close) = self.close {
            let _ = close.send(Err(error.clone().at("close the store")));
        }
    }
}

fn apply(file: &mut File, group: &mut [Box<dyn Waiting>]) -> Result<(), SqlError> {
    now(async {
        let mut transaction = Transaction::begin(file).await?;
        for entry in group {
            entry.apply(&mut transaction).await?;
        }
        transaction.end().await
    })
}
