//! Passes over single rows: LayerNorm and the quantisation of activations. Rows are shared out over the pool.

use rayon::prelude::*;

use super::arith::{Arith, multiversion};
use super::{Level, Quantized};

/// Values below which a pass stays on the calling thread.
const SERIAL_VALUES: usize = 1 << 14;
const LANES: usize = 16;

/// `out[i] = (x[i] − mean) / √(variance + eps) · weight + bias`, for rows of `d` values at strides `ldx` and `ldo`.
///
/// # Panics
/// When a slice is too short.
pub(crate) fn layer_norm(
    level: Level,
    (x, ldx): (&[f32], usize),
    weight: &[f32],
    bias: Option<&[f32]>,
    eps: f32,
    (out, ldo): (&mut [f32], usize),
    rows: usize,
) {
    let d = weight.len();
    let pass = |(i, out): (usize, &mut [f32])| {
        norm_row(level, &x[i * ldx..][..d], weight, bias, eps, &mut out[..d])
    };
    if rows * d <= SERIAL_VALUES {
        out.chunks_mut(ldo).take(rows).enumerate().for_each(pass);
    } else {
        out.par_chunks_mut(ldo)
            .take(rows)
            .enumerate()
            .with_min_len(8)
            .for_each(pass);
    }
}

/// [`layer_norm`] and [`quantize`] in one pass: the normalised row never leaves the cache.
///
/// # Panics
/// When `x` is too short, or `bytes` was not reshaped for the width.
pub(crate) fn layer_norm_bytes(
    level: Level,
    (x, ldx): (&[f32], usize),
    weight: &[f32],
    bias: Option<&[f32]>,
    eps: f32,
    bytes: &mut Quantized,
) {
    let (d, rows, stride, top) = (
        weight.len(),
        bytes.rows,
        bytes.stride,
        f32::from(level.activation_max()),
    );
    let pass =
        |row: &mut Vec<f32>,
         (i, ((out, scale), zero)): (usize, ((&mut [u8], &mut f32), &mut i32))| {
            norm_row(level, &x[i * ldx..][..d], weight, bias, eps, row);
            quantize_row(level, row, top, &mut out[..d], scale, zero);
        };
    let (data, scale, zero) = (&mut bytes.data, &mut bytes.scale, &mut bytes.zero);
    if rows * d <= SERIAL_VALUES {
        let mut row = vec![0f32; d];
        let each = data
            .chunks_mut(stride)
            .zip(scale.iter_mut())
            .zip(zero.iter_mut())
            .enumerate();
        each.for_each(|item| pass(&mut row, item));
    } else {
        let each = data
            .par_chunks_mut(stride)
            .zip(scale.par_iter_mut())
            .zip(zero.par_iter_mut())
            .enumerate();
        each.with_min_len(8).for_each_init(|| vec![0f32; d], pass);
    }
}

multiversion! {
    fn norm_row(x: &[f32], weight: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [f32]) = norm_row_body
}

#[inline(always)]
fn sum_by<A: Arith>(x: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for j in 0..LANES {
            lanes[j] = term(chunk[j], lanes[j]);
        }
    }
    for (j, v) in rest.iter().enumerate() {
        lanes[j] = term(*v, lanes[j]);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] += lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn norm_row_body<A: Arith>(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) {
    let n = x.len() as f32;
    let mean = sum_by::<A>(x, |v, sum| sum + v) / n;
    let variance = sum_by::<A>(x, |v, sum| A::fma(v - mean, v - mean, sum)) / n;
    let scale = 1.0 / (variance + eps).sqrt();
    match bias {
        None => {
            for ((out, v), w) in out.iter_mut().zip(x).zip(weight) {
                *out = (v - mean) * scale * w;
            }
        }
        Some(bias) => {
            for (((out, v), w), b) in out.iter_mut().zip(x).zip(weight).zip(bias) {
                *out = A::fma((v - mean) * scale, *w, *b);
            }
        }
    }
}

/// Quantises the `bytes.rows` rows of `k` values of `x`, each by its own range (zero included): byte = round(v / scale) + zero.
///
/// # Panics
/// When `x` is too short, or `bytes` was not reshaped for `k`.
pub(crate) fn quantize(level: Level, (x, ldx): (&[f32], usize), k: usize, bytes: &mut Quantized) {
    let (rows, stride, top) = (bytes.rows, bytes.stride, f32::from(level.activation_max()));
    let pass = |(i, ((out, scale), zero)): (usize, ((&mut [u8], &mut f32), &mut i32))| {
        quantize_row(level, &x[i * ldx..][..k], top, &mut out[..k], scale, zero);
    };
    let (data, scale, zero) = (&mut bytes.data, &mut bytes.scale, &mut bytes.zero);
    if rows * k <= SERIAL_VALUES {
        data.chunks_mut(stride)
            .zip(scale.iter_mut())
            .zip(zero.iter_mut())
            .enumerate()
            .for_each(pass);
    } else {
        data.par_chunks_mut(stride)
            .zip(scale.par_iter_mut())
            .zip(zero.par_iter_mut())
            .enumerate()
            .with_min_len(8)
            .for_each(pass);
    }
}

