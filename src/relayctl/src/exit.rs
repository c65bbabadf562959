//! Exit codes of `relayctl` (control-plane 18), as a type that ends a process.

/// How a command ended. Codes are API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed, not listed below.
    Failed = 1,
    /// Arguments that cannot be.
    Usage = 2,
    /// No such object, file or context.
    NotFound = 3,
    /// An invalid object or input.
    Refused = 4,
    /// Somebody else owns or changed it.
    Conflict = 5,
    /// Daemon, API or engine does not answer.
    Unreachable = 6,
    /// Waited too long.
    TimedOut = 7,
    /// Unauthorised or forbidden.
    Forbidden = 11,
    /// `--yes` is needed.
    ConfirmationNeeded = 12,
    /// `diff` found differences, `doctor` or `policy test` found failures.
    Differences = 15,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}
