//! Which instruction sets this process may use: what the machine has, capped by what the user allows.

use std::fmt;
use std::str::FromStr;

/// An upper limit on instruction sets, `LAYA_CPU_FEATURES` (wire.md 3), for tests. The default is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CpuFeatures {
    /// Plain Rust only, as the compiler's baseline for the target has it.
    Portable,
    /// At most AVX2 with FMA.
    Avx2,
    /// At most AVX-512, with VNNI where there is one.
    Avx512,
    /// NEON, which every aarch64 target of ours has in its baseline.
    Neon,
    /// All that is found.
    #[default]
    All,
}

/// A word that names no limit, or a limit for another processor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown CPU feature level `{0}`: expected portable, avx2, avx512 or neon")]
pub struct UnsupportedCpu(pub String);

impl FromStr for CpuFeatures {
    type Err = UnsupportedCpu;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "portable" => Ok(Self::Portable),
            "avx2" => Ok(Self::Avx2),
            "avx512" => Ok(Self::Avx512),
            "neon" => Ok(Self::Neon),
            _ => Err(UnsupportedCpu(text.to_owned())),
        }
    }
}

/// The path that every kernel of one engine takes. A value above [`Level::Portable`] exists only where
/// [`Level::detect`] saw the instructions, which is what makes the calls into those paths sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level(Path);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) enum Path {
    Portable,
    Avx2,
    Avx512,
    /// AVX-512 with `vpdpbusd`.
    Vnni,
}

impl Level {
    /// What this machine can do, not beyond `limit`.
    pub(crate) fn detect(limit: CpuFeatures) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let wide = matches!(limit, CpuFeatures::Avx512 | CpuFeatures::All)
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma");
            if wide {
                return Self(if is_x86_feature_detected!("avx512vnni") {
                    Path::Vnni
                } else {
                    Path::Avx512
                });
            }
            let middle = matches!(
                limit,
                CpuFeatures::Avx2 | CpuFeatures::Avx512 | CpuFeatures::All
            ) && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma");
            if middle {
                return Self(Path::Avx2);
            }
        }
        let _ = limit;
        Self(Path::Portable)
    }

    /// Every level this machine can run, slowest first, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut levels = vec![Self(Path::Portable)];
        for limit in [CpuFeatures::Avx2, CpuFeatures::Avx512] {
            let level = Self::detect(limit);
            if !levels.contains(&level) {
                levels.push(level);
            }
            if level.0 == Path::Vnni {
                levels.push(Self(Path::Avx512));
            }
        }
        levels
    }

    pub(super) const fn path(self) -> Path {
        self.0
    }

    /// Largest quantised activation: 255, or 127 where the byte product would saturate on a full byte.
    pub(crate) const fn activation_max(self) -> u8 {
        match self.0 {
            Path::Avx2 | Path::Avx512 => 127,
            Path::Portable | Path::Vnni => 255,
        }
    }

    /// A name for reports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self.0 {
            Path::Portable => "portable",
            Path::Avx2 => "avx2",
            Path::Avx512 => "avx512",
            Path::Vnni => "avx512-vnni",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_exceeded() {
        assert_eq!(Level::detect(CpuFeatures::Portable), Level(Path::Portable));
        assert!(matches!(
            Level::detect(CpuFeatures::Avx2).path(),
            Path::Portable | Path::Avx2
        ));
        assert_eq!("avx512".parse(), Ok(CpuFeatures::Avx512));
        assert!("sse".parse::<CpuFeatures>().is_err());
    }
}
