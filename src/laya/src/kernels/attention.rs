//! Softmax attention of packed rows: every (row, head) pair is one task that lays out its keys and values once and then
//! goes over the queries twelve at a time, so that no matrix of row length squared exists. A window makes a layer local:
//! only panels of keys that some query of the tile sees are computed.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::arith::{Arith, exp, multiversion};
use super::tile::{TileF32, tile_f32};
use super::{Buffer, Level, PANEL, TILE_ROWS};

/// Multiply-adds below which attention stays on the calling thread. Laying out keys and values is not counted, and is as
/// much again where the window is small.
const SERIAL_WORK: usize = 1 << 17;

/// Cosines and sines of the rotary embedding, `[position][head_dim / 2]` each.
pub(crate) struct Rope {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rope {
    /// Angles position · theta^(−2i / head_dim), in f32 as the original computes them.
    pub(crate) fn new(theta: f64, head_dim: usize, positions: usize) -> Self {
        let half = head_dim / 2;
        let frequencies: Vec<f32> = (0..half)
            .map(|i| (1.0 / theta.powf(2.0 * i as f64 / head_dim as f64)) as f32)
            .collect();
        let angles =
            (0..positions).flat_map(|p| frequencies.iter().map(move |f| f64::from(p as f32 * f)));
        let (cos, sin) = angles.map(|a| (a.cos() as f32, a.sin() as f32)).unzip();
        Self { half, cos, sin }
    }

    /// Positions the table holds.
    pub(crate) fn positions(&self) -> usize {
        self.cos.len() / self.half.max(1)
    }
}

/// A run of tokens that attend to each other and to nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// First token in the pass.
    pub(crate) start: usize,
    /// Number of tokens, at least 1.
    pub(crate) len: usize,
}

/// One attention layer's shape.
pub(crate) struct Attention<'a> {
    pub(crate) heads: usize,
    pub(crate) head_dim: usize,
    /// Tokens see |i − j| ≤ window; none: everything of their row.
    pub(crate) window: Option<usize>,
    /// Rotation of queries and keys, if the layer has one.
    pub(crate) rope: Option<&'a Rope>,
}

/// Memory that tasks reuse, one part per thread of the pool.
pub(crate) struct Scratch(Vec<Mutex<Part>>);

#[derive(Default)]
struct Part {
    queries: Buffer<f32>,
    keys: Buffer<f32>,
    values: Buffer<f32>,
    scores: Buffer<f32>,
    /// Keys of one panel before they are transposed.
    block: Buffer<f32>,
}

impl<T: super::buffer::Plain> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl Scratch {
    /// For a pool of `threads`.
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..=threads).map(|_| Mutex::default()).collect())
    }

    /// Bytes held by all parts together.
    pub(crate) fn held_bytes(&self) -> usize {
        let held = |part: &Part| {
            part.queries.held_bytes()
                + part.keys.held_bytes()
                + part.values.held_bytes()
                + part.scores.held_bytes()
                + part.block.held_bytes()
        };
        self.0
            .iter()
            .map(|part| held(&part.lock().unwrap_or_else(PoisonError::into_inner)))
            .sum()
    }
}

