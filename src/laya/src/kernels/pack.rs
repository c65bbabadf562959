//! Weights in the order in which the tiles read them: panels of 32 output channels, each `[k][32]` in f32 or
//! `[k/4][32][4]` in i8. Packing is done once, at load, panel by panel on all threads.

use rayon::prelude::*;

use super::{Buffer, PANEL};

/// Which output channels stand beside each other in a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Channel `32·p + j` at lane `j` of panel `p`.
    Plain,
    /// The two halves of the channels interleaved by 16: lane `j < 16` of panel `p` is channel `16·p + j`, lane
    /// `16 + j` is channel `n/2 + 16·p + j`. So one tile holds a value and its gate.
    Halves,
}

impl Layout {
    fn panels(self, n: usize) -> usize {
        match self {
            Self::Plain => n.div_ceil(PANEL),
            Self::Halves => (n / 2).div_ceil(PANEL / 2),
        }
    }

    /// The channel at a lane, or none where the panel is padded with zeros.
    fn channel(self, n: usize, panel: usize, lane: usize) -> Option<usize> {
        match self {
            Self::Plain => Some(panel * PANEL + lane).filter(|c| *c < n),
            Self::Halves => {
                let (half, at) = (n / 2, panel * PANEL / 2 + lane % (PANEL / 2));
                (at < half).then_some(if lane < PANEL / 2 { at } else { half + at })
            }
        }
    }
}

/// A weight matrix `[n, k]` packed for f32 products.
pub(crate) struct PackedF32 {
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) layout: Layout,
    data: Buffer<f32>,
}

impl PackedF32 {
    /// Packs the row-major `[n, k]` that `row(channel, out)` yields row by row.
    pub(crate) fn new(
        n: usize,
        k: usize,
        layout: Layout,
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Self {
        let mut data = Buffer::zeroed(layout.panels(n) * k * PANEL);
        data.par_chunks_mut((k * PANEL).max(1))
            .enumerate()
            .for_each_init(
                || vec![0f32; k],
                |scratch, (panel, out)| {
                    for lane in 0..PANEL {
                        if let Some(channel) = layout.channel(n, panel, lane) {
                            row(channel, scratch);
                            for (p, value) in scratch.iter().enumerate() {
                                out[p * PANEL + lane] = *value;
                            }
                        }
                    }
                },
            );
        Self { n, k, layout, data }
    }

    pub(super) fn panels(&self) -> usize {
        self.layout.panels(self.n)
    }

    pub(super) fn panel(&self, panel: usize) -> &[f32] {
        &self.data[panel * self.k * PANEL..(panel + 1) * self.k * PANEL]
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.data.held_bytes()
    }
}

/// A weight matrix `[n, k]` packed for byte products: symmetric, one scale per output channel.
pub(crate) struct PackedI8 {
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) layout: Layout,
    data: Buffer<i8>,
    /// Per lane of each panel: the scale of its channel.
    scales: Buffer<f32>,
    /// Per lane of each panel: Σ over `k` of the quantised weights, which undoes the zero point of activations.
    sums: Buffer<i32>,
}

