//! One SQLite file: the objects, the feed of their changes, and who follows it. One thread writes, whole operations at a time;
//! what to write is decided elsewhere.

mod change;
mod feed;
mod job;
pub(crate) mod snapshot;
mod tables;
mod transaction;
mod upkeep;
mod writer;

pub(crate) use change::{Change, Verb};
pub(crate) use feed::{Ended, Feed, Subscription};
pub(crate) use job::Queue;
pub(crate) use snapshot::{Page, Span, Want};
pub(crate) use tables::{LAYOUT, Meta, explain, meta, put_meta};
pub(crate) use transaction::{Counts, Stop, Transaction};
pub(crate) use writer::{Writer, start, transact};
