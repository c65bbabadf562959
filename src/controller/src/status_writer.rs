//! The one writer of statuses of a process. A pass hands in what the status of its object should be and waits; the
//! newest wish for an object replaces one that was not written yet. Each write asks the fence, carries the resource
//! version the wish rests on, replaces the whole status by server-side apply, and has 5 s.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::field_manager;
use api::group::Kind;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, Request};
use kube::Resource;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::failure::Failure;
use crate::faults::{FaultPoint, FaultPoints};
use crate::fence::{Fence, FenceError};
use crate::metrics::{ControllerMetrics, WriteResult};
use crate::queue::Key;

/// Most objects whose wish waits.
pub const MAX_WAITING: usize = 1_024;
/// For one write with its tries.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// Writes under way at once, each of another object.
const AT_ONCE: usize = 4;

/// What the status of an object should be.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Of which kind.
    pub kind: Kind,
    /// Of which object.
    pub key: Key,
    /// The version it rests on; another one by now is a conflict.
    pub resource_version: String,
    /// The status, whole.
    pub status: Value,
}

/// A status was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// This process may not write.
    #[error(transparent)]
    Fenced(#[from] FenceError),
    /// More objects wait than the queue takes.
    #[error("{MAX_WAITING} status writes wait already")]
    QueueFull,
    /// A newer wish for the object took its place.
    #[error("a newer status took its place")]
    Superseded,
    /// The writer has ended.
    #[error("the controller ends")]
    Closed,
    /// The API did not take it.
    #[error(transparent)]
    Api(#[from] Failure),
}

/// Hands wishes to the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusWriter {
    shared: Arc<Shared>,
    metrics: ControllerMetrics,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    wishes: HashMap<(Kind, Key), Pending>,
    order: VecDeque<(Kind, Key)>,
    closed: bool,
}

#[derive(Debug)]
struct Pending {
    wish: Wish,
    done: oneshot::Sender<Result<Value, WriteError>>,
}

/// Does the writing.
#[derive(Debug)]
pub struct StatusWriting {
    shared: Arc<Shared>,
    client: Connection,
    fence: Fence,
    faults: FaultPoints,
    metrics: ControllerMetrics,
}

/// `kube::Client` has no `Debug`.
#[derive(Clone)]
struct Connection(Client);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl StatusWriter {
    /// A writer, and the work it takes to write, which runs as a task of its own.
    #[must_use]
    pub fn new(
        client: Client,
        fence: Fence,
        faults: FaultPoints,
        metrics: ControllerMetrics,
    ) -> (Self, StatusWriting) {
        let shared = Arc::new(Shared::default());
        let writing = StatusWriting {
            shared: shared.clone(),
            client: Connection(client),
            fence,
            faults,
            metrics: metrics.clone(),
        };
        (Self { shared, metrics }, writing)
    }

    /// Writes a status and waits for it. The answer is the object as it is then. Dropped half-way, the wish stays and
    /// may be written; its resource version keeps it from undoing anything.
    ///
    /// # Errors
    /// When it is not written.
    pub async fn write(&self, wish: Wish) -> Result<Value, WriteError> {
        let (done, answer) = oneshot::channel();
        let kind = wish.kind.as_str();
        if let Err(error) = self.shared.hand_in(Pending { wish, done }, &self.metrics) {
            self.metrics.status_write(kind, WriteResult::Refused);
            return Err(error);
        }
        answer.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Nothing is taken any more; what waits is written.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_one();
    }
}

