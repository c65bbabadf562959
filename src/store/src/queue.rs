//! Writes on their way to the engine: a bounded queue, groups of what waits, and who is told what came of it. Knows no
//! engine.

mod pending;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use pending::{Group, Pending};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{SqlError, StoreError};
use crate::options::StoreOptions;
use crate::sql::{BoxFuture, Transaction, Write};

/// Room in the queue; what waits holds some until it is done.
#[derive(Debug)]
pub(crate) struct Room {
    entries: AtomicUsize,
    bytes: AtomicUsize,
    most_entries: usize,
    most_bytes: usize,
}

/// A part of the room.
#[derive(Debug)]
struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let fits = |counter: &AtomicUsize, more: usize, most: usize| {
            counter
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                    now.checked_add(more).filter(|sum| *sum <= most)
                })
                .is_ok()
        };
        if !fits(&self.entries, 1, self.most_entries) {
            return None;
        }
        if !fits(&self.bytes, bytes, self.most_bytes) {
            self.entries.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Place {
            room: self.clone(),
            bytes,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.entries.fetch_sub(1, Ordering::Relaxed);
        self.room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A write in the queue, whatever it answers.
pub(crate) trait Waiting: Send {
    /// Runs it; its answer is kept until [`Waiting::committed`].
    fn apply<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_>,
    ) -> BoxFuture<'a, Result<(), SqlError>>;

    /// Whether somebody waits for it. Others survive an absence of the engine.
    fn is_acknowledged(&self) -> bool;

    /// Whether the one who waited has gone.
    fn is_abandoned(&self) -> bool;

    /// It is on disk.
    fn committed(self: Box<Self>);

    /// It is not, or nobody knows.
    fn failed(self: Box<Self>, error: &SqlError);
}

struct Entry<W: Write> {
    write: W,
    answer: Option<W::Answer>,
    reply: Option<oneshot::Sender<Result<W::Answer, StoreError>>>,
    _place: Place,
}

impl<W: Write> Waiting for Entry<W> {
    fn apply<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_>,
    ) -> BoxFuture<'a, Result<(), SqlError>> {
        Box::pin(async move {
            self.answer = Some(self.write.apply(transaction).await?);
            Ok(())
        })
    }

    fn is_acknowledged(&self) -> bool {
        self.reply.is_some()
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn committed(self: Box<Self>) {
        if let (Some(reply), Some(answer)) = (self.reply, self.answer) {
            // Whoever waited may have gone.
            let _ = reply.send(Ok(answer));
        }
    }

    fn failed(self: Box<Self>, error: &SqlError) {
        match self.reply {
            Some(reply) => {
                let _ = reply.send(Err(error.clone().at(W::WHAT)));
            }
            None => tracing::error!(what = W::WHAT, %error, "a write was given up"),
        }
    }
}

/// Held by a writer for as long as it lives: says whether the engine takes writes, and that it does not once the writer
/// has gone, however that came about.
pub(crate) struct Up(watch::Sender<bool>);

impl Up {
    pub(crate) const fn new(sender: watch::Sender<bool>) -> Self {
        Self(sender)
    }

    /// Says it; what was said before.
    pub(crate) fn say(&self, up: bool) -> bool {
        self.0.send_replace(up)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.0.send_replace(false);
        if std::thread::panicking() {
            tracing::error!(
                "the writer of the store panicked: nothing is stored until the process starts again"
            );
        }
    }
}

/// What the writer is sent.
pub(crate) enum Command {
    Write(Box<dyn Waiting>),
    /// Write all that waits, tidy up, say so and end.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// The entrance of the queue.
#[derive(Clone)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Command>,
    room: Arc<Room>,
}

impl Queue {
    pub(crate) fn new(options: &StoreOptions) -> (Self, mpsc::Receiver<Command>) {
        // One more, for the command that closes.
        let (sender, receiver) = mpsc::channel(options.queue_entries.max(1) + 1);
        let room = Arc::new(Room {
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_entries: options.queue_entries,
            most_bytes: options.queue_bytes,
        });
        (Self { sender, room }, receiver)
    }

    /// Puts a write into the queue that nobody waits for; whether there was room.
    pub(crate) fn put<W: Write>(&self, write: W) -> bool {
        self.send(write, None).is_some()
    }

    /// Puts a write into the queue and answers where its answer will come.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room, [`StoreError::Away`] when the writer has gone.
    pub(crate) fn ask<W: Write>(
        &self,
        write: W,
    ) -> Result<oneshot::Receiver<Result<W::Answer, StoreError>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.send(write, Some(reply)).is_some() {
            return Ok(answer);
        }
        let what = W::WHAT;
        if self.sender.is_closed() {
            let reason = "it was closed".to_owned();
            return Err(StoreError::Away { what, reason });
        }
        Err(StoreError::Full { what })
    }

    fn send<W: Write>(
        &self,
        write: W,
        reply: Option<oneshot::Sender<Result<W::Answer, StoreError>>>,
    ) -> Option<()> {
        let place = self.room.take(write.bytes())?;
        let entry = Entry {
            write,
            answer: None,
            reply,
            _place: place,
        };
        self.sender.try_send(Command::Write(Box::new(entry))).ok()
    }

    /// Asks the writer to end.
    pub(crate) async fn close(&self) -> Option<oneshot::Receiver<Result<(), StoreError>>> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Command::Close(reply)).await.ok()?;
        Some(answer)
    }

    /// How many writes wait.
    pub(crate) fn len(&self) -> usize {
        self.room.entries.load(Ordering::Relaxed)
    }
}
