//! One pass: rows of tokens packed one behind the other, without padding, through encoder and head.

use decision::contract::Kind;

use crate::kernels::{Buffer, Level, Scratch, Span};

use super::linear::Operand;
use super::{Model, Precision, encoder, head};

/// Tokens that go through a layer together. Their activations stay in the caches while the layer's weights pass by; all
/// tokens of a long pass at once would be written to memory and read back at every step.
const CHUNK_TOKENS: usize = 512;

/// One row as the model reads it: a question about a state.
#[derive(Debug, Clone, Copy)]
pub struct TokenRow<'a> {
    /// Token ids, beginning with `CLS`.
    pub ids: &'a [u32],
    /// Positions of the option markers, ascending, beyond the first token.
    pub markers: &'a [usize],
    /// Type of the question.
    pub kind: Kind,
}

/// What the model says about a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOutput {
    /// One logit per marker.
    pub logits: Vec<f32>,
    /// One logit per outcome of the act head; index 0 is "act".
    pub act_logits: Vec<f32>,
}

/// Buffers of one pass, kept for the next.
pub(crate) struct Workspace {
    /// The residual stream of all tokens of the pass.
    pub(super) stream: Buffer<f32>,
    /// Queries, keys and values of one chunk, as are the operands.
    pub(super) qkv: Buffer<f32>,
    pub(super) left: Operand,
    pub(super) right: Operand,
    pub(super) scratch: Scratch,
    /// Rows that are read in the end.
    pub(super) picked: Buffer<f32>,
}

impl Workspace {
    /// For a pool of `threads`.
    pub(crate) fn new(precision: Precision, threads: usize) -> Self {
        Self {
            stream: Buffer::zeroed(0),
            qkv: Buffer::zeroed(0),
            left: Operand::new(precision),
            right: Operand::new(precision),
            scratch: Scratch::new(threads),
            picked: Buffer::zeroed(0),
        }
    }

    /// Memory held.
    pub(crate) fn held_bytes(&self) -> usize {
        let buffers = self.stream.held_bytes() + self.qkv.held_bytes() + self.picked.held_bytes();
        buffers + self.left.held_bytes() + self.right.held_bytes() + self.scratch.held_bytes()
    }
}

/// Most memory, in bytes, that the buffers of a pass of `tokens` tokens take, its longest row being `longest` and
/// `read` positions being read in the end.
pub(crate) fn workspace_bound(
    model: &Model,
    tokens: usize,
    longest: usize,
    read: usize,
    threads: usize,
) -> usize {
    let d = model.width;
    let hd = (d / model.heads).max(d / model.head_heads);
    let padded = longest.next_multiple_of(32);
    let widest = model.middle.max(4 * d);
    // Per thread: queries, keys, values, scores and the block that is transposed, each rounded up to a cache line.
    let values = longest * hd.next_multiple_of(32);
    let part = longest * (hd + 16) + padded * hd + values + 12 * (padded + 16) + 32 * hd + 5 * 16;
    let scratch = threads.saturating_add(1) * 4 * part;
    let chunk = tokens.min(CHUNK_TOKENS.max(longest));
    tokens * 4 * d
        + chunk * 3 * 4 * d
        + Operand::bound(chunk, d)
        + Operand::bound(chunk, widest)
        + scratch
        + read * 40 * d
        + (1 << 16)
}

/// Runs one pass. Rows do not see each other, and a row's numbers do not depend on the others.
///
/// # Panics
/// When a row is empty, a marker lies outside its row or a token beyond the vocabulary; [`crate::Engine::run`] checks.
pub(crate) fn forward(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    work: &mut Workspace,
) -> Vec<RowOutput> {
    let spans = spans(rows);
    if spans.is_empty() {
        return Vec::new();
    }
    encoder::encode(model, level, rows, &spans, work);
    head::decide(model, level, rows, &spans, work)
}

/// The encoder's output at `CLS` of each row, for tests and reports.
#[cfg(test)]
pub(crate) fn encode_cls(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    work: &mut Workspace,
) -> Vec<Vec<f32>> {
    let spans = spans(rows);
    encoder::encode(model, level, rows, &spans, work);
    spans
        .iter()
        .map(|s| work.stream[s.start * model.width..][..model.width].to_vec())
        .collect()
}

/// Consecutive spans with at most [`CHUNK_TOKENS`] tokens together, or a single longer one.
pub(super) fn chunks(spans: &[Span]) -> Vec<&[Span]> {
    let lengths: Vec<usize> = spans.iter().map(|span| span.len).collect();
    crate::engine::plan_passes(&lengths, CHUNK_TOKENS)
        .into_iter()
        .map(|range| &spans[range])
        .collect()
}

/// The tokens of consecutive spans.
pub(super) fn extent(spans: &[Span]) -> std::ops::Range<usize> {
    let end = |span: &Span| span.start + span.len;
    spans.first().map_or(0, |span| span.start)..spans.last().map_or(0, end)
}

/// Spans as counted from the first of them.
pub(super) fn rebased(spans: &[Span]) -> Vec<Span> {
    let base = extent(spans).start;
    spans
        .iter()
        .map(|span| Span {
            start: span.start - base,
            len: span.len,
        })
        .collect()
}

/// Parts of a range of at most [`CHUNK_TOKENS`], as even as may be.
pub(super) fn pieces(
    range: std::ops::Range<usize>,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (start, len) = (range.start, range.len());
    let count = len.div_ceil(CHUNK_TOKENS);
    (0..count).map(move |i| start + i * len / count..start + (i + 1) * len / count)
}

fn spans(rows: &[TokenRow<'_>]) -> Vec<Span> {
    let mut start = 0;
    let span = |row: &TokenRow<'_>| {
        let span = Span {
            start,
            len: row.ids.len(),
        };
        start += span.len;
        span
    };
    rows.iter().map(span).collect()
}
