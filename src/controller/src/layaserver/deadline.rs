//! Deadlines (control-plane 7.1): a wall-clock start that status keeps, and how long this process has known it. A deadline
//! has passed when the wall clock says so and the ages of this process do not contradict it, so that a jump of the wall
//! clock can make nothing happen early.

use std::time::Duration;

use api::kinds::laya_server::RolloutProgress;
use jiff::Timestamp;

use super::observation::Ages;
use crate::clock::{Now, whole_seconds};

/// The time of a pass, and what this process knows of the ages of facts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks<'a> {
    /// Wall clock in whole seconds, as statuses show times.
    pub(super) now: Timestamp,
    ages: &'a Ages,
}

impl<'a> Clocks<'a> {
    pub(super) fn new(now: &Now, ages: &'a Ages) -> Self {
        Self {
            now: whole_seconds(now.wall),
            ages,
        }
    }

    /// Seconds from `at` until now by the wall clock; 0 where that lies ahead.
    pub(super) fn seconds_since(&self, at: Timestamp) -> i64 {
        (self.now.as_second() - at.as_second()).max(0)
    }

    /// Whether `seconds` have gone by since `at`, the start that [`super::fact_keys`] calls `fact`.
    pub(super) fn passed(&self, fact: &str, at: Timestamp, seconds: i64) -> bool {
        if self.seconds_since(at) < seconds {
            return false;
        }
        let known = self.ages.facts.get(&format!("{fact}@{at}"));
        let needed = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        // A second of grace: starts are in whole seconds, ages are not.
        known.is_none_or(|age| *age + Duration::from_secs(1) >= needed)
    }

    /// Whether the step of a rollout has run for so long. Its clock stood still while the rollout did: `pausedSeconds` is
    /// what had run before, `stepStartedAt` when it began, or stopped, last.
    pub(super) fn step_passed(&self, rollout: &RolloutProgress, seconds: i64) -> bool {
        let before = rollout.paused_seconds.unwrap_or(0);
        match rollout.step_started_at {
            Some(at) => self.passed("step", at, seconds - before),
            None => false,
        }
    }

    /// Stops the clock of a step: what has run is kept.
    pub(super) fn freeze(&self, rollout: &mut RolloutProgress) {
        let ran = rollout.step_started_at.map_or(0, |at| self.ran(at));
        rollout.paused_seconds = Some(rollout.paused_seconds.unwrap_or(0) + ran);
        rollout.step_started_at = Some(self.now);
    }

    /// Seconds that a step has run: not more than this process has known it, where it saw it begin.
    fn ran(&self, at: Timestamp) -> i64 {
        let known = self.ages.facts.get(&format!("step@{at}"));
        let most = known.map(|age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        let most = most.map_or(i64::MAX, |age| age.saturating_add(1));
        self.seconds_since(at).min(most)
    }

    /// Lets the clock of a step go on.
    pub(super) fn thaw(&self, rollout: &mut RolloutProgress) {
        rollout.step_started_at = Some(self.now);
    }

    /// Starts the clock of a new step.
    pub(super) fn restart(&self, rollout: &mut RolloutProgress) {
        rollout.step_started_at = Some(self.now);
        rollout.paused_seconds = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_796_000_000 + seconds).unwrap()
    }

    fn now(seconds: i64) -> Now {
        Now {
            wall: at(seconds),
            boot: Duration::from_secs(7),
        }
    }

    fn known(start: i64, age: u64) -> Ages {
        Ages {
            process: Duration::from_secs(10_000),
            facts: [(format!("step@{}", at(start)), Duration::from_secs(age))].into(),
        }
    }

    #[test]
    fn fault_11_a_jump_of_the_wall_clock_makes_no_deadline_pass_early() {
        for (row, ages, wall, passed) in [
            ("not yet", Ages::default(), 59, false),
            ("on time, not known before", Ages::default(), 60, true),
            ("on time, known all along", known(0, 60), 60, true),
            ("jumped an hour ahead", known(0, 5), 3_605, false),
            ("jumped ahead and then ran", known(0, 60), 3_660, true),
            ("jumped an hour back", known(0, 90), -3_510, false),
        ] {
            let clocks = Clocks::new(&now(wall), &ages);
            assert_eq!(clocks.passed("step", at(0), 60), passed, "{row}");
        }
    }

    #[test]
    fn a_clock_that_stood_still_goes_on_where_it_stopped() {
        let ages = Ages::default();
        let mut rollout = RolloutProgress {
            step_started_at: Some(at(0)),
            ..RolloutProgress::default()
        };
        Clocks::new(&now(40), &ages).freeze(&mut rollout);
        Clocks::new(&now(1_000), &ages).thaw(&mut rollout);
        assert_eq!(rollout.paused_seconds, Some(40));
        assert!(!Clocks::new(&now(1_019), &ages).step_passed(&rollout, 60));
        assert!(Clocks::new(&now(1_020), &ages).step_passed(&rollout, 60));
        let mut jumped = RolloutProgress {
            step_started_at: Some(at(0)),
            ..RolloutProgress::default()
        };
        Clocks::new(&now(3_600), &known(0, 40)).freeze(&mut jumped);
        assert_eq!(
            jumped.paused_seconds,
            Some(41),
            "a jump is no time that ran"
        );
        Clocks::new(&now(1_020), &ages).restart(&mut rollout);
        assert!(!Clocks::new(&now(1_060), &ages).step_passed(&rollout, 60));
    }
}
