//! The thread that writes: takes what waits, commits it as one transaction, then tells everybody.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::connection::{File, now};
use super::file::{self, Gate};
use crate::error::SqlError;
use crate::queue::{Group, Pending, Up};
use crate::sql::{Cache, Transaction};

/// The first pause after a write that the disk did not take, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// Between two looks at the queue in such a pause.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

struct Writer {
    file: File,
    gate: Gate,
    path: PathBuf,
    pending: Pending,
    up: Up,
    cache: Cache,
    pause: Duration,
}

/// Starts the thread.
///
/// # Errors
/// When the system has no thread for us.
pub(crate) fn start(file: File, path: PathBuf, pending: Pending, up: Up) -> std::io::Result<()> {
    let writer = Writer {
        file,
        gate: Gate::new(&path)?,
        path,
        pending,
        up,
        cache: Cache::default(),
        pause: PAUSES.0,
    };
    std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || writer.run())
        .map(drop)
}

impl Writer {
    fn run(mut self) {
        loop {
            if self.pending.is_empty() {
                if self.pending.is_ended() {
                    break;
                }
                self.pending.receive_blocking();
            }
            self.pending.gather_blocking();
            if let Err(error) = self.write_group() {
                self.away(&error);
                if self.pending.is_ended() {
                    return self.pending.end(Err(error));
                }
                self.wait();
            }
        }
        // A reader may hold the log open; the next start takes it in then.
        let _ = self.file.script("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(self.file);
        self.pending.end(Ok(()));
    }

    /// Writes a group. An error means that the file takes no writes; the group is pending again then.
    fn write_group(&mut self) -> Result<(), SqlError> {
        let mut group = self.pending.next_group();
        if group.is_empty() {
            return Ok(());
        }
        match self.transact(&mut group) {
            Err(SqlError::Refused(_)) if group.len() > 1 => self.one_by_one(group)?,
            written => self.pending.settle(group, written)?,
        }
        Ok(())
    }

    /// After one of a group was refused, each goes alone.
    fn one_by_one(&mut self, group: Group) -> Result<(), SqlError> {
        let mut group = group.into_iter();
        while let Some(entry) = group.next() {
            let mut alone = vec![entry];
            let written = self.transact(&mut alone);
            if matches!(written, Err(SqlError::Away(_))) {
                self.pending.keep(group.collect());
                return self.pending.settle(alone, written);
            }
            self.pending.settle(alone, written)?;
        }
        Ok(())
    }

    fn transact(&mut self, group: &mut Group) -> Result<(), SqlError> {
        let place = self.path.display();
        let turn = self.gate.enter();
        let turn = turn.map_err(|error| SqlError::Away(format!("{place}: {error}")))?;
        self.file.script("BEGIN IMMEDIATE")?;
        drop(turn);
        let written =
            apply(&mut self.file, &mut self.cache, group).and_then(|()| self.file.script("COMMIT"));
        if written.is_err() {
            self.cache = Cache::default();
            if !self.file.raw.is_autocommit() {
                let _ = self.file.script("ROLLBACK");
            }
        }
        if written.is_ok() {
            self.works();
        }
        written
    }

    fn works(&mut self) {
        self.pause = PAUSES.0;
        if !self.up.say(true) {
            tracing::info!(path = %self.path.display(), "the store takes writes again");
        }
    }

    /// Tells those who wait, and holds the rest.
    fn away(&mut self, error: &SqlError) {
        if self.up.say(false) {
            tracing::warn!(%error, "the store takes no writes; decisions are held");
        }
        if self.file.is_damaged() {
            file::suspect(&self.path);
        }
        self.pending.fail_acknowledged(error);
    }

    /// Until it is time to try again, or somebody waits for a write.
    fn wait(&mut self) {
        let until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
        while Instant::now() < until && !self.pending.is_ended() {
            if !self.pending.try_receive() {
                std::thread::sleep(LOOK_AGAIN);
            } else if self.pending.is_asked() {
                return;
            }
        }
    }
}

fn apply(file: &mut File, cache: &mut Cache, group: &mut Group) -> Result<(), SqlError> {
    now(async {
        let mut transaction = Transaction::begin(file, cache).await?;
        for entry in group {
            entry.apply(&mut transaction).await?;
        }
        transaction.end().await
    })
}
