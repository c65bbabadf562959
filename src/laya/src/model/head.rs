//! The decision head: type embedding, transformer layers over the encoder's output, a logit at each marker and the act
//! distribution at `CLS` (wire.md 11). Only those positions are read, so the last layer computes only them.

use decision::contract::Kind;

use crate::kernels::{Activation, Attention, Level, Span, attend};

use super::encoder::copy_rows;
use super::pass::{Workspace, chunks, extent, pieces, rebased};
use super::{HeadLayer, Model, Precision, RowOutput, TokenRow};
use crate::model::linear::Operand;

/// Reads `work.stream` as left by the encoder.
pub(super) fn decide(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    spans: &[Span],
    work: &mut Workspace,
) -> Vec<RowOutput> {
    let d = model.width;
    let tokens: usize = spans.iter().map(|s| s.len).sum();
    for (row, span) in rows.iter().zip(spans) {
        let embedding = &model.types[kind_index(row.kind) * d..][..d];
        for token in work.stream[span.start * d..(span.start + span.len) * d].chunks_exact_mut(d) {
            token.iter_mut().zip(embedding).for_each(|(v, e)| *v += e);
        }
    }
    // What is read in the end: per row CLS, then its markers.
    let read: Vec<usize> = rows
        .iter()
        .zip(spans)
        .flat_map(|(row, span)| {
            std::iter::once(span.start).chain(row.markers.iter().map(move |m| span.start + m))
        })
        .collect();

    let shape = Attention {
        heads: model.head_heads,
        head_dim: d / model.head_heads,
        window: None,
        rope: None,
    };
    let chunks = chunks(spans);
    work.picked.resize(read.len() * d);
    for (i, layer) in model.head.iter().enumerate() {
        let last = i + 1 == model.head.len();
        for chunk in &chunks {
            attention(
                layer,
                &shape,
                level,
                chunk,
                last.then_some(read.as_slice()),
                work,
            );
        }
        let Workspace {
            stream,
            left,
            right,
            picked,
            ..
        } = work;
        let (stream, count): (&mut [f32], usize) = if last {
            (picked, read.len())
        } else {
            (stream, tokens)
        };
        for piece in pieces(0..count) {
            let (count, stream) = (piece.len(), &mut stream[piece.start * d..piece.end * d]);
            left.normalize(level, (stream, d), count, &layer.norm2);
            right.fill(level, count, 4 * d, |out, stride| {
                layer
                    .linear1
                    .apply(level, left, Activation::Relu, (out, stride));
            });
            layer
                .linear2
                .apply(level, right, Activation::Add, (stream, d));
        }
    }
    if model.head.is_empty() {
        pick(&read, &work.stream, d, &mut work.picked);
    }
    outputs(model, level, rows, read.len(), work)
}

