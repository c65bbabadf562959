//! Whether the server may be asked, and why not (wire.md 2.5). Liveness is another thing and never depends on this.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why `/ready` is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// It is being stopped, or was told to drain.
    Draining,
    /// Checkpoints are being loaded.
    Starting,
    /// A checkpoint is not on this machine.
    NoCheckpoint,
    /// A checkpoint could not be loaded.
    LoadFailed,
    /// The device asked for is not there.
    WrongDevice,
    /// A checkpoint names another contract.
    WrongContract,
    /// Probe questions were answered wrongly.
    ProbeFailed,
}

impl Reason {
    /// The word in replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "Draining",
            Self::Starting => "Starting",
            Self::NoCheckpoint => "NoCheckpoint",
            Self::LoadFailed => "LoadFailed",
            Self::WrongDevice => "WrongDevice",
            Self::WrongContract => "WrongContract",
            Self::ProbeFailed => "ProbeFailed",
        }
    }
}

/// Why the server is not ready, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// The reason.
    pub reason: Reason,
    /// What to do.
    pub message: String,
    /// What was found, in a word, where the reason has several ([`Reason::ProbeFailed`]).
    pub finding: Option<&'static str>,
}

impl NotReady {
    /// For a reason that says all.
    #[must_use]
    pub const fn new(reason: Reason, message: String) -> Self {
        Self {
            reason,
            message,
            finding: None,
        }
    }
}

#[derive(Debug)]
struct State {
    starting: bool,
    stopping: bool,
    told_to_drain: bool,
    device: Option<String>,
    /// By checkpoint.
    problems: BTreeMap<String, NotReady>,
}

/// Everything that readiness depends on.
#[derive(Debug)]
pub struct Readiness(Mutex<State>);

impl Default for Readiness {
    /// Starting, with nothing known to be wrong.
    fn default() -> Self {
        Self(Mutex::new(State {
            starting: true,
            stopping: false,
            told_to_drain: false,
            device: None,
            problems: BTreeMap::new(),
        }))
    }
}

impl Readiness {
    /// None when ready; else the most important reason.
    #[must_use]
    pub fn problem(&self) -> Option<NotReady> {
        let state = self.lock();
        let not_ready = |reason, message: &str| Some(NotReady::new(reason, message.to_owned()));
        if state.stopping {
            return not_ready(Reason::Draining, "the server is stopping; ask another one");
        }
        if state.told_to_drain {
            return not_ready(
                Reason::Draining,
                "the server was told to drain; DELETE /drain ends it",
            );
        }
        if let Some((name, problem)) = state.problems.iter().next() {
            return Some(NotReady {
                message: format!("checkpoint '{name}': {}", problem.message),
                ..problem.clone()
            });
        }
        if let Some(message) = &state.device {
            return not_ready(Reason::WrongDevice, message);
        }
        if state.starting {
            return not_ready(Reason::Starting, "checkpoints are being loaded; wait");
        }
        None
    }

    /// Every checkpoint to preload is loaded, or there is none.
    pub fn started(&self) {
        self.lock().starting = false;
    }

    /// The process ends.
    pub fn stopping(&self) {
        self.lock().stopping = true;
    }

    /// Starts or ends a drain.
    pub fn drain(&self, drain: Drain) {
        self.lock().told_to_drain = drain == Drain::Start;
    }

    /// Whether new decision requests are turned away.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.lock().told_to_drain
    }

    /// Whether the process ends or was told to drain.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        let state = self.lock();
        state.told_to_drain || state.stopping
    }

    /// The device asked for is not there.
    pub fn wrong_device(&self, message: String) {
        self.lock().device = Some(message);
    }

    /// What is wrong with a checkpoint.
    pub fn failed(&self, checkpoint: &str, problem: NotReady) {
        self.lock().problems.insert(checkpoint.to_owned(), problem);
    }

    /// Nothing is wrong with a checkpoint any more.
    pub fn recovered(&self, checkpoint: &str) {
        self.lock().problems.remove(checkpoint);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `/drain` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Turn new requests away.
    Start,
    /// Take them again.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(readiness: &Readiness) -> Option<Reason> {
        readiness.problem().map(|problem| problem.reason)
    }

    #[test]
    fn names_the_most_important_reason_and_turns_true_when_causes_go() {
        let readiness = Readiness::default();
        assert_eq!(reason(&readiness), Some(Reason::Starting));
        let missing = NotReady::new(Reason::NoCheckpoint, "fetch it".to_owned());
        readiness.failed("english", missing);
        assert_eq!(
            readiness.problem().unwrap().message,
            "checkpoint 'english': fetch it"
        );
        readiness.recovered("english");
        readiness.started();
        assert_eq!(reason(&readiness), None);
        let wrong = NotReady {
            finding: Some("DeadHead"),
            ..NotReady::new(Reason::ProbeFailed, "x".to_owned())
        };
        readiness.failed("english", wrong);
        assert_eq!(readiness.problem().unwrap().finding, Some("DeadHead"));
        readiness.drain(Drain::Start);
        assert_eq!(reason(&readiness), Some(Reason::Draining));
        readiness.drain(Drain::End);
        assert_eq!(reason(&readiness), Some(Reason::ProbeFailed));
        readiness.recovered("english");
        readiness.wrong_device("cuda is not here".to_owned());
        assert_eq!(reason(&readiness), Some(Reason::WrongDevice));
        readiness.stopping();
        assert_eq!(reason(&readiness), Some(Reason::Draining));
        assert!(
            !readiness.is_drained(),
            "requests are still taken while the process ends"
        );
    }
}
