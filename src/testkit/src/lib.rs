//! Fakes that tests of several crates share: a Laya server, a file server and an OCI registry that fail on demand, and an
//! engine in memory. Never a dependency of a program; a fake that cannot be set up panics, since that is a failed test.

pub mod backend;
pub mod files;
mod laya;
pub mod registry;
mod site;

pub use laya::{FakeLaya, Fault, Says, Seen};
pub use site::SiteFault;
