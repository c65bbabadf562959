//! All weights of one checkpoint in the form in which passes use them.

use std::ops::Range;

use crate::checkpoint::{Dtype, Reach, decode};
use crate::mmap::Mapped;

use super::{Linear, Precision, Ropes};

/// The whole network.
pub(crate) struct Model {
    pub(crate) precision: Precision,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) head_heads: usize,
    pub(crate) middle: usize,
    /// Tokens on each side that a local layer sees.
    pub(crate) window: usize,
    pub(crate) ropes: Ropes,
    pub(crate) embedding: Embedding,
    pub(crate) embedding_norm: Norm,
    pub(crate) layers: Vec<EncoderLayer>,
    pub(crate) final_norm: Norm,
    /// `[3][width]`: choice, score, noul.
    pub(crate) types: Vec<f32>,
    pub(crate) head: Vec<HeadLayer>,
    pub(crate) scorer: Scorer,
    pub(crate) act: ActHead,
}

/// LayerNorm.
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Option<Vec<f32>>,
    pub(crate) eps: f32,
}

/// One layer of the encoder.
pub(crate) struct EncoderLayer {
    pub(crate) reach: Reach,
    /// None in the first layer.
    pub(crate) attention_norm: Option<Norm>,
    pub(crate) qkv: Linear,
    pub(crate) attention_out: Linear,
    pub(crate) mlp_norm: Norm,
    /// Values and gates, interleaved.
    pub(crate) mlp_in: Linear,
    pub(crate) mlp_out: Linear,
}

/// One layer of the decision head.
pub(crate) struct HeadLayer {
    pub(crate) norm1: Norm,
    pub(crate) qkv: Linear,
    pub(crate) attention_out: Linear,
    pub(crate) norm2: Norm,
    pub(crate) linear1: Linear,
    pub(crate) linear2: Linear,
}

/// From the vector at a marker to a logit.
pub(crate) struct Scorer {
    pub(crate) norm: Norm,
    pub(crate) dense: Linear,
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: f32,
}

/// From the vector at `CLS` and four features to the act distribution.
pub(crate) struct ActHead {
    pub(crate) dense: Linear,
    pub(crate) out: Linear,
    pub(crate) outputs: usize,
}

/// The embedding table. It stays in the file's mapping, in the format of the file: a pass touches a few hundred rows of
/// a table of hundreds of megabytes.
pub(crate) struct Embedding {
    pub(crate) map: Mapped,
    pub(crate) range: Range<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) width: usize,
}

impl Embedding {
    /// Number of tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.range.len() / (self.width * self.dtype.size()).max(1)
    }

    /// The row of a token.
    ///
    /// # Panics
    /// When the token lies beyond the table.
    pub(crate) fn row(&self, token: u32, out: &mut [f32]) {
        let size = self.width * self.dtype.size();
        let bytes = &self.map.bytes()[self.range.clone()][token as usize * size..][..size];
        decode(self.dtype, bytes, out);
    }
}

impl Model {
    /// Memory of the packed weights, without the mapped table.
    pub(crate) fn held_bytes(&self) -> usize {
        let layers = self
            .layers
            .iter()
            .flat_map(|l| [&l.qkv, &l.attention_out, &l.mlp_in, &l.mlp_out]);
        let head = self
            .head
            .iter()
            .flat_map(|l| [&l.qkv, &l.attention_out, &l.linear1, &l.linear2]);
        let rest = [&self.scorer.dense, &self.act.dense, &self.act.out];
        layers.chain(head).chain(rest).map(Linear::held_bytes).sum()
    }
}
