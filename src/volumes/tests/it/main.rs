//! Volumes against servers that break as they are told, over real sockets and real folders.

// Helpers too; a set-up that fails is a failed test.
#![allow(clippy::unwrap_used)]

mod crash;
mod folder;
mod http;
mod interleaving;
mod oci;
mod prune;
mod repair;
mod space;
mod support;
mod verify;
