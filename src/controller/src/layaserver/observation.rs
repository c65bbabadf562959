//! What a pass over a LayaServer knows: the object with what it references, from caches ([`Checked`]), and what the world
//! shows ([`Observation`]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use api::kinds::LayaServer;
use api::kinds::laya_model::ModelLocation;
use backend::{BackendError, Capabilities, Observed, RevisionInputs};
use jiff::Timestamp;

use crate::probe::ReplicaProbe;
use crate::reconciler::Evidence;

/// The object and what it references.
#[derive(Debug, Clone)]
pub struct Checked {
    /// LayaModels that spec or status name, by name. One that is missing does not exist.
    pub models: BTreeMap<String, ModelView>,
    /// Promotions of TrainingRuns that are due for this server, oldest first.
    pub promotions: Vec<Promotion>,
    /// What the gate of `rollout.gateRef` says of the candidate.
    pub gate: GateView,
    /// What the back end can do.
    pub capabilities: Capabilities,
    /// Image of servers whose spec names none.
    pub default_image: String,
    /// Revision inputs that are stored for this object, by revision.
    pub documents: BTreeMap<String, RevisionInputs>,
    /// Uids of those documents, by revision: what a removal names.
    pub document_uids: BTreeMap<String, String>,
    /// Uids of the documents that keep the end of the log of what was taken back, by revision.
    pub logs: BTreeMap<String, String>,
    /// Revisions whose document cannot be stored, since something else has its name.
    pub taken: BTreeSet<String>,
    /// The address of this program that `spec.external.url` means, which it must not.
    pub own_address: Option<SocketAddr>,
}

/// What a pass needs of a LayaModel.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelView {
    /// Its name.
    pub name: String,
    /// Whether it is Ready.
    pub ready: bool,
    /// Why not, of its condition `Ready`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Checkpoint digest, once known.
    pub digest: Option<String>,
    /// Contract digest, where it names one.
    pub contract: Option<String>,
    /// Bytes of all files.
    pub size_bytes: u64,
    /// Where the files are.
    pub location: Option<ModelLocation>,
    /// Whether its source is a volume that is not ours.
    pub foreign_volume: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When it was hashed last.
    pub verified_at: Option<Timestamp>,
}

/// A TrainingRun whose model is to serve here (control-plane 3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Name of the run.
    pub run: String,
    /// Name of the model it made.
    pub model: String,
    /// When it became due.
    pub due_at: Timestamp,
}

/// What a gate says of a candidate. Nothing judges until the training issue: with a `gateRef` it is `NotJudged`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateView {
    /// No `gateRef`.
    None,
    /// The gate does not exist.
    NotFound {
        /// Its name.
        name: String,
    },
    /// Not judged yet.
    NotJudged {
        /// Its name.
        name: String,
    },
    /// Judged.
    Judged {
        /// Its name.
        name: String,
        /// Checkpoint digest that was judged.
        digest: String,
        /// Id of the evaluation.
        evaluation: String,
        /// What it said.
        verdict: GateVerdict,
        /// For people: the question and slice that failed, or why it is inconclusive.
        message: String,
    },
}

/// What a gate said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// It may serve.
    Passed,
    /// It may not.
    Failed,
    /// There was too little to judge by.
    Inconclusive,
    /// Judging failed.
    Error,
}

/// What the world shows.
#[derive(Debug, Clone)]
pub struct Observation {
    /// What the engine shows, or why nothing is known.
    pub engine: Result<Observed, BackendError>,
    /// What the replicas that have an address say, of this process's prober.
    pub replicas: Vec<ReplicaProbe>,
    /// What the external server says, with `spec.external`.
    pub external: Option<ReplicaProbe>,
    /// What the router measured, or why that is not known.
    pub report: Result<api::revisions::RevisionReports, String>,
    /// How long this process has seen things as they are.
    pub ages: Ages,
}

impl Evidence for Observation {}

/// For how long this process has known a fact, by the boot-time clock, so that a jump of the wall clock cannot make a
/// deadline pass: it has passed when the wall clock says so and this does not contradict it (control-plane 7.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ages {
    /// Age of this process.
    pub process: Duration,
    /// Age of each fact that was first seen by this process while it ran; by a key of the plan's choosing.
    pub facts: BTreeMap<String, Duration>,
}

/// The durable starts in a status, as keys of [`Ages::facts`]: what `observe` keeps the ages of.
#[must_use]
pub fn fact_keys(server: &LayaServer) -> Vec<String> {
    let Some(status) = &server.status else {
        return Vec::new();
    };
    let mut keys = Vec::new();
    let mut push = |name: &str, at: Option<Timestamp>| {
        if let Some(at) = at {
            keys.push(format!("{name}@{at}"));
        }
    };
    if let Some(rollout) = &status.rollout {
        push("rollout", rollout.started_at);
        push("step", rollout.step_started_at);
    }
    if let Some(restarts) = &status.restarts {
        push("restarts", restarts.since);
        push("restart", restarts.last_at);
    }
    push("wish", status.wish.as_ref().and_then(|wish| wish.since));
    push(
        "champion",
        status.champion.as_ref().and_then(|version| version.since),
    );
    push(
        "candidate",
        status.candidate.as_ref().and_then(|version| version.since),
    );
    keys
}
