//! The native engine: checkpoint folders, prompts and tokens, the encoder with its decision head, language detection and
//! the choice between checkpoints (wire.md 8–13, 15). No network, no clock, no async: callers bring threads and time.

pub mod checkpoint;
mod kernels;
mod mmap;
mod model;
mod tokenizer;

pub use checkpoint::{Checkpoint, CheckpointInfo, LoadError, LoadOptions, Verify};
pub use kernels::{CpuFeatures, UnsupportedCpu};
pub use model::{Precision, RowOutput, TokenRow, UnknownPrecision};
pub use tokenizer::{Specials, TokenizeError, Tokenizer};
