//! The queue in front of the thread that writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::transaction::{Stop, Transaction};
use crate::failure::Failure;

/// Operations that may wait.
const WAITING: usize = 1_024;
/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether what an operation wrote is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Keep,
    Undo,
}

/// An operation, whatever it answers. It may run more than once before it is answered.
pub(super) trait Job: Send {
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<Outcome>;
    fn is_abandoned(&self) -> bool;
    /// Tells what it answered last, or why it did not.
    fn answer(self: Box<Self>, failed: Option<Failure>);
}

/// What the writer is sent.
pub(super) enum Command {
    Do(Box<dyn Job>),
    Close(oneshot::Sender<()>),
}

/// The writer's end of the queue.
pub(crate) struct Commands(pub(super) Receiver<Command>);

struct Entry<F, T> {
    operation: F,
    answer: Option<Result<T, Failure>>,
    reply: oneshot::Sender<Result<T, Failure>>,
}

impl<F, T> Job for Entry<F, T>
where
    F: Fn(&mut Transaction<'_>) -> Result<T, Stop> + Send,
    T: Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<Outcome> {
        let done = catch_unwind(AssertUnwindSafe(|| (self.operation)(transaction)));
        let (answer, outcome) = match done {
            Ok(Ok(answer)) => (Ok(answer), Outcome::Keep),
            Ok(Err(Stop::Refused(failure))) => (Err(failure), Outcome::Undo),
            Ok(Err(Stop::Sql(error))) => return Err(error),
            Err(_) => {
                tracing::error!("an operation of the object store panicked");
                (
                    Err(Failure::internal("the operation panicked")),
                    Outcome::Undo,
                )
            }
        };
        self.answer = Some(answer);
        Ok(outcome)
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, failed: Option<Failure>) {
        let answer = match (failed, self.answer) {
            (Some(failure), _) => Err(failure),
            (None, Some(answer)) => answer,
            (None, None) => Err(Failure::internal("the operation was not run")),
        };
        // Whoever asked may have gone.
        let _ = self.reply.send(answer);
    }
}

/// The entrance.
#[derive(Clone)]
pub(crate) struct Queue(SyncSender<Command>);

impl Queue {
    pub(crate) fn new() -> (Self, Commands) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self(sender), Commands(receiver))
    }

    /// Runs an operation on the writer's thread, alone or among others in one transaction. An answer is on disk. When the
    /// future is dropped, the operation may still happen.
    ///
    /// # Errors
    /// What the operation was refused for, or why nothing can be written.
    pub(crate) async fn run<T, F>(&self, operation: F) -> Result<T, Failure>
    where
        F: Fn(&mut Transaction<'_>) -> Result<T, Stop> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let entry = Entry {
            operation,
            answer: None,
            reply,
        };
        match self.0.try_send(Command::Do(Box::new(entry))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Failure::too_many_requests()),
            Err(TrySendError::Disconnected(_)) => {
                return Err(Failure::unavailable("it was closed"));
            }
        }
        match timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Failure::unavailable("it was closed")),
            Err(_) => Err(Failure::unavailable("the disk does not answer")),
        }
    }

    /// Asks the writer to end; where its answer will come.
    pub(crate) fn close(&self) -> Option<oneshot::Receiver<()>> {
        let (reply, answer) = oneshot::channel();
        // Blocks only while the queue is full, and the writer empties it.
        self.0.send(Command::Close(reply)).ok()?;
        Some(answer)
    }
}
