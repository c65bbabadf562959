//! What is counted of one revision of a followed LayaServer (control-plane 10), and the report of all of them. Counters
//! begin with the revision's first traffic since it had none and never fall while it has some; a revision that lost its
//! traffic is kept for a while, since the controller waits for its last requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::revisions::RevisionReport;

/// Latencies that percentiles are taken over: the last ones.
const WINDOW: usize = 1024;

/// Revisions without traffic whose counters are kept.
const KEPT: usize = 8;

/// How a request to a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With an answer.
    Answered,
    /// The server failed it.
    Failed,
    /// It ran into the deadline.
    TimedOut,
    /// The server turned it away for now.
    TurnedAway,
}

impl Ended {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::Answered,
        Self::Failed,
        Self::TimedOut,
        Self::TurnedAway,
    ];

    /// The word at a metric's label.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "error",
            Self::TimedOut => "timeout",
            Self::TurnedAway => "rejected",
        }
    }
}

/// The last latencies, in milliseconds.
#[derive(Debug, Default)]
struct Window {
    millis: Vec<u32>,
    next: usize,
}

impl Window {
    fn add(&mut self, millis: u32) {
        if self.millis.len() < WINDOW {
            self.millis.push(millis);
        } else if let Some(oldest) = self.millis.get_mut(self.next) {
            *oldest = millis;
            self.next = (self.next + 1) % WINDOW;
        }
    }

    /// The smallest latency that so many percent do not exceed (nearest rank).
    fn percentile(sorted: &[u32], percent: usize) -> Option<u32> {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }
}

/// Counters of one revision.
#[derive(Debug, Default)]
pub(super) struct Revision {
    name: String,
    requests: AtomicU64,
    errors: AtomicU64,
    timeouts: AtomicU64,
    rejections: AtomicU64,
    comparisons: AtomicU64,
    disagreements: AtomicU64,
    in_flight: AtomicU64,
    latencies: Mutex<Window>,
}

