//! LayaModels and LayaServers on the local object API, over an engine in memory whose replicas are fake Laya servers on
//! real sockets.

#![allow(clippy::unwrap_used)]

mod bad;
mod bars;
mod crash;
mod life;
#[path = "../parts/mod.rs"]
mod parts;
mod restart;
mod ways;
mod world;
