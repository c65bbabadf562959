//! Which objects want a pass, between what watches see and `applier`, which takes one request at a time. An object is in
//! it once, however often it changes, so that constant changes neither fill it nor push its pass further away.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::unfold;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::Notify;

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Where.
    pub namespace: String,
    /// Which.
    pub name: String,
}

impl Key {
    /// Of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        let metadata = object.meta();
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// As kube names it.
    #[must_use]
    pub fn object_ref<K: Resource<DynamicType = ()>>(&self) -> ObjectRef<K> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}

/// Objects that want a pass. Bounded by the number of objects there are. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    inner: Mutex<Inner>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// Since when; until its pass begins.
    since: HashMap<Key, Instant>,
    /// Those that `applier` has not been told yet.
    untold: VecDeque<Key>,
    closed: bool,
}

impl Queue {
    /// Asks for a pass.
    pub fn push(&self, key: Key) {
        let mut inner = self.lock();
        if inner.since.contains_key(&key) {
            return;
        }
        inner.since.insert(key.clone(), Instant::now());
        inner.untold.push_back(key);
        drop(inner);
        self.waiting.more.notify_one();
    }

    /// The pass begins, or the object is gone: how long it waited, if it was asked for and not merely due.
    #[allow(clippy::must_use_candidate)] // Asked for its effect too.
    pub fn begun(&self, key: &Key) -> Option<Duration> {
        self.lock().since.remove(key).map(|since| since.elapsed())
    }

    /// Objects whose pass has not begun.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().since.len()
    }

    /// No pass is handed out any more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.waiting.more.notify_one();
    }

    /// Keys in order, until the queue is closed. For one reader.
    pub fn keys(&self) -> impl Stream<Item = Key> + Send + use<> {
        unfold(self.clone(), |queue| async {
            let key = queue.next().await?;
            Some((key, queue))
        })
    }

    async fn next(&self) -> Option<Key> {
        loop {
            {
                let mut inner = self.lock();
                if inner.closed {
                    return None;
                }
                if let Some(key) = inner.untold.pop_front() {
                    return Some(key);
                }
            }
            self.waiting.more.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The two lists are changed together in one place, which cannot panic in between.
        self.waiting
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "space".to_owned(),
            name: name.to_owned(),
        }
    }

    #[tokio::test]
    async fn an_object_is_in_it_once_until_its_pass_begins() {
        let queue = Queue::default();
        let mut keys = Box::pin(queue.keys());
        for name in ["a", "b", "a", "a"] {
            queue.push(key(name));
        }
        assert_eq!((queue.depth(), keys.next().await), (2, Some(key("a"))));
        queue.push(key("a"));
        assert_eq!(keys.next().await, Some(key("b")));
        assert_eq!(keys.next().now_or_never(), None, "told, not begun");
        assert!(queue.begun(&key("a")).is_some());
        queue.push(key("a"));
        assert_eq!(
            keys.next().await,
            Some(key("a")),
            "a change during a pass wants another"
        );
        assert!(queue.begun(&key("never")).is_none());
        queue.push(key("c"));
        queue.close();
        assert_eq!(keys.next().await, None);
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let queue = Queue::default();
        let mut keys = Box::pin(queue.keys());
        let (next, ()) = tokio::join!(keys.next(), async { queue.push(key("late")) });
        assert_eq!(next, Some(key("late")));
    }
}
