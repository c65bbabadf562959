//! Scalar arithmetic that the compiler turns into vectors, written once and compiled per instruction set: the
//! `multiversion!` macro makes the versions, [`Arith`] says whether a multiply-add is one instruction there.

/// How a multiply-add is done. Without an instruction for it, `f32::mul_add` would be a library call per element.
pub(super) trait Arith: Copy {
    fn fma(a: f32, b: f32, c: f32) -> f32;
}

/// One rounding.
#[derive(Clone, Copy)]
pub(super) struct Fused;

impl Arith for Fused {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Two roundings on x86, whose baseline has no such instruction; one elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Arith for Baseline {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        if cfg!(target_arch = "x86_64") {
            a * b + c
        } else {
            a.mul_add(b, c)
        }
    }
}

/// Makes a function `name(level, …)` that runs `body::<…>(…)` compiled for the instruction set of `level`. The body must
/// be generic over [`Arith`] and `#[inline(always)]`.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(level: $crate::kernels::Level, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn wide($($arg: $ty),*) {
                    $body::<$crate::kernels::arith::Fused>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn middle($($arg: $ty),*) {
                    $body::<$crate::kernels::arith::Fused>($($arg),*);
                }
                use $crate::kernels::level::Path;
                match level.path() {
                    // SAFETY: a level above `Portable` exists only where these features were detected.
                    Path::Vnni | Path::Avx512 => return unsafe { wide($($arg),*) },
                    // SAFETY: as above.
                    Path::Avx2 => return unsafe { middle($($arg),*) },
                    Path::Portable => {}
                }
            }
            let _ = level;
            $body::<$crate::kernels::arith::Baseline>($($arg),*);
        }
    };
}
pub(super) use multiversion;

/// `e^x`, relative error below 2e-7 on the range that counts; below -87 it is the smallest normal number or 0-like,
/// above 88 it stays finite. Split as 2^n · e^r with |r| ≤ ln 2 / 2 and the Taylor series of degree 7.
#[inline(always)]
pub(super) fn exp<A: Arith>(x: f32) -> f32 {
    // 1.5 · 2^23 rounds to an integer in the low mantissa bits; 127 is the exponent bias.
    const MAGIC: f32 = 12_582_912.0 + 127.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = A::fma(x, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = A::fma(n, -0.693_145_75, x);
    let r = A::fma(n, -1.428_606_8e-6, r);
    let mut p = 1.0 / 5040.0;
    p = A::fma(p, r, 1.0 / 720.0);
    p = A::fma(p, r, 1.0 / 120.0);
    p = A::fma(p, r, 1.0 / 24.0);
    p = A::fma(p, r, 1.0 / 6.0);
    p = A::fma(p, r, 0.5);
    p = A::fma(p, r, 1.0);
    p = A::fma(p, r, 1.0);
    p * f32::from_bits(shifted.to_bits() << 23)
}

/// The exact (erf) GELU, absolute error below 2e-7 · max(1, |x|). erfc(z) = e^(−z²) · q(t), t = 1 / (1 + 0.3275911 z),
/// with a degree-8 polynomial q fitted by us to 2.6e-7 over the whole half line.
#[inline(always)]
pub(super) fn gelu<A: Arith>(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / A::fma(0.327_591_1, z, 1.0);
    let mut q = -0.125_772_17;
    q = A::fma(q, t, 0.430_288_8);
    q = A::fma(q, t, -0.287_236_4);
    q = A::fma(q, t, 0.340_195_2);
    q = A::fma(q, t, 0.087_056_52);
    q = A::fma(q, t, 0.186_793_25);
    q = A::fma(q, t, 0.183_822_84);
    q = A::fma(q, t, 0.184_852_23);
    let tail = 0.5 * x * (q * t * exp::<A>(-z * z));
    if x >= 0.0 { x - tail } else { tail }
}

/// GELU for products of bytes, absolute error below 8e-5 · max(1, |x|): a hundredth of a step of what it was made from and
/// of what becomes of it. x · (1/2 + x · p(x²)), with a polynomial p of degree 7 fitted by us on |x| ≤ 4.2, beyond which
/// it stays what it is there; no division, no exponential.
#[inline(always)]
pub(super) fn gelu_coarse<A: Arith>(x: f32) -> f32 {
    const EDGE: f32 = 4.2;
    let z = x.clamp(-EDGE, EDGE);
    let s = z * z;
    let mut p = -9.613_607e-10;
    p = A::fma(p, s, 8.330_142e-8);
    p = A::fma(p, s, -3.139_964e-6);
    p = A::fma(p, s, 6.826_743e-5);
    p = A::fma(p, s, -9.607_697e-4);
    p = A::fma(p, s, 9.337_491e-3);
    p = A::fma(p, s, -6.559_942e-2);
    p = A::fma(p, s, 0.398_508_76);
    x * A::fma(z, p, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf by its Taylor series or continued fraction in f64, good to 1e-13.
    fn erf(x: f64) -> f64 {
        let z = x.abs();
        let value = if z < 3.0 {
            let (mut term, mut sum, mut n) = (z, z, 0.0);
            while term.abs() > 1e-18 {
                n += 1.0;
                term *= -z * z / n;
                sum += term / (2.0 * n + 1.0);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        } else {
            let mut f = 0.0;
            for k in (1..=120).rev() {
                f = f64::from(k) / 2.0 / (z + f);
            }
            1.0 - (-z * z).exp() / std::f64::consts::PI.sqrt() / (z + f)
        };
        value.copysign(x)
    }

    #[test]
    fn exp_and_gelu_stay_within_their_bounds() {
        for i in -12_000..=12_000 {
            let x = i as f32 / 1000.0;
            let want = f64::from(x).exp();
            for got in [exp::<Fused>(x), exp::<Baseline>(x)] {
                assert!(
                    (f64::from(got) / want - 1.0).abs() < 3e-7,
                    "exp({x}) = {got}, not {want}"
                );
            }
            let want = 0.5 * f64::from(x) * (1.0 + erf(f64::from(x) / 2f64.sqrt()));
            for got in [gelu::<Fused>(x), gelu::<Baseline>(x)] {
                assert!(
                    (f64::from(got) - want).abs() < 2e-7 * f64::from(x.abs().max(1.0)),
                    "gelu({x}) = {got}, not {want}"
                );
            }
            for got in [gelu_coarse::<Fused>(x), gelu_coarse::<Baseline>(x)] {
                assert!(
                    (f64::from(got) - want).abs() < 8e-5 * f64::from(x.abs().max(1.0)),
                    "coarse gelu({x}) = {got}, not {want}"
                );
            }
        }
        assert!(exp::<Fused>(-1000.0) < 1e-37 && exp::<Fused>(1000.0).is_finite());
    }
}
