//! Laya as a service: its HTTP surface over the engine (wire.md 2–7, 13), the checkpoints in memory, and the command line
//! of program `laya`. What a question means is crate `decision`'s, what a checkpoint computes crate `laya`'s.

pub mod batch;
pub mod cli;
pub mod decide;
pub mod host;
pub mod http;
pub mod metrics;
pub mod parity;
pub mod readiness;
pub mod registry;
pub mod server;
pub mod settings;
pub mod source;
