//! Threads for work that is no pass: reading bodies, detecting languages, tokenising, writing replies. At most as many at
//! once as the engine has threads; the order is that of arrival. Work of a few microseconds stays where it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Failure;

/// Bodies up to this size are read, routed and encoded in well under a millisecond.
const LIGHT_BYTES: usize = 4096;

/// How long work takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Less than a change of threads is worth.
    Light,
    /// Long enough to keep others waiting.
    Heavy,
}

impl Work {
    /// By the size of the request's body.
    pub(super) const fn of_bytes(bytes: usize) -> Self {
        if bytes <= LIGHT_BYTES {
            Self::Light
        } else {
            Self::Heavy
        }
    }
}

/// Shares out the threads. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Cpu(Arc<Semaphore>);

impl Cpu {
    pub(super) fn new(threads: usize) -> Self {
        Self(Arc::new(Semaphore::new(threads.clamp(1, 256))))
    }

    /// Does `work`, heavy work on a thread that may block. Dropping the future lets work that has begun run to its end.
    ///
    /// # Errors
    /// [`Failure::Internal`] when `work` panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        weight: Work,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let panicked = |what: &str| Failure::Internal(format!("{what} of a request panicked"));
        if weight == Work::Light {
            // What `work` was given is dropped with it.
            return catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked("light work"));
        }
        let turn = Arc::clone(&self.0).acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        task.await.map_err(|_| panicked("heavy work"))
    }
}
