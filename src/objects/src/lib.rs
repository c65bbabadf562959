//! The local object API (control-plane 9): the Kubernetes API, as far as Relay uses it, over one SQLite file. Everything
//! that decides is a pure function: [`schema`] what is allowed, [`fields`] who owns what, [`patch`] what a patch makes, and
//! inside `write` what a request does to an object. `database` (the file, one thread that writes, the feed of changes) and
//! `rest` (paths, lists, watches, tables, discovery) are the edge. [`ObjectStore`] opens the file; [`ObjectService`] is what
//! `kube::Client` and servers talk to.

mod catalog;
mod database;
mod depth;
mod failure;
pub mod fields;
pub mod listen;
mod operation;
mod options;
pub mod patch;
mod rest;
pub mod schema;
mod store;
mod write;

pub use catalog::CatalogError;
pub use options::{Clock, Notice, ObjectStoreOptions, OpenError};
pub use rest::{KeptUid, ObjectBody, ObjectService};
pub use store::{ObjectStore, Opened, ReadError};
pub use write::metadata_faults;
