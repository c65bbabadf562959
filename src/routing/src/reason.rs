//! The closed sets of words with which a decision explains itself: reasons, warnings, exclusions, fallbacks
//! (routing.md 6, 9, 17). They are labels of metrics too, so nothing else may be written there.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word used in JSON, in files and in metric labels.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words!(
    /// Why a tier was raised or a task moved.
    Reason {
        /// Confidence was below the minimum.
        InsufficientConfidence = "insufficient_confidence",
        /// A check failed.
        TestFailure = "test_failure",
        /// Something the task needs was not there.
        MissingContext = "missing_context",
        /// The risk is at or above the threshold.
        HighRisk = "high_risk",
        /// Tools failed again and again.
        RepeatedFailure = "repeated_failure",
        /// A complex design.
        ArchitectureComplexity = "architecture_complexity",
        /// A rule fired or the work is security work.
        SecuritySensitive = "security_sensitive",
        /// A provider is down or exhausted.
        ProviderUnavailable = "provider_unavailable",
        /// The request was cut before the model saw it.
        InputTruncated = "input_truncated",
    }
);

impl Reason {
    /// Whether it moves a task up and counts against [the limit](crate::escalation::MOST_ESCALATIONS); the policy's own
    /// raises and moves between providers do not.
    #[must_use]
    pub const fn is_escalation(self) -> bool {
        matches!(self, Self::TestFailure | Self::RepeatedFailure)
    }

    /// Whether it is of a task that runs: the policy, which looks at a request before it runs, never gives it.
    #[must_use]
    pub const fn is_of_running_task(self) -> bool {
        self.is_escalation() || matches!(self, Self::ProviderUnavailable)
    }
}

words!(
    /// What a person should know about a decision that was made all the same.
    WarningCode {
        /// An explicit choice lies below a floor.
        BelowFloor = "below_floor",
        /// The model is not in the registry.
        CapabilityUnknown = "capability_unknown",
        /// No candidate reaches the profile's minimum success.
        BelowMinimumSuccess = "below_minimum_success",
        /// Every candidate at the floor is unavailable; availability was ignored.
        ProviderUnavailable = "provider_unavailable",
        /// Nothing at or above the floor; the strongest tier there is was taken.
        FloorNotMet = "floor_not_met",
        /// A price is older than 90 days.
        PriceStale = "price_stale",
        /// The store did not answer.
        StoreUnavailable = "store_unavailable",
    }
);

words!(
    /// Why a candidate was not considered.
    Exclusion {
        /// Weaker than the floor.
        BelowMinTier = "below_min_tier",
        /// Its provider is exhausted.
        Availability = "availability",
        /// The conversation does not fit.
        ContextWindow = "context_window",
        /// It failed too often at this class of task.
        History = "history",
        /// Its provider has no credentials here.
        NoCredentials = "no_credentials",
        /// The request rules it out.
        Constraint = "constraint",
    }
);

words!(
    /// Why the decision model did not answer.
    Fallback {
        /// The deadline passed.
        Timeout = "timeout",
        /// The breaker is open.
        BreakerOpen = "breaker_open",
        /// It answered nonsense.
        InvalidAnswers = "invalid_answers",
        /// It could not be reached.
        Unreachable = "unreachable",
        /// None is configured or serving.
        NoModel = "no_model",
        /// Too many calls are in flight.
        Busy = "busy",
        /// The client decided itself, without a router.
        RouterUnreachable = "router_unreachable",
    }
);

/// A warning with the sentence a person reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// Which.
    pub code: WarningCode,
    /// What happened and what to do.
    pub message: String,
}
