//! The reads, one file for each thing that is stored.

pub(crate) mod changes;
pub(crate) mod decision;
