//! What an error of a provider is and what to do about it (routing.md 12). Looks at the status and the error body, never
//! at an agent's prose.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quota::ProviderFault;
use crate::registry::ModelRef;

/// Windows are taken from 1.2 × the tokens of the conversation on.
pub const OVERFLOW_ROOM: f64 = 1.2;
/// After this many in a row an unavailable provider is left for another.
const PATIENCE: u32 = 2;
/// The wait when the provider names none.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(30);
/// The longest wait.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Rate limit, overload, quota.
    RateLimited,
    /// Network, time-out, other 5xx.
    Unavailable,
    /// Credentials.
    Auth,
    /// The conversation is longer than the window.
    ContextOverflow,
    /// Anything else.
    Other,
}

/// Phrases as folded words, so that `rate_limit_error`, `rateLimitExceeded` and `Rate limit` are one.
const LIMITED: &[&str] = &[
    "rate limit",
    "ratelimit",
    "overloaded",
    "quota",
    "capacity",
    "too many requests",
    "usage limit",
];
/// Codes and types first, then wordings of the served families (agent 11.4).
const OVERFLOW: &[&str] = &[
    "context length exceeded",
    "model context window exceeded",
    "request too large",
    "maximum context length",
    "context length",
    "context window",
    "context limit",
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "input token count",
    "maximum number of tokens",
    "too many tokens",
];
const NETWORK: &[&str] = &[
    "network",
    "timeout",
    "timed out",
    "etimedout",
    "connection refused",
    "connection reset",
    "connection closed",
    "connection error",
    "econnrefused",
    "econnreset",
    "enotfound",
    "socket hang up",
    "fetch failed",
    "unreachable",
];

/// The class of an error; `message` is the error body or the client's message about the connection.
#[must_use]
pub fn classify(status: Option<u16>, message: &str) -> ErrorClass {
    let said = Folded::new(message);
    match status {
        Some(429 | 529) => ErrorClass::RateLimited,
        Some(413) => ErrorClass::ContextOverflow,
        // A limit that is named in an overflow ("over the limit", "capacity") is not a rate limit.
        None | Some(400 | 422) if said.any(OVERFLOW) => ErrorClass::ContextOverflow,
        // Some servers say no more about a conversation that is too long (agent 11.4).
        Some(400) if message.trim().is_empty() => ErrorClass::ContextOverflow,
        _ if said.any(LIMITED) => ErrorClass::RateLimited,
        Some(401 | 403) => ErrorClass::Auth,
        Some(408 | 500..) => ErrorClass::Unavailable,
        None if said.any(NETWORK) => ErrorClass::Unavailable,
        _ => ErrorClass::Other,
    }
}

/// Text as lower-case words between single spaces.
struct Folded(String);

impl Folded {
    fn new(text: &str) -> Self {
        let mut folded = String::from(" ");
        let mut before = ' ';
        for c in text.chars() {
            if !c.is_alphanumeric() || (before.is_lowercase() && c.is_uppercase()) {
                folded.push(' ');
            }
            if c.is_alphanumeric() {
                folded.extend(c.to_lowercase());
            }
            before = c;
        }
        let words: Vec<_> = folded.split_whitespace().collect();
        Self(format!(" {} ", words.join(" ")))
    }

    /// Whole words only; a plural counts.
    fn any(&self, phrases: &[&str]) -> bool {
        let found = |phrase: &&str| {
            self.0.match_indices(*phrase).any(|(at, _)| {
                let after = self.0[at + phrase.len()..].trim_start_matches('s');
                self.0[..at].ends_with(' ') && after.starts_with(' ')
            })
        };
        phrases.iter().any(found)
    }
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask the same model again.
    Again,
    /// Select again with minimum and required tier = current tier and the effort kept; reason `provider_unavailable`.
    Reselect,
    /// Leave the provider out until its credentials change, and select again.
    LeaveOut,
    /// Select again among windows of [`OVERFLOW_ROOM`] × the tokens and more.
    Widen,
}

/// What an error does to the provider's quota and to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// For [`QuotaState::after_fault`](crate::quota::QuotaState::after_fault).
    pub fault: Option<ProviderFault>,
    /// For the task.
    pub action: Action,
}

/// The answer to an error; `in_a_row` counts errors of this class without a success between, this one included.
#[must_use]
pub fn respond(class: ErrorClass, in_a_row: u32) -> Response {
    let (fault, action) = match class {
        ErrorClass::RateLimited => (Some(ProviderFault::Exhausted), Action::Reselect),
        ErrorClass::Unavailable if in_a_row >= PATIENCE => {
            (Some(ProviderFault::Unavailable), Action::Reselect)
        }
        ErrorClass::Unavailable => (Some(ProviderFault::Unavailable), Action::Again),
        ErrorClass::Auth => (None, Action::LeaveOut),
        ErrorClass::ContextOverflow => (None, Action::Widen),
        ErrorClass::Other => (None, Action::Again),
    };
    Response { fault, action }
}

/// How an error ends for the task, once it was selected again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Go on with another model, same tier; recorded with from = to.
    Move,
    /// Wait for the same one; neither attempt nor escalation is counted.
    Wait {
        /// How long.
        retry_after: Duration,
    },
    /// No window is large enough: the conversation must be made shorter.
    Compact,
}

/// What becomes of a task whose model failed, given what selecting again chose.
#[must_use]
pub fn settle(
    action: Action,
    current: &ModelRef,
    chosen: Option<&ModelRef>,
    retry_after: Option<Duration>,
) -> Settled {
    match (action, chosen) {
        (Action::Again, _) => Settled::Wait {
            retry_after: retry_after.map_or(Duration::ZERO, shortened),
        },
        (_, Some(chosen)) if chosen != current => Settled::Move,
        (Action::Widen, _) => Settled::Compact,
        _ => Settled::Wait {
            retry_after: retry_after.map_or(DEFAULT_WAIT, shortened),
        },
    }
}

fn shortened(wait: Duration) -> Duration {
    wait.min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests;
