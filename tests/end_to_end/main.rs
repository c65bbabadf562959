//! Programs against each other, as people run them: `relay route` with a router, without one, and with something that
//! only looks like one. Every test has its own home and port 0.

#![allow(clippy::unwrap_used)]

mod conversation;
mod documents;
mod ending;
mod explain;
mod impostors;
mod output_closed;
mod programs;
mod records;
mod refusals;
mod same_result;
