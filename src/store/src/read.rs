//! The reads, one file for each thing that is stored.

pub(crate) mod changes;
pub(crate) mod dataset;
pub(crate) mod decision;
pub(crate) mod escalation;
pub(crate) mod page;
pub(crate) mod prune;
pub(crate) mod report;
pub(crate) mod snapshot;
