//! The innermost loops: up to 12 rows of activations times one panel of 32 packed columns, over the whole of `k`, into a
//! buffer with a stride. Nothing here knows what becomes of the sums.

use super::level::Path;
use super::{Level, PANEL, TILE_ROWS};

/// Sums of one tile in f32.
#[repr(C, align(64))]
pub(super) struct TileF32(pub(super) [[f32; PANEL]; TILE_ROWS]);

impl TileF32 {
    pub(super) const ZERO: Self = Self([[0.0; PANEL]; TILE_ROWS]);
}

/// Sums of one tile in i32.
#[repr(C, align(64))]
pub(super) struct TileI32(pub(super) [[i32; PANEL]; TILE_ROWS]);

impl TileI32 {
    pub(super) const ZERO: Self = Self([[0; PANEL]; TILE_ROWS]);
}

/// Calls `$f::<M>` for the number of rows at hand.
macro_rules! by_rows {
    ($m:expr, $f:ident($($arg:expr),*)) => {
        match $m {
            1 => $f::<1>($($arg),*), 2 => $f::<2>($($arg),*), 3 => $f::<3>($($arg),*), 4 => $f::<4>($($arg),*),
            5 => $f::<5>($($arg),*), 6 => $f::<6>($($arg),*), 7 => $f::<7>($($arg),*), 8 => $f::<8>($($arg),*),
            9 => $f::<9>($($arg),*), 10 => $f::<10>($($arg),*), 11 => $f::<11>($($arg),*), _ => $f::<12>($($arg),*),
        }
    };
}

/// `out[i·ldo + j] = Σ_p a[i·lda + p] · b[p·32 + j]` for `m` rows (1..=12), `k` steps.
///
/// # Panics
/// When a slice is too short for the shape.
#[allow(clippy::too_many_arguments)] // two strided operands and a strided output
pub(super) fn tile_f32(
    level: Level,
    m: usize,
    k: usize,
    a: &[f32],
    lda: usize,
    b: &[f32],
    out: &mut [f32],
    ldo: usize,
) {
    assert!((1..=TILE_ROWS).contains(&m) && a.len() >= (m - 1) * lda + k && b.len() >= k * PANEL);
    assert!(out.len() >= (m - 1) * ldo + PANEL);
    let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
    #[cfg(target_arch = "x86_64")]
    match level.path() {
        Path::Vnni | Path::Avx512 => {
            // SAFETY: the features were detected (`Level`), the slices reach as far as the loops do (asserts above).
            return unsafe { by_rows!(m, f32_avx512(k, a, lda, b, out, ldo)) };
        }
        Path::Avx2 => {
            let mut done = 0;
            while done < m {
                let rows = (m - done).min(6);
                for half in [0, 16] {
                    // SAFETY: as above; rows and columns of the half tile lie inside the whole one.
                    unsafe {
                        let (a, b, out) =
                            (a.add(done * lda), b.add(half), out.add(done * ldo + half));
                        match rows {
                            1 => f32_avx2::<1>(k, a, lda, b, out, ldo),
                            2 => f32_avx2::<2>(k, a, lda, b, out, ldo),
                            3 => f32_avx2::<3>(k, a, lda, b, out, ldo),
                            4 => f32_avx2::<4>(k, a, lda, b, out, ldo),
                            5 => f32_avx2::<5>(k, a, lda, b, out, ldo),
                            _ => f32_avx2::<6>(k, a, lda, b, out, ldo),
                        }
                    }
                }
                done += rows;
            }
            return;
        }
        Path::Portable => {}
    }
    let _ = level;
    for i in 0..m {
        // SAFETY: the slices reach as far as the loop reads (assert above).
        unsafe {
            f32_portable(
                k,
                a.add(i * lda),
                b,
                &mut *out.add(i * ldo).cast::<[f32; PANEL]>(),
            )
        };
    }
}

