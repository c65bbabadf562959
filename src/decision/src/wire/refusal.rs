//! A refused request: status and the one sentence clients read (wire.md 7).

use crate::json::{Object, Value, write};

/// Statuses that a request can be refused with because of what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// 400: not readable as a request.
    BadRequest,
    /// 413: beyond a limit.
    TooLarge,
    /// 422: readable and not allowed.
    Unprocessable,
}

impl Status {
    /// The HTTP status code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::TooLarge => 413,
            Self::Unprocessable => 422,
        }
    }
}

/// Why a request is refused. The detail is contract: clients and tests compare it byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// The status to answer with.
    pub status: Status,
    /// The text of `detail`.
    pub detail: String,
}

impl Refusal {
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self {
            status: Status::BadRequest,
            detail: detail.into(),
        }
    }

    pub(super) fn too_large(detail: impl Into<String>) -> Self {
        Self {
            status: Status::TooLarge,
            detail: detail.into(),
        }
    }

    /// A refusal of status 422, also for texts that only the engine knows (wire.md 10.3).
    #[must_use]
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self {
            status: Status::Unprocessable,
            detail: detail.into(),
        }
    }

    /// The body of the reply: `{"detail":"…"}`.
    #[must_use]
    pub fn body(&self) -> String {
        let detail: Object = [("detail", self.detail.as_str())].into_iter().collect();
        write(&Value::Object(detail))
    }
}
