//! LayaModels and LayaServers on the local object API over the Docker back end and a real engine. `cargo xtask test` builds
//! the images, starts an engine of our own and runs these with `--ignored --skip whole_ --skip bars::`; by themselves they
//! need `DOCKER_HOST`, `RELAY_LAYA_IMAGE` and `RELAY_FAULT_IMAGE`. Each test has an instance of its own.

#![allow(clippy::unwrap_used)]

mod back;
mod backs;
mod bad;
mod bars;
mod crash;
mod gone;
mod hands;
#[path = "../../../backend/tests/docker/instance.rs"]
mod instance;
mod names;
#[path = "../parts/mod.rs"]
mod parts;
mod pulls;
mod strangers;
mod wishes;
mod world;
