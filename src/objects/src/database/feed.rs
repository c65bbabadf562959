//! Who follows the changes. Each has a bounded queue; one that does not keep up is cut off and told so, and never holds up
//! the writer or the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::change::Change;

/// Changes that may wait for one who follows, and bytes of their objects.
const WAITING: usize = 1_024;
const WAITING_BYTES: usize = 32 << 20;
/// Most who may follow.
const FOLLOWERS: usize = 20_000;

/// Why no more changes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// More changes waited than may.
    TooSlow,
    /// The store was closed.
    Closed,
}

/// The changes of one kind from some moment on.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// The last change that is not in the queue: it and those before are in the tables.
    pub(crate) after: u64,
    changes: mpsc::Receiver<Arc<Change>>,
    state: Arc<Line>,
}

/// What both ends of a queue know.
#[derive(Debug, Default)]
struct Line {
    ended: AtomicU8,
    /// Bytes of the objects that wait.
    bytes: AtomicUsize,
}

impl Subscription {
    /// The next change. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> Result<Arc<Change>, Ended> {
        match self.changes.recv().await {
            Some(change) => Ok(self.taken(change)),
            None => Err(self.why()),
        }
    }

    /// A change that is there already.
    pub(crate) fn ready(&mut self) -> Option<Arc<Change>> {
        let change = self.changes.try_recv().ok()?;
        Some(self.taken(change))
    }

    /// Whether changes were lost because they were not taken in time.
    pub(crate) fn is_cut(&self) -> bool {
        self.why() == Ended::TooSlow
    }

    fn taken(&self, change: Arc<Change>) -> Arc<Change> {
        self.state.bytes.fetch_sub(change.size(), Ordering::Relaxed);
        change
    }

    fn why(&self) -> Ended {
        match self.state.ended.load(Ordering::Acquire) {
            1 => Ended::TooSlow,
            _ => Ended::Closed,
        }
    }
}

struct Follower {
    /// Empty for all.
    namespace: String,
    queue: mpsc::Sender<Arc<Change>>,
    state: Arc<Line>,
}

#[derive(Default)]
struct State {
    head: u64,
    floor: u64,
    closed: bool,
    count: usize,
    followers: HashMap<Arc<str>, Vec<Follower>>,
}

impl State {
    /// Those who went away are noticed with the next change of their kind, which may be long.
    fn forget_gone(&mut self) {
        for followers in self.followers.values_mut() {
            followers.retain(|follower| !follower.queue.is_closed());
        }
        self.count = self.followers.values().map(Vec::len).sum();
    }
}

/// Where changes are handed on.
pub(crate) struct Feed(Mutex<State>);

impl Feed {
    /// A feed whose tables end at `head` and begin after `floor`.
    pub(crate) fn new(head: u64, floor: u64) -> Self {
        Self(Mutex::new(State {
            head,
            floor,
            ..State::default()
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last change that was handed on.
    pub(crate) fn head(&self) -> u64 {
        self.state().head
    }

    /// Changes up to this one are forgotten.
    pub(crate) fn floor(&self) -> u64 {
        self.state().floor
    }

    /// Says that changes are about to be forgotten.
    pub(crate) fn raise_floor(&self, floor: u64) {
        let mut state = self.state();
        state.floor = state.floor.max(floor);
    }

    /// Follows a kind; nothing where too many do, or the store was closed.
    pub(crate) fn follow(&self, kind: &Arc<str>, namespace: &str) -> Option<Subscription> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        if state.count >= FOLLOWERS {
            state.forget_gone();
        }
        if state.count >= FOLLOWERS {
            return None;
        }
        let of_kind = state.followers.entry(kind.clone()).or_default();
        let before = of_kind.len();
        of_kind.retain(|follower| !follower.queue.is_closed());
        let gone = before - of_kind.len();
        state.count -= gone;
        let (queue, changes) = mpsc::channel(WAITING);
        let line = Arc::new(Line::default());
        let follower = Follower {
            namespace: namespace.to_owned(),
            queue,
            state: line.clone(),
        };
        state.count += 1;
        let after = state.head;
        state
            .followers
            .entry(kind.clone())
            .or_default()
            .push(follower);
        Some(Subscription {
            after,
            changes,
            state: line,
        })
    }

    /// Hands changes on, in order.
    pub(super) fn publish(&self, changes: Vec<Arc<Change>>) {
        let mut state = self.state();
        for change in changes {
            state.head = change.version;
            let Some(followers) = state.followers.get_mut(&change.kind) else {
                continue;
            };
            let before = followers.len();
            followers.retain(|follower| hand_on(follower, &change));
            let gone = before - followers.len();
            state.count -= gone;
        }
    }

    /// Ends all.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.count = 0;
        state.followers.clear();
    }
}

/// Whether the follower is still one.
fn hand_on(follower: &Follower, change: &Arc<Change>) -> bool {
    if !follower.namespace.is_empty() && follower.namespace != change.namespace {
        return !follower.queue.is_closed();
    }
    let line = &follower.state;
    let waiting = line.bytes.fetch_add(change.size(), Ordering::Relaxed);
    // One change is always taken, however large.
    if waiting > 0 && waiting + change.size() > WAITING_BYTES {
        line.ended.store(1, Ordering::Release);
        return false;
    }
    match follower.queue.try_send(change.clone()) {
        Ok(()) => true,
        Err(mpsc::error::TrySendError::Full(_)) => {
            line.ended.store(1, Ordering::Release);
            false
        }
        Err(mpsc::error::TrySendError::Closed(_)) => false,
    }
}
