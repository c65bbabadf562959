//! One error that may come a hundred thousand times: it is logged at 1, 10, 100, … occurrences, the others are counted.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus::IntCounter;

/// Counts one kind of error since it last went away.
#[derive(Debug)]
pub struct RepeatedError {
    seen: AtomicU64,
    suppressed: IntCounter,
}

impl RepeatedError {
    /// A counter that has seen nothing; what it holds back is counted in `relay_log_suppressed_total`.
    #[must_use]
    pub const fn new(suppressed: IntCounter) -> Self {
        Self {
            seen: AtomicU64::new(0),
            suppressed,
        }
    }

    /// One more. The count so far if this one is to be logged.
    #[must_use]
    pub fn occurred(&self) -> Option<u64> {
        let count = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if is_power_of_ten(count) {
            return Some(count);
        }
        self.suppressed.inc();
        None
    }

    /// It works again. How often it had failed, if it had.
    #[must_use]
    pub fn recovered(&self) -> Option<u64> {
        match self.seen.swap(0, Ordering::Relaxed) {
            0 => None,
            count => Some(count),
        }
    }
}

fn is_power_of_ten(count: u64) -> bool {
    count
        .checked_ilog10()
        .is_some_and(|digits| 10_u64.pow(digits) == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_at_powers_of_ten_and_counts_the_rest() {
        let suppressed = IntCounter::new("suppressed_total", "test").unwrap();
        let error = RepeatedError::new(suppressed.clone());
        assert_eq!(error.recovered(), None);
        let logged: Vec<_> = (0..100_000).filter_map(|_| error.occurred()).collect();
        assert_eq!(logged, [1, 10, 100, 1_000, 10_000, 100_000]);
        assert_eq!(suppressed.get(), 100_000 - 6);
        assert_eq!(error.recovered(), Some(100_000));
        assert_eq!(error.occurred(), Some(1), "a new series starts at one");
    }
}
