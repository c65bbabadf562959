//! The image of program `laya`, and a laptop's programs, on a real Docker Engine. `cargo xtask test` builds the image, starts
//! an engine and runs these with `--ignored`; by themselves they need `DOCKER_HOST` and `RELAY_LAYA_IMAGE`.

#![allow(clippy::unwrap_used)]

mod engine;
mod laptop;
mod laya_image;
#[path = "../programs/mod.rs"]
mod programs;
