//! What a CRD document allows: defaults, unknown fields, structural rules and CEL (control-plane 9). Pure: a [`Definition`]
//! is compiled once and then only reads. Verdicts, field paths and texts are those of kube-apiserver 1.35, whose code
//! (`apiextensions-apiserver`, `kube-openapi`, `apimachinery/pkg/util/validation/field`) each module names where it follows
//! it; oddities of that code are kept, since a client must not be able to tell the two apart.

mod cause;
mod check;
mod compile;
mod default;
mod definition;
mod document;
mod error;
mod format;
pub(crate) mod go_text;
mod node;
mod object_meta;
mod path;
mod pattern;
mod rules;
mod scale;
mod structural;
mod unknown;

pub use cause::{Cause, CauseReason};
pub use definition::{Column, Definition, Scale};
pub use error::DefinitionError;
pub(crate) use unknown::in_metadata as unknown_metadata;

#[cfg(test)]
mod tests;
