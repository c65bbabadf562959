//! Ends of a controller at fault points (faults 9 and 38): a story is told once to count them, and again for each, or for a sample.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use controller::faults::{FaultPoint, FaultPoints};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;
use tokio::sync::Notify;

use super::objects::Running;

/// How a controller ends at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As by SIGKILL, there.
    Killed,
    /// As by SIGTERM, with the time to finish what is under way.
    Told,
}

/// Points that were passed, and one where the controller waits for its end.
#[derive(Clone, Default)]
pub(crate) struct Points {
    passed: Arc<AtomicUsize>,
    stopped: Arc<Notify>,
    goes_on: Arc<Notify>,
    log: Arc<Mutex<Vec<FaultPoint>>>,
}

impl Points {
    /// Stops at one point.
    pub(crate) fn stopping(&self, at: usize) -> FaultPoints {
        let this = self.clone();
        FaultPoints::hooked(move |point| {
            let number = this.passed.fetch_add(1, Ordering::SeqCst);
            this.log.lock().unwrap().push(point);
            let (stopped, goes_on) = (this.stopped.clone(), this.goes_on.clone());
            async move {
                if number == at {
                    stopped.notify_one();
                    goes_on.notified().await;
                }
            }
            .boxed()
        })
    }

    /// Tells a story. When it comes to the point that stops, the controller ends and another one is started.
    pub(crate) async fn end_when_stopped<T>(
        &self,
        how: How,
        first: Running,
        again: impl FnOnce() -> Running,
        story: impl Future<Output = T>,
    ) -> T {
        let (told, telling) = tokio::sync::oneshot::channel();
        let restart = async {
            tokio::select! {
                () = self.stopped.notified() => {
                    self.end(how, first).await;
                    again()
                }
                _ = telling => first,
            }
        };
        let tell = async {
            let end = story.await;
            let _ = told.send(());
            end
        };
        let (last, end) = tokio::join!(restart, tell);
        last.end().await;
        end
    }
    async fn end(&self, how: How, running: Running) {
        match how {
            How::Killed => running.kill().await,
            How::Told => {
                // It is told first.
                let go_on = async { self.goes_on.notify_one() };
                tokio::join!(running.end(), go_on);
            }
        }
    }
}

/// Tells a story to its end, then again for all its points, or a sample of them, each with the controller's end there:
/// what is left is the same. A line of a table for each is printed.
pub(crate) async fn matrix(
    fewest: usize,
    sample: Option<usize>,
    at_once: usize,
    ended_at: impl AsyncFn(&Points, usize) -> Value,
) {
    let whole = Points::default();
    let expected = ended_at(&whole, usize::MAX).await;
    let count = whole.passed.load(Ordering::SeqCst);
    assert!(count >= fewest, "{count} points");
    let told = async |at: usize| {
        let began = Instant::now();
        let points = Points::default();
        let end = ended_at(&points, at).await;
        let point = points.log.lock().unwrap().get(at).copied();
        let verdict = if end == expected { "same" } else { "another" };
        let seconds = began.elapsed().as_secs_f64();
        println!("| {at} of {count} | {point:?} | {verdict} end | {seconds:.1} s |");
        (at, point, end)
    };
    let ends: Vec<_> = stream::iter(chosen(count, sample))
        .map(told)
        .buffered(at_once)
        .collect()
        .await;
    for (at, point, end) in ends {
        assert_eq!(end, expected, "ended at point {at}: {point:?}");
    }
}

/// All points, or a sample by a seed that is told.
fn chosen(count: usize, sample: Option<usize>) -> Vec<usize> {
    let Some(sample) = sample else {
        return (0..count).collect();
    };
    let seed = std::env::var("RELAY_TEST_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(since.subsec_nanos())
    });
    println!("RELAY_TEST_SEED={seed}");
    let mut state = seed | 1;
    let mut next = || {
        // xorshift64: good enough to choose by.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % count as u64).unwrap()
    };
    let mut chosen: Vec<_> = (0..sample).map(|_| next()).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
