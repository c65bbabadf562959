//! Fakes that tests of several crates share: a Laya server that fails on demand, and an engine in
//! memory. Never a dependency of a program;
//! a fake that cannot be set up panics, since that is a failed test.

pub mod backend;
mod laya;

pub use laya::{FakeLaya, Fault, Says, Seen};