/// `out[i][j] = Σ_p a[i·lda + p] · b[…]` for `m` rows (1..=12); `k4` groups of four bytes; `b` is `[k4][32][4]`.
/// Activations must not exceed [`Level::activation_max`].
///
/// # Panics
/// When a slice is too short for the shape.
pub(super) fn tile_i8(
    level: Level,
    m: usize,
    k4: usize,
    a: &[u8],
    lda: usize,
    b: &[i8],
    out: &mut TileI32,
) {
    assert!(
        (1..=TILE_ROWS).contains(&m)
            && a.len() >= (m - 1) * lda + 4 * k4
            && b.len() >= k4 * PANEL * 4
    );
    let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.0.as_mut_ptr());
    #[cfg(target_arch = "x86_64")]
    match level.path() {
        // SAFETY: the features were detected (`Level`), the slices reach as far as the loops read (assert above).
        Path::Vnni => return unsafe { by_rows!(m, i8_vnni(k4, a, lda, b, out)) },
        Path::Avx512 | Path::Avx2 => {
            let mut done = 0;
            while done < m {
                let rows = (m - done).min(4);
                for half in [0, 16] {
                    // SAFETY: as above; rows and columns of the half tile lie inside the whole one.
                    unsafe {
                        let (a, b) = (a.add(done * lda), b.add(half * 4));
                        let out = out.add(done).cast::<i32>().add(half);
                        match rows {
                            1 => i8_avx2::<1>(k4, a, lda, b, out),
                            2 => i8_avx2::<2>(k4, a, lda, b, out),
                            3 => i8_avx2::<3>(k4, a, lda, b, out),
                            _ => i8_avx2::<4>(k4, a, lda, b, out),
                        }
                    }
                }
                done += rows;
            }
            return;
        }
        Path::Portable => {}
    }
    let _ = level;
    for i in 0..m {
        // SAFETY: the slices reach as far as the loop reads (assert above).
        unsafe { i8_portable(k4, a.add(i * lda), b, &mut *out.add(i)) };
    }
}

/// # Safety
/// `a` must be readable for `k` elements, `b` for `k · 32`.
unsafe fn f32_portable(k: usize, a: *const f32, b: *const f32, out: &mut [f32; PANEL]) {
    use super::arith::{Arith, Baseline};
    let mut acc = [0f32; PANEL];
    for p in 0..k {
        // SAFETY: `p < k`.
        let (x, row) = unsafe { (*a.add(p), &*b.add(p * PANEL).cast::<[f32; PANEL]>()) };
        for j in 0..PANEL {
            acc[j] = Baseline::fma(x, row[j], acc[j]);
        }
    }
    *out = acc;
}

/// # Safety
/// `a` must be readable for `4 · k4` bytes, `b` for `k4 · 128`.
unsafe fn i8_portable(k4: usize, a: *const u8, b: *const i8, out: &mut [i32; PANEL]) {
    let mut acc = [0i32; PANEL];
    for p in 0..k4 {
        // SAFETY: `p < k4`.
        let (x, row) = unsafe {
            (
                &*a.add(p * 4).cast::<[u8; 4]>(),
                &*b.add(p * 4 * PANEL).cast::<[[i8; 4]; PANEL]>(),
            )
        };
        for j in 0..PANEL {
            acc[j] += (0..4)
                .map(|q| i32::from(x[q]) * i32::from(row[j][q]))
                .sum::<i32>();
        }
    }
    *out = acc;
}

