//! The native engine: checkpoint folders, prompts and tokens, the encoder with its decision head, language detection and
//! the choice between checkpoints (wire.md 8–13, 15). No network, no clock, no async: callers bring threads and time.

pub mod kernels;