impl Shared {
    fn hand_in(&self, pending: Pending, metrics: &ControllerMetrics) -> Result<(), WriteError> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(WriteError::Closed);
        }
        let key = (pending.wish.kind, pending.wish.key.clone());
        if !waiting.wishes.contains_key(&key) {
            if waiting.wishes.len() >= MAX_WAITING {
                return Err(WriteError::QueueFull);
            }
            waiting.order.push_back(key.clone());
        }
        let kind = key.0.as_str();
        if let Some(older) = waiting.wishes.insert(key, pending) {
            metrics.status_write(kind, WriteResult::Refused);
            // Its pass may be gone; then nobody asks.
            let _ = older.done.send(Err(WriteError::Superseded));
        }
        drop(waiting);
        self.more.notify_one();
        Ok(())
    }

    /// The oldest wish whose object is not being written.
    fn next(&self, busy: &HashSet<(Kind, Key)>) -> Next {
        let mut waiting = self.lock();
        let free = waiting.order.iter().position(|key| !busy.contains(key));
        let key = free.and_then(|at| waiting.order.remove(at));
        match key.and_then(|key| waiting.wishes.remove(&key)) {
            Some(pending) => Next::Write(Box::new(pending)),
            None if waiting.closed && waiting.order.is_empty() => Next::End,
            None => Next::Wait,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Wishes and their order are changed together in two places, which cannot panic in between.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Next {
    Write(Box<Pending>),
    Wait,
    End,
}

impl StatusWriting {
    /// Writes until the writer is closed and nothing waits. Not cancel safe: a write under way may or may not be done.
    pub async fn run(self) {
        let mut busy = HashSet::new();
        let mut writes = FuturesUnordered::new();
        loop {
            while busy.len() < AT_ONCE {
                match self.shared.next(&busy) {
                    Next::Write(pending) => {
                        busy.insert((pending.wish.kind, pending.wish.key.clone()));
                        writes.push(self.write(*pending));
                    }
                    Next::Wait => break,
                    Next::End if writes.is_empty() => return,
                    Next::End => break,
                }
            }
            tokio::select! {
                Some(key) = writes.next() => { busy.remove(&key); }
                () = self.shared.more.notified() => {}
            }
        }
    }

    async fn write(&self, pending: Pending) -> (Kind, Key) {
        let Pending { wish, done } = pending;
        let key = (wish.kind, wish.key.clone());
        let kind = wish.kind.as_str();
        self.faults.reach(FaultPoint::BeforeStatus(kind)).await;
        let written = self.apply(&wish).await;
        if written.is_ok() {
            self.faults.reach(FaultPoint::AfterStatus(kind)).await;
        }
        let result = match &written {
            Ok(_) => WriteResult::Written,
            Err(WriteError::Api(Failure::Conflict { .. })) => WriteResult::Conflict,
            Err(WriteError::Api(_)) => WriteResult::Error,
            Err(_) => WriteResult::Refused,
        };
        self.metrics.status_write(kind, result);
        // Its pass may have run out of time; then nobody asks.
        let _ = done.send(written);
        key
    }

    async fn apply(&self, wish: &Wish) -> Result<Value, WriteError> {
        let _term = self.fence.check()?;
        let resource = resource(wish.kind);
        let Key { namespace, name } = &wish.key;
        let object = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": wish.resource_version},
            "status": wish.status,
        });
        let what = || format!("status of {} {namespace}/{name}", wish.kind);
        let unavailable = |message: String| Failure::Unavailable {
            verb: "apply",
            resource: what(),
            message,
        };
        let params = PatchParams::apply(field_manager::CONTROLLER).force();
        let request = Request::new(DynamicObject::url_path(&resource, Some(namespace)))
            .patch_subresource("status", name, &params, &Patch::Apply(&object))
            .map_err(|error| unavailable(error.to_string()))?;
        let answer = self.client.0.request::<Value>(request);
        match tokio::time::timeout(WRITE_DEADLINE, answer).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(Failure::of("apply", what(), &error).into()),
            Err(_) => {
                let seconds = WRITE_DEADLINE.as_secs();
                Err(unavailable(format!("no answer within {seconds} s")).into())
            }
        }
    }
}

/// A kind of ours as the API names it.
#[must_use]
pub fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: api::group::GROUP.to_owned(),
        version: api::group::VERSION.to_owned(),
        api_version: api::group::API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

#[cfg(test)]
mod tests;
