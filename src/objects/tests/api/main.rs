//! The local object API from outside: raw requests and `kube::Client` over a store in a temporary folder.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod apply;
mod crud;
mod disk;
mod faults;
mod hostile;
mod limits;
mod props;
mod shown;
mod support;
mod typed;
mod watching;
