//! The encoder: embedding, pre-norm layers with rotary attention, global or local, and a gated MLP (wire.md 11).

use rayon::prelude::*;

use crate::checkpoint::Reach;
use crate::kernels::{Activation, Attention, Level, Span, attend, layer_norm};

use super::pass::Workspace;
use super::{Model, TokenRow};

/// Leaves the encoder's output, after the final norm, in `work.stream`, one row per token.
pub(super) fn encode(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    spans: &[Span],
    work: &mut Workspace,
) {
    let d = model.width;
    let tokens: usize = spans.iter().map(|s| s.len).sum();
    let longest = spans.iter().map(|s| s.len).max().unwrap_or(0);
    let ropes = model.ropes.for_rows(longest);
    work.stream.resize(tokens * d);
    work.qkv.resize(tokens * 3 * d);

    embed(model, level, rows, work);
    for layer in &model.layers {
        let Workspace {
            stream,
            qkv,
            left,
            right,
            scratch,
            ..
        } = work;
        match &layer.attention_norm {
            Some(norm) => left.normalize(level, (stream, d), tokens, norm),
            None => left.fill(level, tokens, d, |out, stride| {
                copy_rows((stream, d), (out, stride), d)
            }),
        }
        layer
            .qkv
            .apply(level, left, Activation::Store, (qkv, 3 * d));
        let (window, rope) = match layer.reach {
            Reach::Global => (None, &ropes[0]),
            Reach::Local => (Some(model.window), &ropes[1]),
        };
        let shape = Attention {
            heads: model.heads,
            head_dim: d / model.heads,
            window,
            rope: Some(rope),
        };
        right.fill(level, tokens, d, |out, stride| {
            attend(
                level,
                &shape,
                spans,
                None,
                (qkv, 3 * d),
                (out, stride),
                scratch,
            )
        });
        layer
            .attention_out
            .apply(level, right, Activation::Add, (stream, d));

        left.normalize(level, (stream, d), tokens, &layer.mlp_norm);
        right.fill(level, tokens, model.middle, |out, stride| {
            layer
                .mlp_in
                .apply(level, left, Activation::Gated, (out, stride))
        });
        layer
            .mlp_out
            .apply(level, right, Activation::Add, (stream, d));
    }
    let Workspace { stream, qkv, .. } = work;
    let norm = &model.final_norm;
    layer_norm(
        level,
        (stream, d),
        &norm.weight,
        None,
        norm.eps,
        (&mut qkv[..tokens * d], d),
        tokens,
    );
    stream.copy_from_slice(&qkv[..tokens * d]);
}

fn embed(model: &Model, level: Level, rows: &[TokenRow<'_>], work: &mut Workspace) {
    let d = model.width;
    let Workspace { stream, qkv, .. } = work;
    let tokens: Vec<u32> = rows
        .iter()
        .flat_map(|row| row.ids.iter().copied())
        .collect();
    let raw = &mut qkv[..tokens.len() * d];
    raw.par_chunks_mut(d)
        .zip(&tokens)
        .with_min_len(32)
        .for_each(|(out, token)| model.embedding.row(*token, out));
    let norm = &model.embedding_norm;
    layer_norm(
        level,
        (raw, d),
        &norm.weight,
        None,
        norm.eps,
        (stream, d),
        tokens.len(),
    );
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
