//! What a router reports of each revision of a LayaServer (control-plane 10): `GET /v1/internal/revisions`, for the
//! controller alone. Counters since the revision got traffic in this process; they never fall while it lives.

use serde::{Deserialize, Serialize};

/// Answer of `GET /v1/internal/revisions`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RevisionReports {
    /// Random at each start of the router: other counters than before.
    pub instance: String,
    /// LayaServer that is followed, as `namespace/name`.
    pub server: String,
    /// `status.traffic.generation` in force.
    pub traffic_generation: i64,
    /// One entry per revision that has, or had, traffic.
    pub revisions: Vec<RevisionReport>,
}

/// What was seen of one revision.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RevisionReport {
    /// The revision.
    pub revision: String,
    /// Requests that were answered or not; shadow copies are not counted here.
    pub requests: u64,
    /// Those that failed at the server: refused, broken, malformed, 5xx but 503.
    pub errors: u64,
    /// Those that ran into the deadline.
    pub timeouts: u64,
    /// Those turned away: 429, 503.
    pub rejections: u64,
    /// Median latency of the last requests, milliseconds.
    pub p50_millis: Option<u32>,
    /// 95th percentile.
    pub p95_millis: Option<u32>,
    /// Shadow copies that were compared.
    pub comparisons: u64,
    /// Those whose answers differ from the champion's in a label.
    pub disagreements: u64,
    /// Requests under way now.
    pub in_flight: u64,
}
