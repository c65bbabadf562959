//! The arithmetic under the engine: matrix products with packed weights, attention, and the row-wise passes around
//! them, each with a path per instruction set chosen at run time. It knows slices and shapes; it knows no tensor names,
//! no layers, no tokens. One of the two modules that may use `unsafe` (the other is [`crate::mmap`]), because vector
//! loads and tiles written by several threads into one buffer cannot be said otherwise; everything it offers is safe.
//!
//! One order of summation everywhere: an element of a product is one chain of multiply-adds over `k`, whatever the tile
//! it falls into, so that a row's numbers never depend on the rows beside it (wire.md 13.1).
#![allow(unsafe_code)]

mod arith;
mod attention;
mod buffer;
mod gemm;
mod level;
mod pack;
mod rowwise;
mod tile;

pub(crate) use attention::{Attention, Rope, Scratch, Span, attend};
pub(crate) use buffer::Buffer;
pub(crate) use gemm::{Activation, Epilogue, Quantized, product_f32, product_i8};
pub(crate) use level::Level;
pub use level::{CpuFeatures, UnsupportedCpu};
pub(crate) use pack::{Layout, PackedF32, PackedI8, f16_to_f32, f32_to_f16};
pub(crate) use rowwise::{layer_norm, layer_norm_bytes, quantize};

/// Columns of a packed panel of weights, and of a tile.
pub(crate) const PANEL: usize = 32;
/// Most rows of a tile.
pub(crate) const TILE_ROWS: usize = 12;
