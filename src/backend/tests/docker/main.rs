//! The Docker back end on a real engine. `cargo xtask test` builds the fault image, starts an engine of our own and runs
//! these with `--ignored`; by themselves they need `DOCKER_HOST` and `RELAY_FAULT_IMAGE`.

#![allow(clippy::unwrap_used)]

mod broken;
mod engine;
mod gone;
mod harness;
mod image;
mod instance;
mod limits;
mod pulls;
mod servers;
mod strangers;
mod tasks;