/// A request that is under way at a revision.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Revision>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UnderWay {
    pub(super) fn ended(&self, how: Ended, took: Duration) {
        let Revision {
            errors,
            timeouts,
            rejections,
            latencies,
            ..
        } = &*self.0;
        let counter = match how {
            Ended::Answered => {
                let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
                let mut latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
                return latencies.add(millis);
            }
            Ended::Failed => errors,
            Ended::TimedOut => timeouts,
            Ended::TurnedAway => rejections,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Revision {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Counts a request that begins.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
    }

    /// Counts a copy that was compared.
    pub(super) fn compared(&self, agrees: bool) {
        self.comparisons.fetch_add(1, Ordering::Relaxed);
        if !agrees {
            self.disagreements.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0
    }

    fn report(&self) -> RevisionReport {
        let mut sorted = self
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .millis
            .clone();
        sorted.sort_unstable();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RevisionReport {
            revision: self.name.clone(),
            requests: count(&self.requests),
            errors: count(&self.errors),
            timeouts: count(&self.timeouts),
            rejections: count(&self.rejections),
            p50_millis: Window::percentile(&sorted, 50),
            p95_millis: Window::percentile(&sorted, 95),
            comparisons: count(&self.comparisons),
            disagreements: count(&self.disagreements),
            in_flight: count(&self.in_flight),
        }
    }
}

/// The revisions that have, or had, traffic; the one that got it last is at the end.
#[derive(Debug, Default)]
pub(super) struct Revisions(Vec<Arc<Revision>>);

impl Revisions {
    /// The counters of a revision, new ones if it has none.
    pub(super) fn of(&mut self, name: &str) -> Arc<Revision> {
        let known = self.0.iter().position(|revision| revision.name == name);
        let revision = match known {
            Some(at) => self.0.remove(at),
            None => Arc::new(Revision::new(name)),
        };
        self.0.push(revision.clone());
        revision
    }

    /// A revision gets traffic that it did not have: what was counted in its former life is no part of this one.
    pub(super) fn begin_anew(&mut self, name: &str) {
        self.0.retain(|revision| revision.name != name);
    }

    /// Lets go of the oldest of those without traffic, beyond what is kept. One with requests under way stays.
    pub(super) fn tidy(&mut self, has_traffic: impl Fn(&str) -> bool) {
        let idle = |revision: &Revision| !has_traffic(&revision.name) && revision.is_idle();
        let mut beyond = self.0.iter().filter(|revision| idle(revision)).count();
        beyond = beyond.saturating_sub(KEPT);
        self.0.retain(|revision| {
            let goes = beyond > 0 && idle(revision);
            beyond -= usize::from(goes);
            !goes
        });
    }

    /// What was seen of each.
    pub(super) fn report(&self) -> Vec<RevisionReport> {
        self.0.iter().map(|revision| revision.report()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(count: u32) -> impl Iterator<Item = Duration> {
        (1..=count).map(|millis| Duration::from_millis(millis.into()))
    }

    #[test]
    fn requests_are_counted_by_how_they_end() {
        let mut revisions = Revisions::default();
        let revision = revisions.of("aaaa");
        for (how, times) in [
            (Ended::Answered, 5),
            (Ended::Failed, 1),
            (Ended::TimedOut, 2),
            (Ended::TurnedAway, 3),
        ] {
            for took in millis(times) {
                revision.begin().ended(how, took);
            }
        }
        // Its caller went away.
        drop(revision.begin());
        let under_way = revision.begin();
        revision.compared(true);
        revision.compared(false);
        let expected = RevisionReport {
            revision: "aaaa".to_owned(),
            requests: 13,
            errors: 1,
            timeouts: 2,
            rejections: 3,
            p50_millis: Some(3),
            p95_millis: Some(5),
            comparisons: 2,
            disagreements: 1,
            in_flight: 1,
        };
        assert_eq!(revisions.report(), [expected]);
        drop(under_way);
        assert_eq!(revisions.report()[0].in_flight, 0);
    }

    #[test]
    fn percentiles_are_those_of_the_last_answers() {
        for (count, p50, p95) in [
            (0, None, None),
            (1, Some(1), Some(1)),
            (2, Some(1), Some(2)),
            (20, Some(10), Some(19)),
            (100, Some(50), Some(95)),
            // The first 976 are out of the window of 1,024.
            (2000, Some(976 + 512), Some(976 + 973)),
        ] {
            let mut revisions = Revisions::default();
            let revision = revisions.of("aaaa");
            for took in millis(count) {
                revision.begin().ended(Ended::Answered, took);
            }
            let report = revisions.report().remove(0);
            assert_eq!(
                (report.p50_millis, report.p95_millis),
                (p50, p95),
                "{count}"
            );
        }
    }

    #[test]
    fn revisions_without_traffic_are_kept_for_a_while_and_their_counters_never_fall() {
        let mut revisions = Revisions::default();
        let names = |revisions: &Revisions| {
            let names = revisions.report().into_iter();
            names.map(|report| report.revision).collect::<Vec<_>>()
        };
        let busy = revisions.of("busy").begin();
        drop(revisions.of("serves").begin());
        for number in 0..KEPT + 2 {
            drop(revisions.of(&format!("old-{number}")).begin());
        }
        revisions.tidy(|name| name == "serves");
        let left = names(&revisions);
        assert_eq!(left.len(), KEPT + 2, "{left:?}");
        assert!(left.contains(&"busy".to_owned()) && left.contains(&"serves".to_owned()));
        assert!(!left.contains(&"old-0".to_owned()) && left.contains(&"old-2".to_owned()));
        drop(revisions.of("old-2").begin());
        let back = revisions.report().pop().unwrap();
        assert_eq!((&*back.revision, back.requests), ("old-2", 2), "it is back");
        revisions.begin_anew("old-2");
        drop(revisions.of("old-2").begin());
        let anew = revisions.report().pop().unwrap();
        assert_eq!(
            (&*anew.revision, anew.requests),
            ("old-2", 1),
            "tried again"
        );
        drop(busy);
        revisions.tidy(|name| name == "serves");
        assert!(!names(&revisions).contains(&"busy".to_owned()));
    }
}
