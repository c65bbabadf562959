//! What reconcilers of models and servers are given of the engine.

use std::sync::Arc;

use backend::Backend;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::sweep::UnclaimedOwners;
use crate::doomed::Doomed;
use crate::own_addresses::OwnAddresses;
use crate::reports::RevisionReader;

/// The engine of a process, and what a program decides about it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Where models lie and servers run.
    pub backend: Arc<dyn Backend>,
    /// Image of servers and tasks whose spec names none.
    pub laya_image: String,
    /// Trained models that are kept, the champion counted: at least 1 (`models.keepTrained`, 3).
    pub keep_trained: usize,
    /// Which objects this store remembers as deleted.
    pub tombstones: Arc<dyn Tombstones>,
    /// Where owners that the store has never known are listed, for `relayctl status`.
    pub unclaimed: UnclaimedOwners,
    /// What a router measures of each revision; [`crate::reports::NoReports`] without one.
    pub reports: Arc<dyn RevisionReader>,
    /// Where the router of this process and its daemon listen: nothing that `spec.external` may name.
    pub own_addresses: OwnAddresses,
    /// Checkpoints that this process deletes by hand right now: no fetch may build on them.
    pub doomed: Doomed,
}

/// Remembers deleted objects for 30 days (control-plane 1.4).
pub trait Tombstones: std::fmt::Debug + Send + Sync {
    /// Whether children of a deleted object are swept here at all: not in a cluster, whose API server collects its own
    /// garbage and remembers nobody.
    fn sweeps(&self) -> bool;

    /// Whether the store once had an object of this uid and has deleted it.
    ///
    /// # Errors
    /// Why that is not known now, for the log; nothing is swept then.
    fn was_deleted<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, Result<bool, String>>;
}

/// Of a cluster: nothing is swept.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTombstones;

impl Tombstones for NoTombstones {
    fn sweeps(&self) -> bool {
        false
    }

    fn was_deleted<'a>(&'a self, _uid: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        std::future::ready(Ok(false)).boxed()
    }
}
