//! Exit codes of `relayctl` (control-plane 18). In this table the same meaning never has two codes.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $meaning:literal;)+) => {
        /// Why `relayctl` ended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Exit { $($(#[$doc])* $variant),+ }

        impl Exit {
            /// All of them, by code.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The code.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code),+ }
            }

            /// What it means, for `--help` and the docs.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

codes! {
    /// Done.
    Done = 0, "done";
    /// Failed, and none of the others says why.
    Failed = 1, "failed, not listed below";
    /// The command line was not understood.
    Usage = 2, "usage";
    /// There is no such object.
    NotFound = 3, "not found";
    /// The object or the input is not as it must be.
    Refused = 4, "refused: invalid object or input";
    /// Somebody else changed it, owns it, or runs it.
    Conflict = 5, "conflict";
    /// Nobody answers.
    Unreachable = 6, "daemon, API or engine unreachable";
    /// It did not happen in time.
    TimedOut = 7, "waited too long";
    /// The gate says no.
    GateFailed = 8, "gate Failed";
    /// The gate cannot say.
    GateInconclusive = 9, "gate Inconclusive or Error";
    /// The rollout went back.
    RolloutRejected = 10, "rollout rejected, rolled back or aborted";
    /// No right to do it.
    Forbidden = 11, "unauthorised or forbidden";
    /// Nobody could be asked.
    ConfirmationNeeded = 12, "confirmation needed (`--yes`)";
    /// The training made no model.
    TrainingFailed = 13, "training failed or cancelled";
    /// What was looked for was found.
    Differences = 15, "found: differences (`diff`), failures (`doctor`, `policy test`)";
    /// SIGINT.
    Interrupted = 130, "interrupted";
    /// SIGTERM.
    Terminated = 143, "terminated";
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_meanings_are_unique_and_in_order() {
        let codes: Vec<_> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        let meanings: std::collections::BTreeSet<_> =
            Exit::ALL.iter().map(|exit| exit.meaning()).collect();
        assert_eq!(meanings.len(), Exit::ALL.len());
        assert_eq!(
            codes,
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 130, 143]
        );
    }
}
