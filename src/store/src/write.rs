//! The writes, one file for each thing that is stored.

pub(crate) mod answer;
pub(crate) mod correct;
pub(crate) mod decision;
pub(crate) mod event;
pub(crate) mod outcome;
pub(crate) mod quota;
