//! Fakes that tests of several crates share: so far a Laya server that fails on demand. Never a dependency of a program;
//! a fake that cannot be set up panics, since that is a failed test.

mod laya;

pub use laya::{FakeLaya, Fault, Says, Seen};
