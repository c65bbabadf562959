//! SQLite: one thread that writes, a few that read, a file that is looked at before it is used.

mod connection;
mod file;
mod readers;
mod writer;

pub use connection::{File, reason};
pub use file::{Layout, SoleUse, open, open_alone, suspect};
pub use readers::Readers;
pub(crate) use writer::start;

/// What `relay.db` holds.
pub(crate) const LAYOUT: Layout = Layout {
    steps: crate::migrations::SQLITE,
    start_tables: &["relay_counter", "relay_quota"],
    newer_word: "newer",
};
