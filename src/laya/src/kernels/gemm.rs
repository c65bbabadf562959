//! Activations times packed weights, with whatever follows the product done while the tile is still in the cache:
//! bias, activation, gate, residual. Tiles are shared out over the rayon pool that the caller runs in.

use rayon::prelude::*;

use super::arith::{Arith, gelu, gelu_coarse, multiversion};
use super::pack::{Layout, PackedF32, PackedI8};
use super::tile::{TileF32, TileI32, tile_f32, tile_i8};
use super::{Buffer, Level, PANEL, TILE_ROWS};

/// Below this many multiply-adds a product stays on the calling thread: waking another costs more.
const SERIAL_WORK: usize = 1 << 20;
/// Bytes of activations that one task runs a panel against, so that they stay in the second-level cache.
const BLOCK_BYTES: usize = 384 * 1024;
/// Tiles of such a block at most: what the task writes, a panel's width of each row at a time, stays there too.
const BLOCK_TILES: usize = 12;

/// What becomes of the sums of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// They are the output.
    Store,
    /// They are added to the output, as a residual.
    Add,
    /// max(0, ·).
    Relu,
    /// GELU with erf.
    Gelu,
    /// GELU of the first half of the channels times the second half; only with [`Layout::Halves`].
    Gated,
}

/// The end of a product.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<'a> {
    /// Added to the sums first; one per output channel.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
}

#[cfg(test)]
impl Epilogue<'_> {
    pub(crate) const fn plain(activation: Activation) -> Self {
        Self {
            bias: None,
            activation,
        }
    }
}

/// Rows of activations as bytes: value = scale · (byte − zero), per row.
pub(crate) struct Quantized {
    pub(super) data: Buffer<u8>,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) scale: Buffer<f32>,
    pub(super) zero: Buffer<i32>,
}

impl Quantized {
    pub(crate) fn new() -> Self {
        Self {
            data: Buffer::zeroed(0),
            stride: 0,
            rows: 0,
            scale: Buffer::zeroed(0),
            zero: Buffer::zeroed(0),
        }
    }

    /// Makes room for `rows` rows of `k` values.
    pub(crate) fn reshape(&mut self, rows: usize, k: usize) {
        self.rows = rows;
        self.stride = k.next_multiple_of(64) + 64;
        self.data.resize(rows * self.stride);
        self.scale.resize(rows);
        self.zero.resize(rows);
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.data.held_bytes() + self.scale.held_bytes() + self.zero.held_bytes()
    }
}

/// The sums of a tile, and the integers they may come from.
struct Tiles {
    sums: TileF32,
    integers: TileI32,
}

/// Two operands of a product, seen tile by tile.
trait Product: Sync {
    fn shape(&self) -> (usize, usize, Layout, usize);
    /// Bytes of one row of activations.
    fn row_bytes(&self) -> usize;
    /// The product of rows `row..row + target.rows` and one panel, finished by `activation`, into the target.
    fn tile(&self, level: Level, at: At, end: End<'_>, tiles: &mut Tiles, target: Target);
}

/// A tile of a product.
#[derive(Clone, Copy)]
struct At {
    row: usize,
    panel: usize,
}

/// The end of a tile: bias of its channels, and what follows.
#[derive(Clone, Copy)]
struct End<'a> {
    bias: Option<&'a [f32; PANEL]>,
    activation: Activation,
}

struct ProductF32<'a> {
    a: &'a [f32],
    lda: usize,
    w: &'a PackedF32,
}

impl Product for ProductF32<'_> {
    fn shape(&self) -> (usize, usize, Layout, usize) {
        (self.w.n, self.w.k, self.w.layout, self.w.panels())
    }

    fn row_bytes(&self) -> usize {
        self.w.k * 4
    }

    fn tile(&self, level: Level, at: At, end: End<'_>, tiles: &mut Tiles, target: Target) {
        let a = &self.a[at.row * self.lda..];
        tile_f32(
            level,
            target.rows,
            self.w.k,
            a,
            self.lda,
            self.w.panel(at.panel),
            tiles.sums.0.as_flattened_mut(),
            PANEL,
        );
        finish_f32(level, &mut tiles.sums, end, target);
    }
}

struct ProductI8<'a> {
    a: &'a Quantized,
    w: &'a PackedI8,
}

impl Product for ProductI8<'_> {
    fn shape(&self) -> (usize, usize, Layout, usize) {
        (self.w.n, self.w.k, self.w.layout, self.w.panels())
    }

    fn row_bytes(&self) -> usize {
        self.w.k
    }

    fn tile(&self, level: Level, at: At, end: End<'_>, tiles: &mut Tiles, target: Target) {
        let (row, m) = (at.row, target.rows);
        tile_i8(
            level,
            m,
            self.w.k4(),
            &self.a.data[row * self.a.stride..],
            self.a.stride,
            self.w.panel(at.panel),
            &mut tiles.integers,
        );
        let scales = Scales {
            rows: &self.a.scale[row..row + m],
            zeros: &self.a.zero[row..row + m],
            channels: self.w.scales(at.panel),
            sums: self.w.sums(at.panel),
        };
        finish_i8(level, &tiles.integers, scales, end, target);
    }
}

