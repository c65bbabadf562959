//! The program against the object API of a laptop: the real store, on the daemon's socket, in this process. Status is
//! written by the test, since no controller runs.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

#[path = "../cli/support.rs"]
mod support;

mod api;
mod machine;
mod models;
mod rollouts;
mod verbs;
