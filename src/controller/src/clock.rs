//! Time as a value: what a pass decides by is read once, at its start, and passed in.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// What both clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall clock, for times that others read. It may jump.
    pub wall: Timestamp,
    /// Time since boot. It never jumps and runs on while the machine sleeps, unlike `Instant` on Linux.
    pub boot: Duration,
}

/// Where the time comes from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Both clocks.
    fn now(&self) -> Now;
}

/// The clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let boot = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(boot.tv_nsec).unwrap_or(0);
        Now {
            wall: Timestamp::now(),
            boot: Duration::new(seconds, nanos),
        }
    }
}

/// The same moment in whole seconds, as statuses show times.
#[must_use]
pub fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_moves_forward_and_statuses_have_whole_seconds() {
        let first = SystemClock.now();
        let second = SystemClock.now();
        assert!(first.boot > Duration::ZERO && second.boot >= first.boot);
        let at: Timestamp = "2026-11-30T10:00:00.987Z".parse().unwrap();
        assert_eq!(whole_seconds(at).to_string(), "2026-11-30T10:00:00Z");
    }
}