impl PackedI8 {
    /// Quantises and packs, as [`PackedF32::new`].
    pub(crate) fn new(
        n: usize,
        k: usize,
        layout: Layout,
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Self {
        let panels = layout.panels(n);
        let k4 = k.div_ceil(4);
        let mut data = Buffer::zeroed(panels * k4 * 4 * PANEL);
        let (mut scales, mut sums) = (
            Buffer::zeroed(panels * PANEL),
            Buffer::zeroed(panels * PANEL),
        );
        data.par_chunks_mut((k4 * 4 * PANEL).max(1))
            .zip(scales.par_chunks_mut(PANEL).zip(sums.par_chunks_mut(PANEL)))
            .enumerate()
            .for_each_init(
                || vec![0f32; k],
                |scratch, (panel, (out, (scales, sums)))| {
                    for lane in 0..PANEL {
                        let Some(channel) = layout.channel(n, panel, lane) else {
                            continue;
                        };
                        row(channel, scratch);
                        (scales[lane], sums[lane]) =
                            quantize_channel(scratch, &mut out[lane * 4..]);
                    }
                },
            );
        Self {
            n,
            k,
            layout,
            data,
            scales,
            sums,
        }
    }

    pub(super) fn k4(&self) -> usize {
        self.k.div_ceil(4)
    }

    pub(super) fn panels(&self) -> usize {
        self.layout.panels(self.n)
    }

    pub(super) fn panel(&self, panel: usize) -> &[i8] {
        let size = self.k4() * 4 * PANEL;
        &self.data[panel * size..(panel + 1) * size]
    }

    pub(super) fn scales(&self, panel: usize) -> &[f32; PANEL] {
        self.scales
            .as_chunks::<PANEL>()
            .0
            .get(panel)
            .expect("one scale per lane of each panel")
    }

    pub(super) fn sums(&self, panel: usize) -> &[i32; PANEL] {
        self.sums
            .as_chunks::<PANEL>()
            .0
            .get(panel)
            .expect("one sum per lane of each panel")
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.data.held_bytes() + self.scales.held_bytes() + self.sums.held_bytes()
    }
}

/// Writes the bytes of one channel, four at a time at the stride of a panel; returns its scale and the sum of its bytes.
fn quantize_channel(weights: &[f32], out: &mut [i8]) -> (f32, i32) {
    // 1.5 · 2^23: adding it rounds to an integer, ties to even, in the low bits.
    const MAGIC: f32 = 12_582_912.0;
    let top = weights
        .iter()
        .fold(0f32, |top, v| if v.abs() > top { v.abs() } else { top });
    let scale = if top > 0.0 { top / 127.0 } else { 1.0 };
    let inverse = 1.0 / scale;
    let mut sum = 0i32;
    for (group, out) in weights.chunks(4).zip(out.chunks_mut(4 * PANEL)) {
        for (value, out) in group.iter().zip(out) {
            // At most 127 in size, so that the low byte is the whole number.
            *out = (value * inverse + MAGIC).to_bits() as i8;
            sum += i32::from(*out);
        }
    }
    (scale, sum)
}

/// Widens a half-precision number; exact, infinities and NaN kept.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    // The shifted pattern read as f32 is too small by 2^112, for subnormal halves too.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = if magnitude >= 0x0f80_0000 {
        0x7f80_0000 | (magnitude & 0x007f_ffff)
    } else {
        scaled.to_bits()
    };
    f32::from_bits(special | sign)
}

/// Rounds to half precision, ties to even; too large becomes infinity.
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x7f80_0000 {
        return sign | 0x7c00 | u16::from(magnitude > 0x7f80_0000) << 9;
    }
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: adding 2^-1 · 2^10 aligns the last bit of a half with the last bit of the sum.
        let aligned = (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000;
        return sign | aligned as u16;
    }
    let rounded = magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x3800_0000;
    sign | (rounded >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let wide = f16_to_f32(bits);
            if wide.is_nan() {
                assert!(bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0);
            } else {
                assert_eq!(f32_to_f16(wide), bits, "{bits:#06x} is {wide}");
            }
        }
        assert_eq!(f16_to_f32(0x3c00), 1.0);
        assert_eq!(f16_to_f32(0x0001), 2f32.powi(-24));
        assert_eq!(
            f32_to_f16(1.0 + 2f32.powi(-11)),
            0x3c00,
            "a tie goes to even"
        );
        assert_eq!(f32_to_f16(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
        assert_eq!(f32_to_f16(65520.0), 0x7c00);
    }

    #[test]
    fn halves_stand_beside_their_gates() {
        let layout = Layout::Halves;
        assert_eq!(layout.channel(80, 0, 3), Some(3));
        assert_eq!(layout.channel(80, 0, 19), Some(43));
        assert_eq!(layout.channel(80, 2, 7), Some(39));
        assert_eq!(layout.channel(80, 2, 8), None);
        assert_eq!(layout.panels(80), 3);
    }
}
