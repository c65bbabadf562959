//! The encoder: embedding, pre-norm layers with rotary attention, global or local, and a gated MLP (wire.md 11).

use rayon::prelude::*;

use crate::checkpoint::Reach;
use crate::kernels::{Activation, Attention, Buffer, Level, Rope, Span, attend, layer_norm};

use super::pass::{Workspace, chunks, extent, pieces, rebased};
use super::{EncoderLayer, Model, TokenRow};

/// Leaves the encoder's output, after the final norm, in `work.stream`, one row per token.
pub(super) fn encode(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    spans: &[Span],
    work: &mut Workspace,
) {
    let d = model.width;
    let tokens = extent(spans).len();
    let longest = spans.iter().map(|s| s.len).max().unwrap_or(0);
    let ropes = model.ropes.for_rows(longest);
    work.stream.resize(tokens * d);

    embed(model, level, rows, work);
    let chunks = chunks(spans);
    for layer in &model.layers {
        let rope = match layer.reach {
            Reach::Global => &ropes[0],
            Reach::Local => &ropes[1],
        };
        for chunk in &chunks {
            attention(model, layer, rope, level, chunk, work);
            for piece in pieces(extent(chunk)) {
                let Workspace {
                    stream,
                    left,
                    right,
                    ..
                } = work;
                let (count, stream) = (piece.len(), &mut stream[piece.start * d..piece.end * d]);
                left.normalize(level, (stream, d), count, &layer.mlp_norm);
                right.fill(level, count, model.middle, |out, stride| {
                    layer
                        .mlp_in
                        .apply(level, left, Activation::Gated, (out, stride));
                });
                layer
                    .mlp_out
                    .apply(level, right, Activation::Add, (stream, d));
            }
        }
    }
    normalize_in_place(model, level, tokens, work);
}

/// x += Wo · attention(norm(x)) for the tokens of a chunk.
fn attention(
    model: &Model,
    layer: &EncoderLayer,
    rope: &Rope,
    level: Level,
    chunk: &[Span],
    work: &mut Workspace,
) {
    let d = model.width;
    let tokens = extent(chunk);
    let Workspace {
        stream,
        qkv,
        left,
        right,
        scratch,
        ..
    } = work;
    let (count, stream) = (tokens.len(), &mut stream[tokens.start * d..tokens.end * d]);
    qkv.resize(count * 3 * d);
    match &layer.attention_norm {
        Some(norm) => left.normalize(level, (stream, d), count, norm),
        None => left.fill(level, count, d, |out, stride| {
            copy_rows((stream, d), (out, stride), d)
        }),
    }
    layer
        .qkv
        .apply(level, left, Activation::Store, (qkv, 3 * d));
    let window = match layer.reach {
        Reach::Global => None,
        Reach::Local => Some(model.window),
    };
    let shape = Attention {
        heads: model.heads,
        head_dim: d / model.heads,
        window,
        rope: Some(rope),
    };
    let spans = rebased(chunk);
    right.fill(level, count, d, |out, stride| {
        attend(
            level,
            &shape,
            &spans,
            None,
            (qkv, 3 * d),
            (out, stride),
            scratch,
        );
    });
    layer
        .attention_out
        .apply(level, right, Activation::Add, (stream, d));
}

fn normalize_in_place(model: &Model, level: Level, tokens: usize, work: &mut Workspace) {
    let (d, norm) = (model.width, &model.final_norm);
    let Workspace { stream, qkv, .. } = work;
    for piece in pieces(0..tokens) {
        let stream = &mut stream[piece.start * d..piece.end * d];
        qkv.resize(stream.len());
        qkv.copy_from_slice(stream);
        layer_norm(
            level,
            (qkv, d),
            &norm.weight,
            None,
            norm.eps,
            (stream, d),
            piece.len(),
        );
    }
}

fn embed(model: &Model, level: Level, rows: &[TokenRow<'_>], work: &mut Workspace) {
    let d = model.width;
    let Workspace { stream, qkv, .. } = work;
    let tokens: Vec<u32> = rows
        .iter()
        .flat_map(|row| row.ids.iter().copied())
        .collect();
    let norm = &model.embedding_norm;
    for piece in pieces(0..tokens.len()) {
        let raw: &mut Buffer<f32> = qkv;
        raw.resize(piece.len() * d);
        let read = |(out, token): (&mut [f32], &u32)| model.embedding.row(*token, out);
        raw.par_chunks_mut(d)
            .zip(&tokens[piece.clone()])
            .with_min_len(32)
            .for_each(read);
        let stream = &mut stream[piece.start * d..piece.end * d];
        layer_norm(
            level,
            (raw, d),
            &norm.weight,
            None,
            norm.eps,
            (stream, d),
            piece.len(),
        );
    }
}

/// Copies rows of `width` between strides.
pub(super) fn copy_rows(
    (from, ldf): (&[f32], usize),
    (to, ldt): (&mut [f32], usize),
    width: usize,
) {
    for (from, to) in from.chunks(ldf).zip(to.chunks_mut(ldt)) {
        to[..width].copy_from_slice(&from[..width]);
    }
}
