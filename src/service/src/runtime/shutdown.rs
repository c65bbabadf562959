//! How a process ends, as one value everybody can wait on: running, then draining (finish what is open, take nothing
//! new), then stopping (drop what is left). The phase only ever goes forward.

use tokio::sync::watch;

/// Where the process is between start and exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Working.
    Running,
    /// Finishing open work; nothing new is taken.
    Draining,
    /// Dropping what is left.
    Stopping,
}

/// Moves the phase forward. One per process.
#[derive(Debug)]
pub struct ShutdownTrigger {
    phase: watch::Sender<Phase>,
}

impl ShutdownTrigger {
    /// A trigger in phase `Running` and the token its tasks wait on.
    #[must_use]
    pub fn new() -> (Self, Shutdown) {
        let (phase, seen) = watch::channel(Phase::Running);
        (Self { phase }, Shutdown { phase: seen })
    }

    /// Goes to `phase`; going back changes nothing.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let forward = phase > *now;
            if forward {
                *now = phase;
            }
            forward
        });
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }
}

/// The token every task of a process holds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Receiver<Phase>,
}

impl Shutdown {
    /// Where the process is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Returns once the process drains or stops. Cancel safe.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Returns once the process stops. Cancel safe.
    pub async fn stopping(&self) {
        self.reached(Phase::Stopping).await;
    }

    async fn reached(&self, phase: Phase) {
        // A trigger that is gone means nobody will drain any more: that is stopping too.
        let _ = self.phase.clone().wait_for(|now| *now >= phase).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_phase_goes_forward_only_and_wakes_the_right_waiters() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        assert_eq!(shutdown.phase(), Phase::Running);
        trigger.advance(Phase::Draining);
        shutdown.draining().await;
        let stopping =
            tokio::time::timeout(std::time::Duration::from_millis(5), shutdown.stopping()).await;
        assert!(stopping.is_err(), "draining is not stopping");
        trigger.advance(Phase::Stopping);
        trigger.advance(Phase::Draining);
        shutdown.stopping().await;
        assert_eq!(shutdown.phase(), Phase::Stopping);
    }

    #[tokio::test]
    async fn a_trigger_that_is_gone_stops_everybody() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        drop(trigger);
        shutdown.stopping().await;
    }
}
