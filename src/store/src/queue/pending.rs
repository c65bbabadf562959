//! What a writer took out of the queue and has not written yet, oldest first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::{Command, Waiting};
use crate::error::{SqlError, StoreError};

/// How long a write that nobody waits for may wait for others.
const GATHER: Duration = Duration::from_millis(50);
/// How soon one that somebody waits for is seen meanwhile.
const LOOK: Duration = Duration::from_millis(1);

/// Writes that go into one transaction.
pub(crate) type Group = Vec<Box<dyn Waiting>>;

/// The writer's end of the queue.
pub(crate) struct Pending {
    commands: mpsc::Receiver<Command>,
    entries: VecDeque<Box<dyn Waiting>>,
    group: usize,
    close: Option<oneshot::Sender<Result<(), StoreError>>>,
    ended: bool,
}

impl Pending {
    pub(crate) const fn new(commands: mpsc::Receiver<Command>, group: usize) -> Self {
        Self {
            commands,
            entries: VecDeque::new(),
            group,
            close: None,
            ended: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether nothing more will come.
    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether the newest is one that somebody waits for.
    pub(crate) fn is_asked(&self) -> bool {
        self.entries
            .back()
            .is_some_and(|last| last.is_acknowledged())
    }

    /// Whether somebody waits for the end.
    pub(crate) fn is_end_awaited(&self) -> bool {
        self.close.as_ref().is_some_and(|close| !close.is_closed())
    }

    /// Waits for a command. May be dropped at any time.
    pub(crate) async fn receive(&mut self) {
        match self.commands.recv().await {
            Some(command) => self.take(command),
            None => self.ended = true,
        }
    }

    /// The same for a thread.
    pub(crate) fn receive_blocking(&mut self) {
        match self.commands.blocking_recv() {
            Some(command) => self.take(command),
            None => self.ended = true,
        }
    }

    /// Takes a command if there is one; whether there was.
    pub(crate) fn try_receive(&mut self) -> bool {
        match self.commands.try_recv() {
            Ok(command) => {
                self.take(command);
                true
            }
            Err(mpsc::error::TryRecvError::Empty) => false,
            Err(mpsc::error::TryRecvError::Disconnected) => {
                self.ended = true;
                false
            }
        }
    }

    /// Lets more come while nobody waits for what is pending: fewer and larger transactions leave machine and disk to
    /// those who ask.
    pub(crate) async fn gather(&mut self) {
        let until = Instant::now() + GATHER;
        while !self.is_due(until) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The same for a thread.
    pub(crate) fn gather_blocking(&mut self) {
        let until = Instant::now() + GATHER;
        while !self.is_due(until) {
            std::thread::sleep(LOOK);
        }
    }

    fn is_due(&mut self, until: Instant) -> bool {
        while self.entries.len() < self.group && self.try_receive() {}
        let waited_for = self.entries.iter().any(|entry| entry.is_acknowledged());
        waited_for || self.ended || self.entries.len() >= self.group || Instant::now() >= until
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Write(entry) => self.entries.push_back(entry),
            Command::Close(reply) => {
                self.commands.close();
                self.close = Some(reply);
                // What was sent before is still in the channel.
                while let Ok(command) = self.commands.try_recv() {
                    if let Command::Write(entry) = command {
                        self.entries.push_back(entry);
                    }
                }
                self.ended = true;
            }
        }
    }

    /// The next group: what is pending and what waits in the channel. Those whose caller has gone are left out.
    pub(crate) fn next_group(&mut self) -> Group {
        while self.entries.len() < self.group && self.try_receive() {}
        let mut group = Vec::new();
        while group.len() < self.group
            && let Some(entry) = self.entries.pop_front()
        {
            if !entry.is_abandoned() {
                group.push(entry);
            }
        }
        group
    }

    /// Tells those of a group what came of it.
    ///
    /// # Errors
    /// When the engine takes no writes; the group is pending again then.
    pub(crate) fn settle(
        &mut self,
        group: Group,
        written: Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        match written {
            Ok(()) => group.into_iter().for_each(Waiting::committed),
            Err(error @ SqlError::Refused(_)) => {
                group.into_iter().for_each(|entry| entry.failed(&error));
            }
            Err(error @ SqlError::Away(_)) => {
                self.keep(group);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Puts back what was not written, in order.
    pub(crate) fn keep(&mut self, group: Group) {
        for entry in group.into_iter().rev() {
            self.entries.push_front(entry);
        }
    }

    /// Tells everybody who waits that nothing is written now; what nobody waits for stays.
    pub(crate) fn fail_acknowledged(&mut self, error: &SqlError) {
        let (waited, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| entry.is_acknowledged());
        self.entries = held.into();
        for entry in waited {
            entry.failed(error);
        }
    }

    /// Says how it ended to whoever closed.
    pub(crate) fn end(self, ended: Result<(), SqlError>) {
        if let Err(error) = &ended {
            let lost = self.entries.len();
            tracing::error!(lost, %error, "the store is closed with writes that it did not take");
        }
        if let Some(close) = self.close {
            let _ = close.send(ended.map_err(|error| error.at("close the store")));
        }
    }
}