/// What makes numbers of the integers of a tile.
#[derive(Clone, Copy)]
struct Scales<'a> {
    /// Of the rows of activations, as their zero points.
    rows: &'a [f32],
    zeros: &'a [i32],
    /// Of the channels, as the sums of their weights.
    channels: &'a [f32; PANEL],
    sums: &'a [i32; PANEL],
}

/// Where a tile goes: `rows` rows of `width` values, at `at`, `stride` apart.
#[derive(Clone, Copy)]
struct Target {
    at: *mut f32,
    stride: usize,
    rows: usize,
    width: usize,
}

impl Target {
    /// Brings the lines that the tile will be written to into the cache while its sums are made: they lie a row's length
    /// apart, which no prefetcher of the processor guesses.
    #[inline(always)]
    fn fetch(self) {
        #[cfg(target_arch = "x86_64")]
        for i in 0..self.rows {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            let row = self.at.wrapping_add(i * self.stride);
            // SAFETY: a prefetch reads and writes nothing, wherever it points; every x86-64 has it.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(row.cast_const().cast());
                _mm_prefetch::<_MM_HINT_ET0>(row.wrapping_add(PANEL / 2).cast_const().cast());
            }
        }
    }
}

multiversion! {
    fn finish_f32(tile: &mut TileF32, end: End<'_>, target: Target) = finish_f32_body
}

multiversion! {
    fn finish_i8(tile: &TileI32, scales: Scales<'_>, end: End<'_>, target: Target) = finish_i8_body
}

#[inline(always)]
fn finish_f32_body<A: Arith>(tile: &mut TileF32, end: End<'_>, target: Target) {
    for i in 0..target.rows {
        finish_row(&mut tile.0[i], i, end, target, gelu::<A>);
    }
}

/// From integers to the output without a stop: the row stays in registers. Its GELU is as exact as bytes can tell.
#[inline(always)]
fn finish_i8_body<A: Arith>(tile: &TileI32, scales: Scales<'_>, end: End<'_>, target: Target) {
    for i in 0..target.rows {
        let (integers, scale, zero) = (&tile.0[i], scales.rows[i], scales.zeros[i]);
        let mut sums = [0f32; PANEL];
        for j in 0..PANEL {
            sums[j] = (integers[j] - zero * scales.sums[j]) as f32 * (scale * scales.channels[j]);
        }
        finish_row(&mut sums, i, end, target, gelu_coarse::<A>);
    }
}

/// Only called for targets of [`run`], which are disjoint parts of one output that it checked. Loops over whole lanes of
/// known length: that is what becomes straight vector code.
#[inline(always)]
fn finish_row(
    sums: &mut [f32; PANEL],
    i: usize,
    end: End<'_>,
    target: Target,
    gelu: impl Fn(f32) -> f32,
) {
    let activation = end.activation;
    if let Some(bias) = end.bias {
        for j in 0..PANEL {
            sums[j] += bias[j];
        }
    }
    match activation {
        Activation::Store | Activation::Add => {}
        Activation::Relu => {
            for v in sums.iter_mut() {
                *v = if *v > 0.0 { *v } else { 0.0 };
            }
        }
        Activation::Gelu => {
            for v in sums.iter_mut() {
                *v = gelu(*v);
            }
        }
        Activation::Gated => {
            for j in 0..PANEL / 2 {
                sums[j] = gelu(sums[j]) * sums[PANEL / 2 + j];
            }
        }
    }
    // SAFETY: `run` asserted that all rows and columns of the product lie inside the output, and gives each tile to
    // one task only.
    let out =
        unsafe { std::slice::from_raw_parts_mut(target.at.add(i * target.stride), target.width) };
    if let Ok(out) = <&mut [f32; PANEL]>::try_from(&mut *out) {
        land(sums, activation, out);
    } else if let (Ok(out), Some(sums)) = (
        <&mut [f32; PANEL / 2]>::try_from(&mut *out),
        sums.first_chunk::<{ PANEL / 2 }>(),
    ) {
        land(sums, activation, out);
    } else {
        for j in 0..out.len().min(PANEL) {
            out[j] = if activation == Activation::Add {
                out[j] + sums[j]
            } else {
                sums[j]
            };
        }
    }
}

#[inline(always)]
fn land<const N: usize>(sums: &[f32; N], activation: Activation, out: &mut [f32; N]) {
    if activation == Activation::Add {
        for j in 0..N {
            out[j] += sums[j];
        }
    } else {
        *out = *sums;
    }
}

/// An output that several tasks write disjoint tiles of.
struct Shared(*mut f32);
// SAFETY: tasks get disjoint tiles (see `run`), and the exclusive borrow that the pointer came from outlives them.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(&self, offset: usize) -> *mut f32 {
        // SAFETY: `run` asserted that every offset it asks for lies inside the output.
        unsafe { self.0.add(offset) }
    }
}

