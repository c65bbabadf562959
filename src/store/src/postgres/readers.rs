//! Connections that read: a few, kept open, each used by one read at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::Address;
use super::connection::Connected;
use super::lock;
use crate::error::{SqlError, StoreError};
use crate::sql::{Read, first, values};

/// The connections.
pub(crate) struct Readers(Arc<Pool>);

struct Pool {
    address: Address,
    deadline: Duration,
    idle: Mutex<Vec<Connected>>,
    places: Semaphore,
    reachable: Arc<AtomicBool>,
}

impl Readers {
    /// None is opened before the first read. `reachable` says whether it is worth trying.
    pub(crate) fn new(
        address: Address,
        deadline: Duration,
        most: usize,
        reachable: Arc<AtomicBool>,
    ) -> Self {
        Self(Arc::new(Pool {
            address,
            deadline,
            idle: Mutex::new(Vec::new()),
            places: Semaphore::new(most.max(1)),
            reachable,
        }))
    }

    /// Reads on a connection of its own. Goes on when the caller goes away, so that the connection is not lost.
    pub(crate) async fn read<R: Read>(&self, read: R) -> Result<R::Answer, StoreError> {
        let pool = self.0.clone();
        if !pool.reachable.load(Ordering::Relaxed) {
            return Err(SqlError::Away(format!("{} is away", pool.address.place())).at(R::WHAT));
        }
        let deadline = pool.deadline;
        let task = tokio::spawn(async move { timeout(deadline, pool.read(&read)).await });
        match task.await {
            Ok(Ok(answer)) => answer.map_err(|error| error.at(R::WHAT)),
            Ok(Err(_)) => Err(SqlError::Away(format!("no answer within {deadline:?}")).at(R::WHAT)),
            Err(error) => Err(SqlError::Refused(error.to_string()).at(R::WHAT)),
        }
    }

    /// A connection that holds the right to do what one process per database does; nothing where another has it. The
    /// right ends with the connection.
    pub(crate) async fn lead(&self) -> Result<Option<Connected>, SqlError> {
        const TAKE: &str = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN 1 ELSE 0 END";
        let mut connected = Connected::open(&self.0.address, self.0.deadline).await?;
        let row = first(&mut connected, TAKE, values![lock::LEAD]).await?;
        let mine = row.is_some_and(|row| row.int(0) == Ok(1));
        Ok(mine.then_some(connected))
    }
}

/// Ends the right that [`Readers::lead`] gave.
pub(crate) async fn give_up_lead(connected: Connected) {
    const SOON: Duration = Duration::from_secs(1);
    // Where that does not work, the end of the connection does it.
    let _ = timeout(SOON, connected.script("SELECT pg_advisory_unlock_all()")).await;
}

impl Pool {
    async fn read<R: Read>(&self, read: &R) -> Result<R::Answer, SqlError> {
        let closed = |_| SqlError::Away("the store is closed".to_owned());
        let _place = self.places.acquire().await.map_err(closed)?;
        if let Some(mut connected) = self.take_idle() {
            let answer = read.read(&mut connected).await;
            // One that broke while it lay idle says nothing about the server.
            if !connected.client.is_closed() {
                return self.settle(connected, answer);
            }
        }
        let mut connected = Connected::open(&self.address, self.deadline).await?;
        let answer = read.read(&mut connected).await;
        self.settle(connected, answer)
    }

    fn take_idle(&self) -> Option<Connected> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match idle.pop() {
                Some(connected) if connected.client.is_closed() => {}
                found => return found,
            }
        }
    }

    /// Keeps a connection for the next read unless it is in trouble.
    fn settle<T>(&self, connected: Connected, answer: Result<T, SqlError>) -> Result<T, SqlError> {
        if !matches!(answer, Err(SqlError::Away(_))) {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(connected);
        }
        answer
    }
}