#[cfg(target_arch = "x86_64")]
use x86::{f32_avx2, f32_avx512, i8_avx2, i8_vnni};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::PANEL;

    /// # Safety
    /// AVX-512F; `a` readable for `M` rows of `k` at stride `lda`, `b` for `k · 32`, 64-byte aligned; `out` writable for `M` rows of 32 at stride `ldo`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn f32_avx512<const M: usize>(
        k: usize,
        a: *const f32,
        lda: usize,
        b: *const f32,
        out: *mut f32,
        ldo: usize,
    ) {
        // SAFETY: all pointers stay inside what the caller guarantees.
        unsafe {
            let mut acc = [[_mm512_setzero_ps(); 2]; M];
            let rows: [*const f32; M] = std::array::from_fn(|i| a.add(i * lda));
            for p in 0..k {
                let b0 = _mm512_load_ps(b.add(p * PANEL));
                let b1 = _mm512_load_ps(b.add(p * PANEL + 16));
                for i in 0..M {
                    let x = _mm512_set1_ps(*rows[i].add(p));
                    acc[i][0] = _mm512_fmadd_ps(x, b0, acc[i][0]);
                    acc[i][1] = _mm512_fmadd_ps(x, b1, acc[i][1]);
                }
            }
            for (i, sums) in acc.iter().enumerate() {
                let row = out.add(i * ldo);
                _mm512_storeu_ps(row, sums[0]);
                _mm512_storeu_ps(row.add(16), sums[1]);
            }
        }
    }

    /// # Safety
    /// AVX2 and FMA; as `f32_avx512`, for 16 columns of a panel of 32.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn f32_avx2<const M: usize>(
        k: usize,
        a: *const f32,
        lda: usize,
        b: *const f32,
        out: *mut f32,
        ldo: usize,
    ) {
        // SAFETY: all pointers stay inside what the caller guarantees.
        unsafe {
            let mut acc = [[_mm256_setzero_ps(); 2]; M];
            let rows: [*const f32; M] = std::array::from_fn(|i| a.add(i * lda));
            for p in 0..k {
                let b0 = _mm256_load_ps(b.add(p * PANEL));
                let b1 = _mm256_load_ps(b.add(p * PANEL + 8));
                for i in 0..M {
                    let x = _mm256_set1_ps(*rows[i].add(p));
                    acc[i][0] = _mm256_fmadd_ps(x, b0, acc[i][0]);
                    acc[i][1] = _mm256_fmadd_ps(x, b1, acc[i][1]);
                }
            }
            for (i, sums) in acc.iter().enumerate() {
                _mm256_storeu_ps(out.add(i * ldo), sums[0]);
                _mm256_storeu_ps(out.add(i * ldo + 8), sums[1]);
            }
        }
    }

    /// # Safety
    /// AVX-512F and VNNI; `a` readable for `M` rows of `4 · k4` bytes at stride `lda`, `b` for `k4 · 128`, aligned.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn i8_vnni<const M: usize>(
        k4: usize,
        a: *const u8,
        lda: usize,
        b: *const i8,
        out: *mut [i32; PANEL],
    ) {
        // SAFETY: all pointers stay inside what the caller guarantees.
        unsafe {
            let mut acc = [[_mm512_setzero_si512(); 2]; M];
            let rows: [*const u8; M] = std::array::from_fn(|i| a.add(i * lda));
            for p in 0..k4 {
                let b0 = _mm512_load_si512(b.add(p * 4 * PANEL).cast());
                let b1 = _mm512_load_si512(b.add(p * 4 * PANEL + 64).cast());
                for i in 0..M {
                    let x = _mm512_set1_epi32(rows[i].add(p * 4).cast::<i32>().read_unaligned());
                    acc[i][0] = _mm512_dpbusd_epi32(acc[i][0], x, b0);
                    acc[i][1] = _mm512_dpbusd_epi32(acc[i][1], x, b1);
                }
            }
            for (i, sums) in acc.iter().enumerate() {
                let row = out.add(i).cast::<i32>();
                _mm512_storeu_si512(row.cast(), sums[0]);
                _mm512_storeu_si512(row.add(16).cast(), sums[1]);
            }
        }
    }

    /// Pairs are summed in 16 bits: exact as long as activations stay below 128.
    ///
    /// # Safety
    /// AVX2; as `i8_vnni`, for 16 columns of a panel of 32.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn i8_avx2<const M: usize>(
        k4: usize,
        a: *const u8,
        lda: usize,
        b: *const i8,
        out: *mut i32,
    ) {
        // SAFETY: all pointers stay inside what the caller guarantees.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut acc = [[_mm256_setzero_si256(); 2]; M];
            let rows: [*const u8; M] = std::array::from_fn(|i| a.add(i * lda));
            for p in 0..k4 {
                let b0 = _mm256_load_si256(b.add(p * 4 * PANEL).cast());
                let b1 = _mm256_load_si256(b.add(p * 4 * PANEL + 32).cast());
                for i in 0..M {
                    let x = _mm256_set1_epi32(rows[i].add(p * 4).cast::<i32>().read_unaligned());
                    let s0 = _mm256_madd_epi16(_mm256_maddubs_epi16(x, b0), ones);
                    let s1 = _mm256_madd_epi16(_mm256_maddubs_epi16(x, b1), ones);
                    acc[i][0] = _mm256_add_epi32(acc[i][0], s0);
                    acc[i][1] = _mm256_add_epi32(acc[i][1], s1);
                }
            }
            for (i, sums) in acc.iter().enumerate() {
                _mm256_storeu_si256(out.add(i * PANEL).cast(), sums[0]);
                _mm256_storeu_si256(out.add(i * PANEL + 8).cast(), sums[1]);
            }
        }
    }
}
