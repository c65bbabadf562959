//! Programs against each other, as people run them: `relay route` with a router, without one, and with something that
//! only looks like one. Every test has its own home and port 0.

#![allow(clippy::unwrap_used)]

mod adopted;
mod conversation;
mod crash;
mod documents;
mod ending;
mod explain;
mod impostors;
mod laptop;
mod output_closed;
mod policy;
mod privacy;
#[path = "../programs/mod.rs"]
mod programs;
mod records;
mod refusals;
mod relayctl;
mod same_result;
mod shared;
