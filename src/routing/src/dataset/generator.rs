//! Numbers that look random and are the same everywhere: SplitMix64 (Steele, Lea, Flood, “Fast splittable pseudorandom
//! number generators”, 2014), with draws from a range by rejection. Rows made and chosen with it must not change with a
//! platform or a library's version, so it is written down here and tested by its numbers.

/// A stream of 64-bit numbers that its seed decides.
#[derive(Debug, Clone)]
pub struct Generator(u64);

impl Generator {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[must_use]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, each as likely as any other; 0 for a bound of 0.
    #[must_use]
    pub fn below(&mut self, bound: usize) -> usize {
        let Some(wide) = u64::try_from(bound).ok().filter(|bound| *bound > 0) else {
            return 0;
        };
        // What lies above the largest multiple of the bound would favour small numbers.
        let limit = u64::MAX - u64::MAX % wide;
        loop {
            let drawn = self.next_u64();
            if drawn < limit {
                return usize::try_from(drawn % wide).unwrap_or(0);
            }
        }
    }

    /// `size` different positions below `of`, in the order they were drawn (the first steps of a Fisher–Yates shuffle);
    /// all of them when `size` is larger.
    #[must_use]
    pub fn sample(&mut self, of: usize, size: usize) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..of).collect();
        let size = size.min(of);
        for at in 0..size {
            let other = at + self.below(of - at);
            positions.swap(at, other);
        }
        positions.truncate(size);
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        // First outputs for seed 1234567, as published with the reference implementation.
        let mut generator = Generator::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| generator.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn samples_without_replacement_and_the_same_each_time() {
        let sample = Generator::new(7).sample(880, 100);
        assert_eq!(sample, Generator::new(7).sample(880, 100));
        let mut sorted = sample.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 100);
        assert!(sorted.iter().all(|at| *at < 880));
        assert_eq!(sample[..5], [167, 571, 822, 857, 830]);
        assert_eq!(Generator::new(7).sample(3, 9).len(), 3);
        assert!(Generator::new(7).sample(0, 9).is_empty());
        assert_eq!(Generator::new(7).below(0), 0);
    }
}