fn run(
    level: Level,
    product: &impl Product,
    m: usize,
    epilogue: Epilogue<'_>,
    out: &mut [f32],
    ldo: usize,
) {
    let (n, k, layout, panels) = product.shape();
    let (columns, lanes) = match layout {
        Layout::Plain => (n, PANEL),
        Layout::Halves => (n / 2, PANEL / 2),
    };
    assert_eq!(
        layout == Layout::Halves,
        epilogue.activation == Activation::Gated,
        "a gate needs its value beside it"
    );
    assert!(
        epilogue
            .bias
            .is_none_or(|b| b.len() == n && layout == Layout::Plain),
        "one bias per channel"
    );
    if m == 0 || panels == 0 {
        return;
    }
    assert!(
        ldo >= columns && out.len() >= (m - 1) * ldo + columns,
        "the output holds the product"
    );

    let threads = rayon::current_num_threads();
    let block = (BLOCK_BYTES / product.row_bytes().max(1) / TILE_ROWS * TILE_ROWS)
        .clamp(TILE_ROWS, BLOCK_TILES * TILE_ROWS);
    let blocks = m.div_ceil(block);
    // Even blocks, whole tiles.
    let block = m.div_ceil(blocks).next_multiple_of(TILE_ROWS);
    let blocks = m.div_ceil(block);
    let groups = (threads * 6).div_ceil(blocks).clamp(1, panels);
    let shared = Shared(out.as_mut_ptr());

    let task = |index: usize| {
        let (group, rows) = (index / blocks, index % blocks);
        let mut tile = Tiles {
            sums: TileF32::ZERO,
            integers: TileI32::ZERO,
        };
        for panel in group * panels / groups..(group + 1) * panels / groups {
            let column = panel * lanes;
            let width = lanes.min(columns - column);
            let mut padded = [0f32; PANEL];
            let bias = epilogue.bias.map(|bias| {
                padded[..width].copy_from_slice(&bias[column..column + width]);
                &padded
            });
            let mut row = rows * block;
            let end = (row + block).min(m);
            while row < end {
                let height = (end - row).min(TILE_ROWS);
                let target = Target {
                    at: shared.at(row * ldo + column),
                    stride: ldo,
                    rows: height,
                    width,
                };
                let end = End {
                    bias,
                    activation: epilogue.activation,
                };
                target.fetch();
                product.tile(level, At { row, panel }, end, &mut tile, target);
                row += height;
            }
        }
    };
    if threads == 1 || m * n * k <= SERIAL_WORK {
        (0..groups * blocks).for_each(task);
    } else {
        (0..groups * blocks)
            .into_par_iter()
            .with_max_len(1)
            .for_each(task);
    }
}

/// `out[i][c] = finish(Σ_p a[i·lda + p] · w[c][p])` for `m` rows.
///
/// # Panics
/// When a slice is too short for the shape, or epilogue and layout do not fit.
pub(crate) fn product_f32(
    level: Level,
    (a, lda): (&[f32], usize),
    m: usize,
    w: &PackedF32,
    epilogue: Epilogue<'_>,
    (out, ldo): (&mut [f32], usize),
) {
    run(level, &ProductF32 { a, lda, w }, m, epilogue, out, ldo);
}

/// The same with byte activations and weights.
///
/// # Panics
/// As [`product_f32`].
pub(crate) fn product_i8(
    level: Level,
    a: &Quantized,
    w: &PackedI8,
    epilogue: Epilogue<'_>,
    (out, ldo): (&mut [f32], usize),
) {
    run(level, &ProductI8 { a, w }, a.rows, epilogue, out, ldo);
}

#[cfg(test)]
mod tests {
    use super::super::quantize;
    use super::*;

