//! What must not be lost when something around the store breaks (engineering.md 14).

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../conformance/engines.rs"]
mod engines;
#[allow(dead_code)]
#[path = "../conformance/fixtures.rs"]
mod fixtures;

mod bounds;
mod disk;
mod files;
mod kill;
mod server;
mod wait;
