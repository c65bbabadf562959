//! The task that writes: takes what waits, commits it as one transaction, then tells everybody. While the server is away,
//! those who wait are told so at once, and the rest is held.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::connection::Connected;
use super::migrate;
use crate::error::SqlError;
use crate::queue::{Group, Pending, Up};
use crate::sql::{Cache, Transaction};

/// The first pause after an attempt to connect, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// How long a writer whose handles are all gone tries to write the rest.
const FAREWELL: Duration = Duration::from_secs(10);

/// What the task works with.
pub(crate) struct Writer {
    pub(crate) address: Address,
    pub(crate) pending: Pending,
    pub(crate) up: Up,
    pub(crate) reachable: Arc<AtomicBool>,
    pub(crate) deadline: Duration,
    /// Told after the first attempt to connect, whatever came of it.
    pub(crate) tried: watch::Sender<bool>,
}

struct Task {
    writer: Writer,
    cache: Cache,
    pause: Duration,
    was_up: bool,
}

/// Starts the task on the current runtime.
pub(crate) fn start(writer: Writer) {
    let task = Task {
        writer,
        cache: Cache::default(),
        pause: PAUSES.0,
        was_up: true,
    };
    tokio::spawn(task.run());
}

impl Task {
    async fn run(mut self) {
        let mut last = SqlError::Away("it was never reached".to_owned());
        let mut farewell = None;
        loop {
            if self.writer.pending.is_ended() {
                let since = *farewell.get_or_insert_with(Instant::now);
                let hopeless = !self.writer.pending.is_end_awaited() && since.elapsed() > FAREWELL;
                if self.writer.pending.is_empty() {
                    return self.writer.pending.end(Ok(()));
                }
                if hopeless {
                    return self.writer.pending.end(Err(last));
                }
            }
            last = match self.connect().await {
                Ok(connected) => match self.work(connected).await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            self.away(&last);
            self.wait(&last).await;
        }
    }

    /// Connects, while those who ask for a write are told that there is no server.
    async fn connect(&mut self) -> Result<Connected, SqlError> {
        let (address, deadline) = (self.writer.address.clone(), self.writer.deadline);
        let reachable = self.writer.reachable.clone();
        let connecting = async move {
            let opened = Connected::open(&address, deadline).await;
            reachable.store(opened.is_ok(), Ordering::Relaxed);
            let mut connected = opened?;
            migrate::up_to_date(&mut connected).await?;
            // A server that answers may still take no writes.
            let probe = "UPDATE relay_counter SET value = value WHERE id = 1";
            let slow = |_| SqlError::Away(format!("{}: no answer", address.place()));
            timeout(deadline, connected.script(probe))
                .await
                .map_err(slow)??;
            Ok(connected)
        };
        tokio::pin!(connecting);
        let away = SqlError::Away(format!("{} is away", self.writer.address.place()));
        let first = !*self.writer.tried.borrow();
        loop {
            if self.writer.pending.is_ended() {
                if self.writer.pending.is_empty() {
                    return Err(away);
                }
                return connecting.await;
            }
            tokio::select! {
                connected = &mut connecting => return connected,
                () = self.writer.pending.receive() => {
                    // Before the first attempt there is nothing to say yet.
                    if !first {
                        self.writer.pending.fail_acknowledged(&away);
                    }
                }
            }
        }
    }

    /// Writes group after group until the connection fails, or nothing more comes.
    async fn work(&mut self, mut connected: Connected) -> Result<(), SqlError> {
        self.pause = PAUSES.0;
        self.was_up = true;
        self.writer.up.say(true);
        self.writer.tried.send_replace(true);
        tracing::info!(place = self.writer.address.place(), "the store is up");
        loop {
            if self.writer.pending.is_empty() {
                if self.writer.pending.is_ended() {
                    return Ok(());
                }
                tokio::select! {
                    _ = &mut connected.driver => {
                        let place = self.writer.address.place();
                        return Err(SqlError::Away(format!("{place}: the connection was lost")));
                    }
                    () = self.writer.pending.receive() => {}
                }
            }
            self.writer.pending.gather().await;
            self.write_group(&mut connected).await?;
        }
    }

    async fn write_group(&mut self, connected: &mut Connected) -> Result<(), SqlError> {
        let group = self.writer.pending.next_group();
        if group.is_empty() {
            return Ok(());
        }
        let (group, written) = self.transact(connected, group).await;
        match written {
            Err(SqlError::Refused(_)) if group.len() > 1 => {
                let mut rest = group.into_iter();
                // After one of a group was refused, each goes alone.
                while let Some(entry) = rest.next() {
                    let (alone, written) = self.transact(connected, vec![entry]).await;
                    if matches!(written, Err(SqlError::Away(_))) {
                        self.writer.pending.keep(rest.collect());
                        return self.writer.pending.settle(alone, written);
                    }
                    self.writer.pending.settle(alone, written)?;
                }
                Ok(())
            }
            written => self.writer.pending.settle(group, written),
        }
    }

    /// Applies as much of a group as fits into a part of the deadline; the rest is pending again. Answers what was
    /// applied and whether it is committed.
    async fn transact(
        &mut self,
        connected: &mut Connected,
        mut group: Group,
    ) -> (Group, Result<(), SqlError>) {
        let deadline = self.writer.deadline;
        let mut applied = 0;
        let transaction = async {
            connected.script("BEGIN").await?;
            let mut transaction = Transaction::begin(connected, &mut self.cache).await?;
            let until = Instant::now() + deadline / 4;
            for entry in &mut group {
                entry.apply(&mut transaction).await?;
                applied += 1;
                if Instant::now() > until {
                    break;
                }
            }
            transaction.end().await?;
            connected.script("COMMIT").await
        };
        let written = timeout(deadline, transaction).await.unwrap_or_else(|_| {
            let place = self.writer.address.place();
            Err(SqlError::Away(format!(
                "{place}: no answer within {deadline:?}"
            )))
        });
        match written {
            Ok(()) => {
                self.writer.pending.keep(group.split_off(applied));
                (group, Ok(()))
            }
            Err(error) => {
                self.cache = Cache::default();
                if matches!(error, SqlError::Refused(_)) {
                    let rolled_back = timeout(deadline, connected.script("ROLLBACK")).await;
                    if !matches!(rolled_back, Ok(Ok(()))) {
                        let place = self.writer.address.place();
                        let lost = SqlError::Away(format!("{place}: the connection was lost"));
                        return (group, Err(lost));
                    }
                }
                (group, Err(error))
            }
        }
    }

    /// Tells those who wait, and holds the rest.
    fn away(&mut self, error: &SqlError) {
        if self.was_up {
            tracing::warn!(%error, "the store is away; decisions are held");
            self.was_up = false;
        }
        self.writer.up.say(false);
        // Reads need not find out for themselves.
        self.writer.reachable.store(false, Ordering::Relaxed);
        self.writer.tried.send_replace(true);
        self.writer.pending.fail_acknowledged(error);
    }

    /// Until it is time to try again; nobody who asks for a write waits for that.
    async fn wait(&mut self, error: &SqlError) {
        // Routers that lost the same server do not all come back at once.
        let random = RandomState::new().build_hasher().finish() % 1024;
        let share = 0.5 + random as f64 / 2048.0;
        let pause = sleep(self.pause.mul_f64(share));
        self.pause = (self.pause * 2).min(PAUSES.1);
        tokio::pin!(pause);
        loop {
            if self.writer.pending.is_ended() {
                if !self.writer.pending.is_empty() {
                    pause.await;
                }
                return;
            }
            tokio::select! {
                () = &mut pause => return,
                () = self.writer.pending.receive() => {
                    self.writer.pending.fail_acknowledged(error);
                }
            }
        }
    }
}