    /// Numbers in -1..1 from a counter, the same on every machine.
    fn noise(seed: u64, len: usize) -> Vec<f32> {
        let mut state = seed;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
            })
            .collect()
    }

    fn naive(a: &[f32], w: &[f32], m: usize, n: usize, k: usize) -> Vec<f64> {
        let dot = |i: usize, j: usize| {
            (0..k)
                .map(|p| f64::from(a[i * k + p]) * f64::from(w[j * k + p]))
                .sum()
        };
        (0..m * n).map(|at| dot(at / n, at % n)).collect()
    }

    fn erf_gelu(x: f32) -> f32 {
        gelu::<super::super::arith::Fused>(x)
    }

    #[test]
    fn every_level_multiplies_every_shape() {
        for level in Level::all() {
            for (m, n, k) in [
                (1, 1, 1),
                (3, 33, 5),
                (12, 64, 128),
                (13, 96, 66),
                (50, 70, 31),
            ] {
                let (a, w) = (noise(1, m * k), noise(2, n * k));
                let packed = PackedF32::new(n, k, Layout::Plain, |c, out| {
                    out.copy_from_slice(&w[c * k..][..k])
                });
                let bias = noise(3, n);
                let want = naive(&a, &w, m, n, k);
                for activation in [
                    Activation::Store,
                    Activation::Add,
                    Activation::Relu,
                    Activation::Gelu,
                ] {
                    let mut out = vec![0.5f32; m * n];
                    product_f32(
                        level,
                        (&a, k),
                        m,
                        &packed,
                        Epilogue {
                            bias: Some(&bias),
                            activation,
                        },
                        (&mut out, n),
                    );
                    for (at, got) in out.iter().enumerate() {
                        let sum = want[at] as f32 + bias[at % n];
                        let want = match activation {
                            Activation::Add => sum + 0.5,
                            Activation::Relu => sum.max(0.0),
                            Activation::Gelu => erf_gelu(sum),
                            _ => sum,
                        };
                        assert!(
                            (got - want).abs() < 1e-4,
                            "{level} {m}x{n}x{k} {activation:?} at {at}: {got} not {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_level_gates() {
        for level in Level::all() {
            let (m, half, k) = (14, 40, 20);
            let (a, w) = (noise(1, m * k), noise(2, 2 * half * k));
            let packed = PackedF32::new(2 * half, k, Layout::Halves, |c, out| {
                out.copy_from_slice(&w[c * k..][..k])
            });
            let want = naive(&a, &w, m, 2 * half, k);
            let mut out = vec![0f32; m * half];
            product_f32(
                level,
                (&a, k),
                m,
                &packed,
                Epilogue::plain(Activation::Gated),
                (&mut out, half),
            );
            for (at, got) in out.iter().enumerate() {
                let (i, j) = (at / half, at % half);
                let want =
                    erf_gelu(want[i * 2 * half + j] as f32) * want[i * 2 * half + half + j] as f32;
                assert!(
                    (got - want).abs() < 1e-4,
                    "{level} at {at}: {got} not {want}"
                );
            }
        }
    }

    #[test]
    fn byte_products_are_exact_in_their_integers() {
        for level in Level::all() {
            for (m, n, k) in [(1, 32, 4), (5, 40, 70), (26, 64, 256)] {
                // Full range, so that a saturating product would show.
                let a: Vec<f32> = noise(1, m * k)
                    .iter()
                    .map(|v| if *v < 0.2 { 1.0 } else { -1.0 })
                    .collect();
                let w: Vec<f32> = noise(2, n * k).iter().map(|v| v.signum()).collect();
                let packed = PackedI8::new(n, k, Layout::Plain, |c, out| {
                    out.copy_from_slice(&w[c * k..][..k])
                });
                let mut bytes = Quantized::new();
                bytes.reshape(m, k);
                quantize(level, (&a, k), k, &mut bytes);
                let mut out = vec![0f32; m * n];
                product_i8(
                    level,
                    &bytes,
                    &packed,
                    Epilogue::plain(Activation::Store),
                    (&mut out, n),
                );
                let want = naive(&a, &w, m, n, k);
                for (at, got) in out.iter().enumerate() {
                    // ±1 with a zero point off by half a step per term at most.
                    let bound = k as f64 / f64::from(level.activation_max()) + 1e-3;
                    assert!(
                        (f64::from(*got) - want[at]).abs() <= bound,
                        "{level} {m}x{n}x{k} at {at}: {got} not {}",
                        want[at]
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_among_others() {
        for level in Level::all() {
            let (m, n, k) = (37, 96, 130);
            let (a, w) = (noise(1, m * k), noise(2, n * k));
            let packed = PackedF32::new(n, k, Layout::Plain, |c, out| {
                out.copy_from_slice(&w[c * k..][..k])
            });
            let mut all = vec![0f32; m * n];
            product_f32(
                level,
                (&a, k),
                m,
                &packed,
                Epilogue::plain(Activation::Gelu),
                (&mut all, n),
            );
            for i in 0..m {
                let mut one = vec![0f32; n];
                product_f32(
                    level,
                    (&a[i * k..], k),
                    1,
                    &packed,
                    Epilogue::plain(Activation::Gelu),
                    (&mut one, n),
                );
                assert_eq!(one, all[i * n..][..n], "{level}, row {i}");
            }
        }
    }
}
