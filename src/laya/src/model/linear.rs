//! The seam between precisions: a packed linear layer that knows how its weights are stored, and the operand that brings
//! activations into the form which that layer wants. Nothing above this file asks which precision it runs in.

use crate::kernels::{
    Activation, Buffer, Epilogue, Layout, Level, PackedF32, PackedI8, Quantized, layer_norm,
    layer_norm_bytes, product_f32, product_i8, quantize,
};

use super::{Norm, Precision};

/// y = x · Wᵀ + b with packed W.
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Vec<f32>>,
}

enum Weight {
    F32(PackedF32),
    Int8(PackedI8),
}

impl Linear {
    /// Packs `[n, k]`; `row(channel, out)` yields one row of it.
    pub(crate) fn pack(
        precision: Precision,
        n: usize,
        k: usize,
        layout: Layout,
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Self {
        let weight = match precision {
            Precision::F32 => Weight::F32(PackedF32::new(n, k, layout, row)),
            Precision::Int8 => Weight::Int8(PackedI8::new(n, k, layout, row)),
        };
        Self { weight, bias: None }
    }

    /// The same with a bias.
    pub(crate) fn with_bias(mut self, bias: Vec<f32>) -> Self {
        self.bias = Some(bias);
        self
    }

    /// The product of all rows of `x`, finished by `activation`, into `out` with stride `ldo`.
    pub(crate) fn apply(
        &self,
        level: Level,
        x: &Operand,
        activation: Activation,
        out: (&mut [f32], usize),
    ) {
        let epilogue = Epilogue {
            bias: self.bias.as_deref(),
            activation,
        };
        match &self.weight {
            Weight::F32(weight) => {
                product_f32(level, (&x.values, x.stride), x.rows, weight, epilogue, out)
            }
            Weight::Int8(weight) => product_i8(level, &x.bytes, weight, epilogue, out),
        }
    }

    /// Memory of the weights.
    pub(crate) fn held_bytes(&self) -> usize {
        let bias = self.bias.as_ref().map_or(0, |b| b.len() * 4);
        bias + match &self.weight {
            Weight::F32(weight) => weight.held_bytes(),
            Weight::Int8(weight) => weight.held_bytes(),
        }
    }
}

/// Activations on their way into a [`Linear`]: f32 rows, or bytes with a scale per row.
pub(crate) struct Operand {
    precision: Precision,
    rows: usize,
    width: usize,
    stride: usize,
    values: Buffer<f32>,
    bytes: Quantized,
}

impl Operand {
    pub(crate) fn new(precision: Precision) -> Self {
        Self {
            precision,
            rows: 0,
            width: 0,
            stride: 0,
            values: Buffer::zeroed(0),
            bytes: Quantized::new(),
        }
    }

    /// Rows of `width` values apart by a stride that does not fall on the same cache sets row after row.
    const fn stride_of(width: usize) -> usize {
        width.next_multiple_of(16) + 16
    }

    fn reshape(&mut self, rows: usize, width: usize, values: bool) {
        (self.rows, self.width, self.stride) = (rows, width, Self::stride_of(width));
        if values {
            self.values.resize(rows * self.stride);
        }
        if self.precision == Precision::Int8 {
            self.bytes.reshape(rows, width);
        }
    }

    /// Takes the normalised rows of `x`.
    pub(crate) fn normalize(
        &mut self,
        level: Level,
        (x, ldx): (&[f32], usize),
        rows: usize,
        norm: &Norm,
    ) {
        let (width, bias) = (norm.weight.len(), norm.bias.as_deref());
        self.reshape(rows, width, self.precision == Precision::F32);
        match self.precision {
            Precision::F32 => {
                layer_norm(
                    level,
                    (x, ldx),
                    &norm.weight,
                    bias,
                    norm.eps,
                    (&mut self.values, self.stride),
                    rows,
                );
            }
            Precision::Int8 => layer_norm_bytes(
                level,
                (x, ldx),
                &norm.weight,
                bias,
                norm.eps,
                &mut self.bytes,
            ),
        }
    }

    /// Takes rows that `fill(values, stride)` writes.
    pub(crate) fn fill(
        &mut self,
        level: Level,
        rows: usize,
        width: usize,
        fill: impl FnOnce(&mut [f32], usize),
    ) {
        self.reshape(rows, width, true);
        fill(&mut self.values, self.stride);
        if self.precision == Precision::Int8 {
            quantize(level, (&self.values, self.stride), width, &mut self.bytes);
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.values.held_bytes() + self.bytes.held_bytes()
    }

    /// Memory that `rows` rows of `width` take at most.
    pub(crate) const fn bound(rows: usize, width: usize) -> usize {
        rows * (Self::stride_of(width) * 4 + width + 136)
    }
}
