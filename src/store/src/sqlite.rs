//! SQLite: one thread that writes, a few that read, a file that is looked at before it is used.

mod connection;
mod file;
mod readers;
mod writer;

pub(crate) use file::open;
pub(crate) use readers::Readers;
pub(crate) use writer::start;
