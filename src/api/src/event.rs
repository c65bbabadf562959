//! Events (control-plane 14): their reasons, each with its action and type. No fact lives only in an event.

/// Longest note, in bytes.
pub const MAX_NOTE_BYTES: usize = 1000;
/// Most events of one object and minute; then one [`EventReason::EventsSuppressed`].
pub const MAX_PER_MINUTE: u32 = 10;

/// Whether somebody should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

macro_rules! closed {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }
        }
    };
}

closed!(
    /// What was being done.
    Action {
        /// A model was fetched.
        Fetch,
        /// A model was made usable.
        Publish,
        /// What differed was put right.
        Repair,
        /// Old data was removed.
        Prune,
        /// A child was written.
        Apply,
        /// A policy was looked at.
        Accept,
        /// A dataset was taken in.
        Import,
        /// A model was judged.
        Evaluate,
        /// A model was changed.
        Rollout,
        /// A model was trained.
        Train,
        /// Something was looked at.
        Observe,
    }
);

macro_rules! events {
    ($($kind:ident $action:ident { $($(#[$doc:meta])* $variant:ident),+ $(,)? })+) => {
        closed!(
            /// Why an event was written.
            EventReason { $($($(#[$doc])* $variant),+),+ }
        );

        impl EventReason {
            /// Whether somebody should look.
            #[must_use]
            pub const fn event_type(self) -> EventType {
                match self { $($(Self::$variant)|+ => EventType::$kind),+ }
            }

            /// What was being done.
            #[must_use]
            pub const fn action(self) -> Action {
                match self { $($(Self::$variant)|+ => Action::$action),+ }
            }
        }
    };
}

events! {
    Normal Fetch {
        /// A model is here.
        Fetched,
    }
    Normal Publish {
        /// A model can be used.
        Published,
    }
    Normal Repair {
        /// A child differed and was put right; the note says what differed.
        Repaired,
    }
    Normal Prune {
        /// Data that nothing names was removed.
        Pruned,
    }
    Normal Apply {
        /// Something that ran already was taken over.
        Adopted,
    }
    Normal Accept {
        /// A policy compiles and routers may use it.
        PolicyAccepted,
    }
    Normal Import {
        /// A dataset was taken in.
        DatasetImported,
    }
    Normal Evaluate {
        /// A model passed its gate.
        GatePassed,
    }
    Normal Rollout {
        /// A candidate is on its way.
        RolloutStarted,
        /// The candidate got more traffic.
        StepTaken,
        /// The candidate is champion.
        Promoted,
        /// The old one has no requests any more.
        Drained,
        /// The wish is the champion again.
        Withdrawn,
        /// A newer wish took its place.
        Superseded,
        /// Rules answer while the old one stops and the new one starts.
        GapStarted,
        /// The new one answers.
        GapEnded,
    }
    Normal Train {
        /// A training runs.
        TrainingStarted,
        /// It goes on from a checkpoint.
        TrainingResumed,
        /// It is tried once more with less memory.
        LowMemoryRetry,
        /// It made a model.
        TrainingSucceeded,
    }
    Warning Rollout {
        /// A promoted model was taken back.
        RolledBack,
        /// A candidate was taken back.
        Rejected,
        /// The way back failed; rules answer.
        RollbackFailed,
    }
    Warning Train {
        /// It made no model.
        TrainingFailed,
    }
    Warning Evaluate {
        /// A model did not pass its gate.
        GateFailed,
        /// There was too little to judge by.
        GateInconclusive,
        /// The judging itself failed.
        GateError,
        /// These held-out rows judged more than 50 models.
        EvaluationSetWorn,
    }
    Warning Observe {
        /// Tasks end worse than before.
        OutcomesWorse,
        /// It is served by another device than the asked one.
        DeviceMismatch,
        /// The server went to the CPU by itself.
        CpuFallback,
        /// Probe questions were answered wrong or not at all.
        ProbeFailed,
        /// A server ends again and again.
        CrashLoop,
        /// A server needed more memory than its limit.
        OutOfMemory,
        /// Files of a model differ from its manifest.
        ModelDamaged,
        /// More events came than one object may have in a minute.
        EventsSuppressed,
    }
    Warning Apply {
        /// The name belongs to something that is not ours.
        NameTaken,
        /// The port belongs to something that is not ours.
        PortInUse,
        /// A child whose owner is gone was removed.
        OrphanRemoved,
        /// Data could not be removed in time and was left.
        CleanupAbandoned,
    }
    Warning Accept {
        /// A policy does not compile; the one before stays in force.
        PolicyRefused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_every_action_is_used() {
        let words: std::collections::BTreeSet<_> = EventReason::ALL
            .iter()
            .map(|reason| reason.as_str())
            .collect();
        assert_eq!(words.len(), EventReason::ALL.len());
        for action in Action::ALL {
            assert!(
                EventReason::ALL
                    .iter()
                    .any(|reason| reason.action() == *action),
                "{action:?}"
            );
        }
        // Longest reason and action that an API server takes.
        assert!(words.iter().all(|word| word.len() <= 128));
    }

    #[test]
    fn types_and_actions_are_those_of_the_page() {
        for (reason, kind, action) in [
            (
                EventReason::PolicyAccepted,
                EventType::Normal,
                Action::Accept,
            ),
            (
                EventReason::PolicyRefused,
                EventType::Warning,
                Action::Accept,
            ),
            (EventReason::GatePassed, EventType::Normal, Action::Evaluate),
            (
                EventReason::GateFailed,
                EventType::Warning,
                Action::Evaluate,
            ),
            (
                EventReason::OutcomesWorse,
                EventType::Warning,
                Action::Observe,
            ),
            (EventReason::NameTaken, EventType::Warning, Action::Apply),
        ] {
            assert_eq!(
                (reason.event_type(), reason.action()),
                (kind, action),
                "{reason:?}"
            );
        }
    }
}
