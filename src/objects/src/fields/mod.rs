//! Who owns which field: `metadata.managedFields`, and server-side apply (control-plane 9).
//!
//! Pure: an object, a request, a writer and a time in, an object out, with the outcome of a kube-apiserver 1.35 to the
//! letter of its messages. The only record of ownership is `metadata.managedFields` of the object itself. Proven against
//! histories recorded from a real API server (`tests/golden/fields/`).

mod apply;
mod check;
mod compare;
mod conflict;
mod element;
mod item;
mod last_applied;
mod managed;
mod members;
mod merge;
mod remove;
mod set;
mod shape;
mod text;
mod update;
mod wire;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use apply::{ApplyError, apply};
pub use conflict::{Conflict, Conflicts};
pub use element::PathElement;
pub use managed::settle_times;
pub use set::{FieldSet, path_text};
pub use shape::{Shape, StatusSubresource};
pub use update::record_update;
pub use wire::FieldSetError;

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply: what it no longer names goes.
    Apply,
    /// By a create, an update or a patch.
    Update,
}

impl Operation {
    /// As in `managedFields`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Whether an apply takes fields from their owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// A conflict is an error.
    No,
    /// Conflicting fields change hands.
    Yes,
}

/// Who writes, through what and when. What the write is ([`apply()`] or [`record_update`]) says the function.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager; empty is `unknown`.
    pub manager: &'a str,
    /// `status`, `scale`, or none.
    pub subresource: Option<&'a str>,
    /// The version of the object, `relay.dev/v1alpha1` (also for `/scale`).
    pub api_version: &'a str,
    /// Now, RFC 3339.
    pub time: &'a str,
}

/// What the caller did wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldsError {
    /// No object, or one without metadata.
    #[error("the new object has no metadata")]
    NoMetadata,
    /// A time that is none.
    #[error("the time {time:?} of a writer is not RFC 3339")]
    Time {
        /// The text.
        time: String,
    },
}
