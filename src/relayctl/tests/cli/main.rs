//! The program as people and scripts see it: output, talk, exit codes. An API that misbehaves is scripted; one that works
//! is tested with the real ones.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod answers;
mod bad_input;
mod contexts;
mod help;
mod scripted;
mod support;
mod versions;
