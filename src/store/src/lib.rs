//! Where decisions, outcomes, quota, escalations and learned tasks live: a SQLite file of one machine, or a PostgreSQL
//! database that replicas share (design.md 7, routing.md 18). Every statement is written once for both. What an
//! acknowledged write returned is on disk; what nobody waits for is committed with the next group, in order. Everything
//! is by tenant. Decides nothing about routing: what an outcome means is `routing`'s.

mod error;
mod migrations;
mod options;
mod postgres;
mod queue;
mod read;
mod records;
mod sql;
mod sqlite;
mod store;
mod write;

pub use error::{OpenError, StoreError};
pub use options::{Location, Notice, StoreOptions};
pub use records::{
    Changes, Dataset, DatasetEdit, DecisionPage, DecisionQuery, Escalation, Event, Kept,
    ProviderFaultReport, Pruned, Recorded, ReportRow, Retention, RowWrite, Snapshot,
    StoredDecision, StoredOutcome, StoredRow,
};
pub use store::{Opened, Store};

/// How a SQLite file of ours is opened, checked, kept aside and read: also for files of other crates.
pub mod file {
    pub use crate::sqlite::{File, Layout, Readers, SoleUse, open, open_alone, reason, suspect};
}