/// x += attention(norm(x)) for the tokens of a chunk; with `read`, only for those of them, which are moved to
/// `work.picked`.
fn attention(
    layer: &HeadLayer,
    shape: &Attention<'_>,
    level: Level,
    chunk: &[Span],
    read: Option<&[usize]>,
    work: &mut Workspace,
) {
    let d = shape.heads * shape.head_dim;
    let tokens = extent(chunk);
    let spans = rebased(chunk);
    let Workspace {
        stream,
        qkv,
        left,
        right,
        scratch,
        picked,
    } = work;
    let (count, stream) = (tokens.len(), &mut stream[tokens.start * d..tokens.end * d]);
    qkv.resize(count * 3 * d);
    left.normalize(level, (stream, d), count, &layer.norm1);
    layer
        .qkv
        .apply(level, left, Activation::Store, (qkv, 3 * d));
    let Some(read) = read else {
        right.fill(level, count, d, |out, stride| {
            attend(
                level,
                shape,
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
        return;
    };
    let (from, to) = (
        read.partition_point(|t| *t < tokens.start),
        read.partition_point(|t| *t < tokens.end),
    );
    let only: Vec<usize> = read[from..to].iter().map(|t| t - tokens.start).collect();
    right.fill(level, only.len(), d, |out, stride| {
        attend(
            level,
            shape,
            &spans,
            Some(&only),
            (qkv, 3 * d),
            (out, stride),
            scratch,
        );
    });
    let picked = &mut picked[from * d..to * d];
    pick(&only, stream, d, picked);
    layer
        .attention_out
        .apply(level, right, Activation::Add, (picked, d));
}

fn pick(read: &[usize], stream: &[f32], d: usize, picked: &mut [f32]) {
    for (token, out) in read.iter().zip(picked.chunks_exact_mut(d)) {
        out.copy_from_slice(&stream[token * d..][..d]);
    }
}

fn outputs(
    model: &Model,
    level: Level,
    rows: &[TokenRow<'_>],
    read: usize,
    work: &mut Workspace,
) -> Vec<RowOutput> {
    let d = model.width;
    let picked = &work.picked[..read * d];
    // Scored at every position read; those of CLS are not used. f32 in every mode.
    let mut operand = Operand::new(Precision::F32);
    operand.normalize(level, (picked, d), read, &model.scorer.norm);
    let mut hidden = vec![0f32; read * d];
    model
        .scorer
        .dense
        .apply(level, &operand, Activation::Gelu, (&mut hidden, d));
    let score = |row: &[f32]| {
        model.scorer.bias
            + row
                .iter()
                .zip(&model.scorer.weight)
                .map(|(a, b)| a * b)
                .sum::<f32>()
    };

    let mut at = 0;
    let mut logits: Vec<Vec<f32>> = Vec::with_capacity(rows.len());
    let mut cls = Vec::with_capacity(rows.len());
    for row in rows {
        cls.push(at);
        logits.push(
            hidden[(at + 1) * d..(at + 1 + row.markers.len()) * d]
                .chunks_exact(d)
                .map(score)
                .collect(),
        );
        at += 1 + row.markers.len();
    }

    let width = d + 4;
    operand.fill(level, rows.len(), width, |out, stride| {
        for ((out, at), logits) in out.chunks_mut(stride).zip(&cls).zip(&logits) {
            out[..d].copy_from_slice(&picked[at * d..][..d]);
            out[d..width].copy_from_slice(&features(logits));
        }
    });
    let mut middle = vec![0f32; rows.len() * ACT];
    model
        .act
        .dense
        .apply(level, &operand, Activation::Gelu, (&mut middle, ACT));
    operand.fill(level, rows.len(), ACT, |out, stride| {
        copy_rows((&middle, ACT), (out, stride), ACT)
    });
    let n = model.act.outputs;
    let mut act = vec![0f32; rows.len() * n];
    model
        .act
        .out
        .apply(level, &operand, Activation::Store, (&mut act, n));
    logits
        .into_iter()
        .zip(act.chunks_exact(n))
        .map(|(logits, act)| RowOutput {
            logits,
            act_logits: act.to_vec(),
        })
        .collect()
}

const ACT: usize = crate::checkpoint::ACT_WIDTH;

/// Best probability, its lead, normalised entropy and number of options, from the un-tempered logits.
fn features(logits: &[f32]) -> [f32; 4] {
    let p = softmax(logits);
    let (mut best, mut second) = (0f32, 0f32);
    for v in &p {
        if *v > best {
            (best, second) = (*v, best);
        } else if *v > second {
            second = *v;
        }
    }
    let k = logits.len().max(2) as f32;
    let entropy: f32 = -p.iter().map(|v| v * v.max(1e-9).ln()).sum::<f32>();
    [best, best - second, entropy / k.ln(), k / 255.0]
}

/// The row of a type in the type embedding, and its place in a list of temperatures.
pub(crate) const fn kind_index(kind: Kind) -> usize {
    match kind {
        Kind::Choice => 0,
        Kind::Score => 1,
        Kind::Noul => 2,
    }
}

/// Softmax in f32.
pub(crate) fn softmax(logits: &[f32]) -> Vec<f32> {
    let top = logits.iter().fold(f32::NEG_INFINITY, |m, v| m.max(*v));
    let mut p: Vec<f32> = logits.iter().map(|v| (v - top).exp()).collect();
    let sum: f32 = p.iter().sum();
    p.iter_mut().for_each(|v| *v /= sum);
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_few_options() {
        assert_eq!(features(&[3.0])[..2], [1.0, 1.0]);
        let [best, lead, entropy, share] = features(&[0.0, 0.0]);
        assert_eq!((best, lead), (0.5, 0.0));
        assert!((entropy - 1.0).abs() < 1e-6);
        assert_eq!(share, 2.0 / 255.0);
    }
}