multiversion! {
    fn quantize_row(x: &[f32], top: f32, out: &mut [u8], scale: &mut f32, zero: &mut i32) = quantize_row_body
}

#[inline(always)]
fn quantize_row_body<A: Arith>(
    x: &[f32],
    top: f32,
    out: &mut [u8],
    scale: &mut f32,
    zero: &mut i32,
) {
    // 1.5 · 2^23: adding it rounds to an integer, ties to even, in the low bits.
    const MAGIC: f32 = 12_582_912.0;
    let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for j in 0..LANES {
            low[j] = if chunk[j] < low[j] { chunk[j] } else { low[j] };
            high[j] = if chunk[j] > high[j] {
                chunk[j]
            } else {
                high[j]
            };
        }
    }
    let low = low
        .iter()
        .chain(rest)
        .fold(0f32, |m, v| if *v < m { *v } else { m });
    let high = high
        .iter()
        .chain(rest)
        .fold(0f32, |m, v| if *v > m { *v } else { m });
    let range = high - low;
    let step = if range > 0.0 && range.is_finite() {
        range / top
    } else {
        1.0
    };
    let shift = (-low / step).round_ties_even().clamp(0.0, top);
    let inverse = 1.0 / step;
    for (out, v) in out.iter_mut().zip(x) {
        let q = A::fma(*v, inverse, shift).max(0.0).min(top);
        *out = (q + MAGIC).to_bits() as u8;
    }
    *scale = step;
    *zero = shift as i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantised_row_is_within_half_a_step() {
        let x: Vec<f32> = (0..77)
            .map(|i| ((i * 37 % 101) as f32 - 30.0) / 7.0)
            .collect();
        for level in Level::all() {
            let mut bytes = Quantized::new();
            bytes.reshape(1, x.len());
            quantize(level, (&x, x.len()), x.len(), &mut bytes);
            for (i, v) in x.iter().enumerate() {
                let back = bytes.scale[0] * (i32::from(bytes.data[i]) - bytes.zero[0]) as f32;
                assert!(
                    (back - v).abs() <= bytes.scale[0] * 0.51 + 1e-6,
                    "{level} at {i}: {back} not {v}"
                );
                assert!(bytes.data[i] <= level.activation_max());
            }
        }
    }

    #[test]
    fn rows_without_a_range_and_rows_not_finite_do_no_harm() {
        for level in Level::all() {
            for row in [[0f32; 20], [f32::NAN; 20], [f32::INFINITY; 20]] {
                let mut bytes = Quantized::new();
                bytes.reshape(1, 20);
                quantize(level, (&row, 20), 20, &mut bytes);
                assert!(
                    bytes.scale[0].is_finite()
                        && bytes.data.iter().all(|b| *b <= level.activation_max())
                );
            }
        }
    }

    #[test]
    fn layer_norm_agrees_with_its_definition() {
        let x: Vec<f32> = (0..3 * 70)
            .map(|i| ((i * 29 % 83) as f32 - 40.0) / 9.0)
            .collect();
        let (weight, bias): (Vec<f32>, Vec<f32>) = (
            (0..70).map(|i| 1.0 + i as f32 / 50.0).collect(),
            vec![0.25; 70],
        );
        for level in Level::all() {
            let mut out = vec![0f32; 3 * 80];
            layer_norm(
                level,
                (&x, 70),
                &weight,
                Some(&bias),
                1e-5,
                (&mut out, 80),
                3,
            );
            for i in 0..3 {
                let row: Vec<f64> = x[i * 70..][..70].iter().map(|v| f64::from(*v)).collect();
                let mean = row.iter().sum::<f64>() / 70.0;
                let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 70.0;
                for j in 0..70 {
                    let want =
                        (row[j] - mean) / (variance + 1e-5).sqrt() * f64::from(weight[j]) + 0.25;
                    assert!(
                        (f64::from(out[i * 80 + j]) - want).abs() < 1e-5,
                        "{level} row {i} column {j}"
                    );
                }
            }
        }
    }
}
