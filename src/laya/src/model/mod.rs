//! The network: packed weights of the encoder and of the decision head, and one pass over rows of tokens (wire.md 11).
//! It knows token ids and numbers; it knows no text, no files, no questions.

mod encoder;
mod head;
mod linear;
mod pass;
mod rope;
mod weights;

pub(crate) use head::kind_index;
#[cfg(test)]
pub(crate) use head::softmax;
pub(crate) use linear::Linear;
#[cfg(test)]
pub(crate) use pass::encode_cls;
pub use pass::{RowOutput, TokenRow};
pub(crate) use pass::{Workspace, forward, workspace_bound};
pub(crate) use rope::Ropes;
pub(crate) use weights::{ActHead, Embedding, EncoderLayer, HeadLayer, Model, Norm, Scorer};

/// Number formats of the big products (wire.md 13.4). Norms, softmax, rotation, the scorer and the act head are f32 in
/// every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// The reference.
    #[default]
    F32,
    /// Byte weights with a scale per output channel, byte activations with a scale per token.
    Int8,
}

impl Precision {
    /// The word used in configuration, reports and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no precision this build has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown precision `{0}`: expected f32 or int8")]
pub struct UnknownPrecision(pub String);

impl std::str::FromStr for Precision {
    type Err = UnknownPrecision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "f32" => Ok(Self::F32),
            "int8" => Ok(Self::Int8),
            _ => Err(UnknownPrecision(text.to_owned())),
        }
    }
}
