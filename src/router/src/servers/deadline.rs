//! How long the decision model may take for one request (routing.md 3).

use std::time::{Duration, Instant};

/// Kept for the router's own answer, so that a client with the same deadline still gets it.
const KEPT: Duration = Duration::from_millis(250);

/// Until when a request waits for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    began: Instant,
    ends: Instant,
}

impl Deadline {
    /// For a request that arrived at `arrived`, under a policy that allows `timeout`: 250 ms less, or half of a time-out
    /// that is shorter than 500 ms.
    #[must_use]
    pub fn of_request(arrived: Instant, timeout: Duration) -> Self {
        let kept = KEPT.min(timeout / 2);
        Self {
            began: arrived,
            ends: arrived + timeout.saturating_sub(kept),
        }
    }

    /// When it is over.
    #[must_use]
    pub const fn ends(&self) -> Instant {
        self.ends
    }

    /// What is left.
    pub(super) fn left(&self, now: Instant) -> Duration {
        self.ends.saturating_duration_since(now)
    }

    /// Until when the first of several servers may take.
    pub(super) fn first_try_ends(&self, now: Instant) -> Instant {
        first_try_ends(self.began, self.ends, now)
    }

    /// Whether a second server may be asked: at least 30 % is left.
    pub(super) fn allows_second(&self, now: Instant) -> bool {
        allows_second(self.began, self.ends, now)
    }
}

/// Until when the first of several servers may take, so that one that hangs leaves enough for a second: two thirds of the
/// whole, which leaves the 30 % with some room. All of it where more than that is gone already.
pub(super) fn first_try_ends(began: Instant, ends: Instant, now: Instant) -> Instant {
    let whole = ends.saturating_duration_since(began);
    let first = began + whole * 2 / 3;
    if now < first { first } else { ends }
}

/// Whether at least 30 % of the time between two moments is left.
pub(super) fn allows_second(began: Instant, ends: Instant, now: Instant) -> bool {
    let whole = ends.saturating_duration_since(began);
    ends.saturating_duration_since(now) * 10 >= whole * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_kept_for_the_answer() {
        let arrived = Instant::now();
        let at = |millis| arrived + Duration::from_millis(millis);
        for (timeout, ends, last_second) in [
            (5000, 4750, 3325),
            (1000, 750, 525),
            (500, 250, 175),
            (400, 200, 140),
            (100, 50, 35),
        ] {
            let deadline = Deadline::of_request(arrived, Duration::from_millis(timeout));
            assert_eq!(deadline.ends(), at(ends), "{timeout}");
            assert!(deadline.allows_second(at(last_second)), "{timeout}");
            assert!(!deadline.allows_second(at(last_second + 1)), "{timeout}");
            assert_eq!(deadline.left(at(ends + 5)), Duration::ZERO, "{timeout}");
            let first = deadline.first_try_ends(arrived);
            assert!(deadline.allows_second(first), "{timeout}");
            assert!(
                first - arrived >= Duration::from_millis(ends / 2),
                "{timeout}"
            );
            assert_eq!(deadline.first_try_ends(first), at(ends), "{timeout}");
        }
    }
}
