//! The image of program `laya` on a real Docker Engine. `cargo xtask test` builds the image, starts an engine and runs
//! these with `--ignored`; by themselves they need `DOCKER_HOST` and `RELAY_LAYA_IMAGE`.

#![allow(clippy::unwrap_used)]

mod engine;
mod laya_image;
