//! The right to write (control-plane 16). Every action and every status write asks the fence first and has a deadline
//! below what is left of the lease, so that nothing starts that could end after it. Locally a file lock is the right; in
//! a cluster it is a lease, whose last renewal is measured by the boot-time clock: a paused process that wakes finds its
//! right gone before it writes. Taking and renewing the lease is somebody else's work, told through a [`LeaseKeeper`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use files::Lock;

use crate::clock::Clock;

/// A renewal older than this is no right any more: the lease holds 15 s, and a call may take 5.
pub const RENEWED_WITHIN: Duration = Duration::from_secs(10);

/// Which holder of the right this is; a later holder has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub u64);

/// The right to write is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FenceError {
    /// Nobody gave it yet, or it was given up.
    #[error("this process does not hold the lease")]
    NotHeld,
    /// It was not renewed in time.
    #[error("the lease was renewed {} s ago, limit {} s", age.as_secs(), RENEWED_WITHIN.as_secs())]
    TooOld {
        /// Time since the last renewal.
        age: Duration,
    },
}

/// Asked before every write. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fence {
    right: Right,
}

#[derive(Debug, Clone)]
enum Right {
    /// Held as long as the file is locked, that is as long as the value lives.
    Lock { _held: Arc<Lock> },
    Lease(Arc<Lease>),
    Only,
}

#[derive(Debug)]
struct Lease {
    clock: Arc<dyn Clock>,
    held: Mutex<Option<Held>>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    term: Term,
    /// Boot time at which the renewal was sent, not at which it was answered.
    renewed: Duration,
}

impl Fence {
    /// The lock of the local daemon, taken by the caller.
    #[must_use]
    pub fn lock(lock: Lock) -> Self {
        Self {
            right: Right::Lock {
                _held: Arc::new(lock),
            },
        }
    }

    /// A process that the operator runs once: there is nobody to be told apart from.
    #[must_use]
    pub const fn only_instance() -> Self {
        Self { right: Right::Only }
    }

    /// A right that a lease gives and takes; nobody has it yet.
    #[must_use]
    pub fn lease(clock: Arc<dyn Clock>) -> (Self, LeaseKeeper) {
        let lease = Arc::new(Lease {
            clock,
            held: Mutex::new(None),
        });
        let fence = Self {
            right: Right::Lease(lease.clone()),
        };
        (fence, LeaseKeeper { lease })
    }

    /// The term under which a write may start now.
    ///
    /// # Errors
    /// When there is none, or it may end before the write does.
    pub fn check(&self) -> Result<Term, FenceError> {
        match &self.right {
            Right::Lock { .. } | Right::Only => Ok(Term(0)),
            Right::Lease(lease) => lease.check(),
        }
    }
}

impl Lease {
    fn check(&self) -> Result<Term, FenceError> {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { term, renewed } = held.ok_or(FenceError::NotHeld)?;
        let age = self.clock.now().boot.saturating_sub(renewed);
        if age < RENEWED_WITHIN {
            Ok(term)
        } else {
            Err(FenceError::TooOld { age })
        }
    }
}

/// What keeps a lease tells the fence about it.
#[derive(Debug)]
pub struct LeaseKeeper {
    lease: Arc<Lease>,
}

impl LeaseKeeper {
    /// The lease was taken or renewed by a call that was sent at `sent` (boot time).
    pub fn renewed(&self, term: Term, sent: Duration) {
        self.set(Some(Held {
            term,
            renewed: sent,
        }));
    }

    /// The lease was given up or lost.
    pub fn lost(&self) {
        self.set(None);
    }

    fn set(&self, held: Option<Held>) {
        *self
            .lease
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Now;

    /// Both clocks by hand.
    #[derive(Debug)]
    struct Hands(Mutex<Now>);

    impl Clock for Hands {
        fn now(&self) -> Now {
            *self.0.lock().unwrap()
        }
    }

    fn hands() -> Arc<Hands> {
        Arc::new(Hands(Mutex::new(Now {
            wall: "2026-11-30T10:00:00Z".parse().unwrap(),
            boot: Duration::from_secs(100),
        })))
    }

    #[test]
    fn a_lock_is_a_right_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let fence = Fence::lock(Lock::try_take(&path).unwrap().unwrap());
        assert_eq!(fence.check(), Ok(Term(0)));
        assert!(Lock::try_take(&path).unwrap().is_none(), "held by the fence");
        drop(fence);
        assert!(Lock::try_take(&path).unwrap().is_some(), "free again");
    }

    #[test]
    fn a_lease_is_a_right_for_ten_seconds_after_its_renewal_was_sent() {
        let clock = hands();
        let (fence, keeper) = Fence::lease(clock.clone());
        assert_eq!(fence.check(), Err(FenceError::NotHeld));
        keeper.renewed(Term(7), Duration::from_secs(98));
        assert_eq!(fence.check(), Ok(Term(7)));
        clock.0.lock().unwrap().boot = Duration::from_millis(107_999);
        assert_eq!(fence.check(), Ok(Term(7)));
        clock.0.lock().unwrap().boot = Duration::from_secs(108);
        let late = FenceError::TooOld {
            age: Duration::from_secs(10),
        };
        assert_eq!(fence.check(), Err(late));
        keeper.renewed(Term(8), Duration::from_secs(108));
        assert_eq!(fence.check(), Ok(Term(8)));
        keeper.lost();
        assert_eq!(fence.check(), Err(FenceError::NotHeld));
    }

    #[test]
    fn fault_11_a_jump_of_the_wall_clock_neither_gives_nor_takes_the_right() {
        let clock = hands();
        let (fence, keeper) = Fence::lease(clock.clone());
        keeper.renewed(Term(1), Duration::from_secs(100));
        for wall in ["2026-11-30T11:00:00Z", "2026-11-30T09:00:00Z"] {
            clock.0.lock().unwrap().wall = wall.parse().unwrap();
            assert_eq!(fence.check(), Ok(Term(1)), "{wall}");
        }
        // The machine slept for an hour: the boot clock ran on.
        clock.0.lock().unwrap().boot += Duration::from_secs(3600);
        assert!(matches!(fence.check(), Err(FenceError::TooOld { .. })));
    }
}
