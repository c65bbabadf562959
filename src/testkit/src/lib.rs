//! Fakes that tests of several crates share: a Laya server, a file server and an OCI registry that fail on demand, an
//! engine in memory, and a proxy on a Unix socket that hangs, goes silent and cuts. Never a dependency of a program; a fake
//! that cannot be set up panics, since that is a failed test.

#[cfg(feature = "backend")]
pub mod backend;
pub mod files;
mod laya;
pub mod registry;
mod site;
mod socket_proxy;

pub use laya::{Answers, FakeLaya, Fault, Says, Seen};
pub use site::SiteFault;
pub use socket_proxy::{Passing, SocketProxy};
