//! PostgreSQL: one task that writes, a few connections that read, and a server that may be away at any time.

mod address;
mod connection;
mod migrate;
mod readers;
mod writer;

pub(crate) use address::Address;
pub(crate) use connection::Connected;
pub(crate) use readers::{Readers, give_up_lead};
pub(crate) use writer::{Writer, start};

/// Keys of advisory locks: "relay" and a number. Each database has its own.
mod lock {
    /// Held while the database is brought up to date.
    pub(super) const MIGRATE: i64 = 0x7265_6c61_7901;
    /// Held by the one process that prunes.
    pub(super) const LEAD: i64 = 0x7265_6c61_7902;
}
