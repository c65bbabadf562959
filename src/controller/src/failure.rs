//! Why a pass did not do what it wanted: what was tried on what, and whether trying again can help.

use std::time::Duration;

use api::reason::Reason;
use backend::BackendError;
use kube::core::Status;

use crate::fence::FenceError;
use crate::reconciler::Evidence;

/// A pass failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// 403.
    #[error("not allowed to {verb} {resource}: {message}. Give this service account that right")]
    Forbidden {
        /// What was tried.
        verb: &'static str,
        /// On what.
        resource: String,
        /// What the API said.
        message: String,
    },
    /// 400 or 422: what we sent does not fit what the server knows.
    #[error(
        "{resource} does not take {verb}: {message}. Install the CRDs of this program's version"
    )]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// On what.
        resource: String,
        /// What the API said.
        message: String,
    },
    /// Something of that name is there that is not ours.
    #[error("{resource} is there and is not ours. Remove or rename it")]
    NameTaken {
        /// What.
        resource: String,
    },
    /// 409: somebody wrote in between.
    #[error("{resource} changed meanwhile")]
    Conflict {
        /// What.
        resource: String,
    },
    /// 404: it is not there any more.
    #[error("{resource} is gone")]
    Gone {
        /// What.
        resource: String,
    },
    /// The API did not answer, or said that it cannot now.
    #[error("cannot {verb} {resource}: {message}")]
    Unavailable {
        /// What was tried.
        verb: &'static str,
        /// On what.
        resource: String,
        /// Why.
        message: String,
    },
    /// This process may not write now.
    #[error("cannot {verb} {resource}")]
    Fenced {
        /// What was to be done.
        verb: &'static str,
        /// On what.
        resource: String,
        /// Why not.
        source: FenceError,
    },
    /// The engine did not do it.
    #[error("{0}")]
    Engine(#[from] BackendError),
    /// The pass as a whole took too long.
    #[error("the pass did not end within {} s", after.as_secs())]
    TimedOut {
        /// Its deadline.
        after: Duration,
    },
    /// A defect of ours.
    #[error("the pass panicked; this is a defect of relay")]
    Panicked,
}

/// What helps against a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Trying again, later each time.
    BackOff,
    /// Reading the object again.
    FreshRead,
    /// A change by somebody; looked at again after ten minutes.
    Change,
    /// Nothing: the object is gone.
    Nothing,
}

impl Evidence for Failure {}

impl Failure {
    /// What an answer of the API means.
    #[must_use]
    pub fn of(verb: &'static str, resource: impl Into<String>, error: &kube::Error) -> Self {
        let resource = resource.into();
        let status: &Status = match error {
            kube::Error::Api(status) => status,
            other => {
                let message = told(other);
                return Self::Unavailable {
                    verb,
                    resource,
                    message,
                };
            }
        };
        let message = status.message.clone();
        match status.code {
            403 => Self::Forbidden {
                verb,
                resource,
                message,
            },
            400 | 413 | 415 | 422 => Self::Refused {
                verb,
                resource,
                message,
            },
            404 | 410 => Self::Gone { resource },
            409 => Self::Conflict { resource },
            _ => Self::Unavailable {
                verb,
                resource,
                message,
            },
        }
    }

    /// What helps.
    #[must_use]
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Forbidden { .. } | Self::Refused { .. } | Self::NameTaken { .. } => {
                Remedy::Change
            }
            Self::Engine(error) if !error.retryable() && !error.is_blind() => Remedy::Change,
            Self::Engine(_) => Remedy::BackOff,
            Self::Conflict { .. } => Remedy::FreshRead,
            Self::Gone { .. } => Remedy::Nothing,
            Self::Unavailable { .. }
            | Self::Fenced { .. }
            | Self::TimedOut { .. }
            | Self::Panicked => Remedy::BackOff,
        }
    }

    /// The word for it in traces.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden",
            Self::Refused { .. } => "refused",
            Self::NameTaken { .. } => "name_taken",
            Self::Conflict { .. } => "conflict",
            Self::Gone { .. } => "gone",
            Self::Unavailable { .. } => "unavailable",
            Self::Fenced { .. } => "fenced",
            Self::Engine(_) => "engine",
            Self::TimedOut { .. } => "timed_out",
            Self::Panicked => "panicked",
        }
    }

    /// The reason of the condition it becomes; a failure that passes by itself becomes none.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Forbidden { .. } => Some(Reason::Forbidden),
            Self::Refused { .. } => Some(Reason::SchemaMismatch),
            Self::NameTaken { .. } => Some(Reason::NameTaken),
            // An engine that does not answer is found by the next look, which says so without losing what is known.
            Self::Engine(BackendError::Refused { reason, .. }) => Some(*reason),
            _ => None,
        }
    }
}

/// An error in one line. kube's own texts repeat their source.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Service(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16) -> kube::Error {
        kube::Error::Api(Status::failure("no", "Because").with_code(code).boxed())
    }

    #[test]
    fn an_answer_says_what_helps() {
        for (error, remedy, reason) in [
            (api(403), Remedy::Change, Some(Reason::Forbidden)),
            (api(422), Remedy::Change, Some(Reason::SchemaMismatch)),
            (api(400), Remedy::Change, Some(Reason::SchemaMismatch)),
            (api(404), Remedy::Nothing, None),
            (api(409), Remedy::FreshRead, None),
            (api(429), Remedy::BackOff, None),
            (api(500), Remedy::BackOff, None),
            (api(503), Remedy::BackOff, None),
            (
                kube::Error::Service("connection refused".into()),
                Remedy::BackOff,
                None,
            ),
        ] {
            let failure = Failure::of("get", "LayaServer main", &error);
            assert_eq!(
                (failure.remedy(), failure.reason()),
                (remedy, reason),
                "{error}"
            );
        }
    }

    #[test]
    fn fault_04_a_right_that_is_missing_is_named_with_verb_and_resource() {
        let failure = Failure::of("create", "ControllerRevision rp-a-1", &api(403));
        let text = failure.to_string();
        assert!(
            text.starts_with("not allowed to create ControllerRevision rp-a-1: no"),
            "{text}"
        );
    }
}
