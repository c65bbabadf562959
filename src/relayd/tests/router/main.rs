//! `relayd router` as a real process over real sockets: what it answers, what it refuses, how it starts and ends.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod answers;
mod bodies;
mod embedded;
mod ending;
mod followed;
mod limits;
mod objects;
mod servers;
mod serving;
mod starting;
mod support;
mod tokens;
mod traces;