/// An output that tasks write disjoint columns or rows of.
struct Shared(*mut f32, usize);
// SAFETY: each (span, head) pair writes its own rows and columns only, and the exclusive borrow outlives the tasks.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// No other task may touch the range while the slice lives.
    #[allow(clippy::mut_from_ref)]
    unsafe fn slice(&self, start: usize, len: usize) -> &mut [f32] {
        assert!(start + len <= self.1, "a head writes inside the output");
        // SAFETY: in bounds by the assert; disjoint by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// Attention over `qkv` (per token: all queries, all keys, all values; stride `ldq`), into `out` (heads side by side,
/// stride `ldo`). With `only`, queries are those tokens alone (ascending, `out` has one row for each); else all.
///
/// # Panics
/// When a slice is too short, spans overlap, or the rotation table is too short for a span.
pub(crate) fn attend(
    level: Level,
    shape: &Attention<'_>,
    spans: &[Span],
    only: Option<&[usize]>,
    (qkv, ldq): (&[f32], usize),
    (out, ldo): (&mut [f32], usize),
    scratch: &Scratch,
) {
    let d = shape.heads * shape.head_dim;
    assert!(
        spans
            .windows(2)
            .all(|w| w[0].start + w[0].len <= w[1].start),
        "spans are disjoint and ascending"
    );
    assert!(
        only.is_none_or(|o| o.windows(2).all(|w| w[0] < w[1])),
        "queries are distinct and ascending"
    );
    if let (Some(rope), Some(longest)) = (shape.rope, spans.iter().map(|s| s.len).max()) {
        assert!(
            rope.positions() >= longest && rope.half * 2 == shape.head_dim,
            "the rotation covers every position"
        );
    }
    assert!(ldo >= d);
    let shared = Shared(out.as_mut_ptr(), out.len());
    let task = |index: usize| {
        let (span, head) = (spans[index / shape.heads], index % shape.heads);
        let part = rayon::current_thread_index()
            .map_or(0, |i| i + 1)
            .min(scratch.0.len() - 1);
        let mut part = scratch.0[part]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        one_head(
            level,
            shape,
            span,
            only,
            head,
            (qkv, ldq),
            (&shared, ldo),
            &mut part,
        );
    };
    let work: usize = spans
        .iter()
        .map(|s| 2 * s.len * s.len.min(shape.window.map_or(s.len, |w| 2 * w + 1)) * d)
        .sum();
    let tasks = spans.len() * shape.heads;
    if work <= SERIAL_WORK || rayon::current_num_threads() == 1 {
        (0..tasks).for_each(task);
    } else {
        (0..tasks).into_par_iter().with_max_len(1).for_each(task);
    }
}

#[allow(clippy::too_many_arguments)]
fn one_head(
    level: Level,
    shape: &Attention<'_>,
    span: Span,
    only: Option<&[usize]>,
    head: usize,
    (qkv, ldq): (&[f32], usize),
    (out, ldo): (&Shared, usize),
    part: &mut Part,
) {
    let (n, hd) = (span.len, shape.head_dim);
    let d = shape.heads * hd;
    let panels = n.div_ceil(PANEL);
    let value_panels = hd.div_ceil(PANEL);
    // The queries of this span: the token within the span, and its row in `out`.
    let (first, count) = only.map_or((span.start, n), |only| {
        let first = only.partition_point(|t| *t < span.start);
        (first, only.partition_point(|t| *t < span.start + n) - first)
    });
    let token = |i: usize| only.map_or(i, |only| only[first + i] - span.start);
    if count == 0 {
        return;
    }
    let query_stride = hd + 16;
    part.queries.resize(count * query_stride);
    part.keys.resize(panels * hd * PANEL);
    part.values.resize(value_panels * n * PANEL);
    let score_stride = panels * PANEL + 16;
    part.scores.resize(TILE_ROWS * score_stride);

    let scale = 1.0 / (hd as f32).sqrt();
    let row = |t: usize| &qkv[(span.start + t) * ldq + head * hd..][..hd];
    for i in 0..count {
        let (t, out) = (token(i), &mut part.queries[i * query_stride..][..hd]);
        rotate(level, row(t), rope_at(shape.rope, t), scale, out);
    }
    let from = |which: usize| &qkv[span.start * ldq + which * d + head * hd..];
    part.block.resize(PANEL * hd);
    for (panel, keys) in part.keys.chunks_exact_mut(hd * PANEL).enumerate() {
        let (first, block) = (panel * PANEL, &mut part.block);
        let held = (n - first).min(PANEL);
        for t in 0..held {
            let (x, out) = (
                &from(1)[(first + t) * ldq..][..hd],
                &mut block[t * hd..][..hd],
            );
            rotate(level, x, rope_at(shape.rope, first + t), 1.0, out);
        }
        // What lies beyond the last key is never weighed (its probability is set to zero), but it must be finite.
        block[held * hd..].fill(0.0);
        transpose(level, block, hd, keys);
    }
    lay_values(level, from(2), ldq, n, hd, &mut part.values);

    let mut tile = TileF32::ZERO;
    let mut at = 0;
    while at < count {
        let m = (count - at).min(TILE_ROWS);
        // Keys that some query of the tile sees, widened to whole panels on the left.
        let (first_token, last_token) = (token(at), token(at + m - 1));
        let low = shape.window.map_or(0, |w| first_token.saturating_sub(w)) / PANEL * PANEL;
        let high = shape.window.map_or(n, |w| (last_token + w + 1).min(n));
        for panel in low / PANEL..high.div_ceil(PANEL) {
            let keys = &part.keys[panel * hd * PANEL..][..hd * PANEL];
            let scores = &mut part.scores[panel * PANEL - low..];
            tile_f32(
                level,
                m,
                hd,
                &part.queries[at * query_stride..],
                query_stride,
                keys,
                scores,
                score_stride,
            );
        }
        let mut inverse = [0f32; TILE_ROWS];
        for (i, inverse) in inverse.iter_mut().take(m).enumerate() {
            let t = token(at + i);
            let from = shape.window.map_or(0, |w| t.saturating_sub(w)) - low;
            let to = shape.window.map_or(n, |w| (t + w + 1).min(n)) - low;
            let row = &mut part.scores[i * score_stride..][..high - low];
            row[..from].fill(0.0);
            row[to..].fill(0.0);
            softmax(level, &mut row[from..to], inverse);
        }
        for p in 0..value_panels {
            let values = &part.values[(p * n + low) * PANEL..][..(high - low) * PANEL];
            let sums = tile.0.as_flattened_mut();
            tile_f32(
                level,
                m,
                high - low,
                &part.scores,
                score_stride,
                values,
                sums,
                PANEL,
            );
            let width = (hd - p * PANEL).min(PANEL);
            for (i, sums) in tile.0.iter().take(m).enumerate() {
                let start = (first + at + i) * ldo + head * hd + p * PANEL;
                // SAFETY: rows of this span and columns of this head belong to this task alone.
                let target = unsafe { out.slice(start, width) };
                for (target, sum) in target.iter_mut().zip(sums) {
                    *target = sum * inverse[i];
                }
            }
        }
        at += m;
    }
}

fn rope_at(rope: Option<&Rope>, position: usize) -> Option<(&[f32], &[f32])> {
    rope.map(|r| {
        (
            &r.cos[position * r.half..][..r.half],
            &r.sin[position * r.half..][..r.half],
        )
    })
}

multiversion! {
    fn rotate(x: &[f32], angles: Option<(&[f32], &[f32])>, scale: f32, out: &mut [f32]) = rotate_body
}

/// `out = scale · rotated(x)`; the rotation pairs c with c + half.
#[inline(always)]
fn rotate_body<A: Arith>(x: &[f32], angles: Option<(&[f32], &[f32])>, scale: f32, out: &mut [f32]) {
    let Some((cos, sin)) = angles else {
        for (out, v) in out.iter_mut().zip(x) {
            *out = v * scale;
        }
        return;
    };
    let half = cos.len();
    let ((left, right), (out_left, out_right)) = (x.split_at(half), out.split_at_mut(half));
    let (sin, right, out_right) = (&sin[..half], &right[..half], &mut out_right[..half]);
    for c in 0..half {
        out_left[c] = (left[c] * cos[c] - right[c] * sin[c]) * scale;
        out_right[c] = (right[c] * cos[c] + left[c] * sin[c]) * scale;
    }
}

multiversion! {
    /// `[32][hd]` to `[hd][32]`.
    fn transpose(block: &[f32], hd: usize, out: &mut [f32]) = transpose_body
}

#[inline(always)]
fn transpose_body<A: Arith>(block: &[f32], hd: usize, out: &mut [f32]) {
    const SIDE: usize = 8;
    let mut c = 0;
    while c + SIDE <= hd {
        for t in (0..PANEL).step_by(SIDE) {
            let mut square = [[0f32; SIDE]; SIDE];
            for (i, row) in square.iter_mut().enumerate() {
                row.copy_from_slice(&block[(t + i) * hd + c..][..SIDE]);
            }
            for j in 0..SIDE {
                let out = &mut out[(c + j) * PANEL + t..][..SIDE];
                for i in 0..SIDE {
                    out[i] = square[i][j];
                }
            }
        }
        c += SIDE;
    }
    while c < hd {
        for t in 0..PANEL {
            out[c * PANEL + t] = block[t * hd + c];
        }
        c += 1;
    }
}

multiversion! {
    /// Values of one head as panels `[n][32]`, zeros beyond the head's width.
    fn lay_values(x: &[f32], ldx: usize, n: usize, hd: usize, out: &mut [f32]) = lay_values_body
}

#[inline(always)]
fn lay_values_body<A: Arith>(x: &[f32], ldx: usize, n: usize, hd: usize, out: &mut [f32]) {
    for p in 0..hd.div_ceil(PANEL) {
        let width = (hd - p * PANEL).min(PANEL);
        for t in 0..n {
            let from = &x[t * ldx + p * PANEL..][..width];
            let out = &mut out[(p * n + t) * PANEL..][..PANEL];
            match (
                <&[f32; PANEL]>::try_from(from),
                <&mut [f32; PANEL]>::try_from(&mut *out),
            ) {
                (Ok(from), Ok(out)) => *out = *from,
                _ => {
                    out[..width].copy_from_slice(from);
                    out[width..].fill(0.0);
                }
            }
        }
    }
}

multiversion! {
    fn softmax(x: &mut [f32], inverse: &mut f32) = softmax_body
}

/// `x = e^(x − max)`, `inverse = 1 / Σ`. The division is left to whoever sums fewer numbers.
#[inline(always)]
fn softmax_body<A: Arith>(x: &mut [f32], inverse: &mut f32) {
    const LANES: usize = 16;
    let mut tops = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for j in 0..LANES {
            tops[j] = if chunk[j] > tops[j] {
                chunk[j]
            } else {
                tops[j]
            };
        }
    }
    let top = tops
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |m, v| if *v > m { *v } else { m });
    let mut sums = [0f32; LANES];
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for j in 0..LANES {
            chunk[j] = exp::<A>(chunk[j] - top);
            sums[j] += chunk[j];
        }
    }
    for (j, v) in rest.iter_mut().enumerate() {
        *v = exp::<A>(*v - top);
        sums[j] += *v;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            sums[j] += sums[j + width];
        }
        width /= 2;
    }
    *inverse = 1.0 / sums[0];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, len: usize) -> Vec<f32> {
        let mut state = seed;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                ((state >> 40) as f32 / (1u64 << 22) as f32) - 2.0
            })
            .collect()
    }

    /// Attention as the formula has it, in f64.
    fn naive(
        qkv: &[f32],
        span: Span,
        heads: usize,
        hd: usize,
        window: Option<usize>,
        theta: Option<f64>,
    ) -> Vec<f64> {
        let d = heads * hd;
        let vector = |t: usize, which: usize, h: usize| -> Vec<f64> {
            let x: Vec<f64> = qkv[(span.start + t) * 3 * d + which * d + h * hd..][..hd]
                .iter()
                .map(|v| f64::from(*v))
                .collect();
            match theta {
                Some(theta) if which < 2 => (0..hd)
                    .map(|c| {
                        let i = c % (hd / 2);
                        let a = t as f64 / theta.powf(2.0 * i as f64 / hd as f64);
                        if c < hd / 2 {
                            x[c] * a.cos() - x[c + hd / 2] * a.sin()
                        } else {
                            x[c] * a.cos() + x[c - hd / 2] * a.sin()
                        }
                    })
                    .collect(),
                _ => x,
            }
        };
        let mut out = vec![0.0; span.len * d];
        for h in 0..heads {
            for i in 0..span.len {
                let q = vector(i, 0, h);
                let seen = |j: &usize| window.is_none_or(|w| i.abs_diff(*j) <= w);
                let scores: Vec<(usize, f64)> = (0..span.len)
                    .filter(seen)
                    .map(|j| {
                        (
                            j,
                            vector(j, 1, h)
                                .iter()
                                .zip(&q)
                                .map(|(a, b)| a * b)
                                .sum::<f64>()
                                / (hd as f64).sqrt(),
                        )
                    })
                    .collect();
                let top = scores.iter().fold(f64::MIN, |m, s| m.max(s.1));
                let sum: f64 = scores.iter().map(|s| (s.1 - top).exp()).sum();
                for (j, s) in scores {
                    for (c, v) in vector(j, 2, h).iter().enumerate() {
                        out[i * d + h * hd + c] += (s - top).exp() / sum * v;
                    }
                }
            }
        }
        out
    }

    #[test]
    fn agrees_with_the_formula_on_every_level() {
        let (heads, scratch) = (2, Scratch::new(rayon::current_num_threads()));
        for (hd, window, theta) in [
            (32, None, Some(10000.0)),
            (32, Some(8), Some(10000.0)),
            (16, Some(3), None),
            (64, None, None),
            (40, Some(20), Some(500.0)),
        ] {
            let spans = [
                Span { start: 0, len: 1 },
                Span { start: 1, len: 33 },
                Span { start: 34, len: 70 },
            ];
            let d = heads * hd;
            let qkv = noise(hd as u64, 104 * 3 * d);
            let rope = theta.map(|theta| Rope::new(theta, hd, 70));
            for level in Level::all() {
                let shape = Attention {
                    heads,
                    head_dim: hd,
                    window,
                    rope: rope.as_ref(),
                };
                let mut out = vec![0f32; 104 * d];
                attend(
                    level,
                    &shape,
                    &spans,
                    None,
                    (&qkv, 3 * d),
                    (&mut out, d),
                    &scratch,
                );
                for span in spans {
                    let want = naive(&qkv, span, heads, hd, window, theta);
                    for (at, want) in want.iter().enumerate() {
                        let got = f64::from(out[span.start * d + at]);
                        assert!(
                            (got - want).abs() < 2e-5,
                            "{level} hd {hd} window {window:?} {span:?} at {at}: {got} not {want}"
                        );
                    }
                }
                let some = [0, 5, 33, 34, 103];
                let mut few = vec![0f32; some.len() * d];
                attend(
                    level,
                    &shape,
                    &spans,
                    Some(&some),
                    (&qkv, 3 * d),
                    (&mut few, d),
                    &scratch,
                );
                for (i, t) in some.iter().enumerate() {
                    let (few, all) = (&few[i * d..][..d], &out[t * d..][..d]);
                    assert!(
                        few.iter().zip(all).all(|(a, b)| (a - b).abs() < 1e-5),
                        "{level} token {t}"
                    );
                }
            }
        }
    }
}
