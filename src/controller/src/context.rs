//! What every kind is reconciled with; made once, in the program.

use std::sync::Arc;

use kube::Client;
use service::telemetry::trace::Traces;

use crate::clock::Clock;
use crate::events::Events;
use crate::faults::FaultPoints;
use crate::fence::Fence;
use crate::metrics::ControllerMetrics;
use crate::status_writer::StatusWriter;

/// Which namespaces are reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them; needs cluster-wide rights.
    All,
    /// These, each with a watch of its own.
    Only(Vec<String>),
}

impl Namespaces {
    /// One entry per watch; `None` sees all.
    #[must_use]
    pub fn watches(&self) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Only(names) => names.iter().cloned().map(Some).collect(),
        }
    }

    /// Whether objects of this one are seen.
    #[must_use]
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == namespace),
        }
    }
}

/// What every kind is reconciled with.
pub struct Context {
    /// The object API, by [`crate::client::guarded`].
    pub client: Client,
    /// Where.
    pub namespaces: Namespaces,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The right to write.
    pub fence: Fence,
    /// Where a test may stop.
    pub faults: FaultPoints,
    /// Writes statuses.
    pub writer: StatusWriter,
    /// Publishes events.
    pub events: Events,
    /// Counts.
    pub metrics: ControllerMetrics,
    /// Where the spans of passes go.
    pub traces: Traces,
    /// Spreads waits and looks over time; another one in each process.
    pub seed: u64,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}
