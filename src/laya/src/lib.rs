//! The native engine: checkpoint folders, prompts and tokens, the encoder with its decision head, language detection and
//! the choice between checkpoints (wire.md 8–13, 15). No network, no clock, no async: callers bring threads and time.

pub mod checkpoint;
mod engine;
mod kernels;
pub mod lang;
mod mmap;
mod model;
pub mod parity;
mod predict;
pub mod probe;
mod prompt;
pub mod route;
mod tokenizer;
pub mod tournament;

#[cfg(test)]
mod golden_tests;

pub use checkpoint::{Checkpoint, CheckpointInfo, LoadError, LoadOptions, Verify};
pub use engine::{Engine, EngineError, EngineOptions, PASS_TOKENS, RunError, plan_passes};
pub use kernels::{CpuFeatures, UnsupportedCpu};
pub use model::{Precision, RowOutput, TokenRow, UnknownPrecision};
pub use predict::{
    Encoded, EncodedRow, Lengths, PredictError, Prediction, decode, encode, predict, temperature,
};
pub use prompt::{Budget, Keep, QuestionTokens, Row, build as build_row};
pub use tokenizer::{Specials, TokenizeError, Tokenizer};
