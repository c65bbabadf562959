//! LayaModels on the local object API, with an engine in memory.

#![allow(clippy::unwrap_used)]

mod crash;
mod life;
mod sweep;
mod world;
