//! The writes, one file for each thing that is stored.

pub(crate) mod answer;
pub(crate) mod correct;
pub(crate) mod dataset;
pub(crate) mod decision;
pub(crate) mod escalation;
pub(crate) mod event;
pub(crate) mod import;
pub(crate) mod outcome;
pub(crate) mod prune;
pub(crate) mod quota;
pub(crate) mod snapshot;
