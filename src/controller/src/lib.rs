//! Reconcilers: what makes objects true (control-plane 7). A pass is `check → observe → plan → act → write status`; one
//! folder a kind; `plan` is pure. The object source is a `kube::Client`, of an API server or of the local object API, and
//! everything here is the same for both. [`Controller`] runs all of them; [`follow`] is what a router uses to have the
//! policy in force and the servers behind it.

pub mod backoff;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod context;
mod controller;
mod doomed;
pub mod driver;
pub mod events;
pub mod failure;
pub mod faults;
pub mod fence;
pub mod follow;
pub mod layamodel;
pub mod layaserver;
pub mod merge;
pub mod metrics;
mod own_addresses;
pub mod probe;
pub mod queue;
pub mod reconciler;
pub mod recorded;
pub mod reports;
pub mod routingpolicy;
pub mod schema;
pub mod status_writer;
mod stored;
pub mod view;
pub mod watched;
pub mod wording;

pub use context::Namespaces;
pub use controller::{
    Controller, ControllerParts, Engine, NoTombstones, Tombstones, Unclaimed, UnclaimedOwners,
};
pub use doomed::{Doomed, DoomedGuard};
pub use own_addresses::OwnAddresses;
