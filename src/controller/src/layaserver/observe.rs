//! Looking at a server: what is asked of the engine, which replicas are asked by the prober, and how long facts have been
//! known. What is asked for is decided here purely; [`super::LayaServers`] does the asking.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::kinds::laya_server::{RolloutState, ServerApi};
use api::kinds::{LayaServer, LayaServerSpec};
use backend::{Observed, Question, RevisionInputs, RunState, VolumeRole};

use super::inputs::versions;
use super::observation::{Ages, Checked, fact_keys};
use crate::probe::{Pace, QuestionSet, RecordedProbe, Replica, ReplicaProbe};

/// What a pass asks of the engine beside the server's own children.
pub(super) fn question(server: &LayaServer, checked: &Checked) -> Question {
    let wanted = server.spec.image.as_ref();
    let mut images = vec![wanted.unwrap_or(&checked.default_image).clone()];
    let status = server.status.as_ref();
    for version in status.into_iter().flat_map(versions) {
        images.extend(version.image.clone());
        images.extend(version.image_id.clone());
    }
    images.retain(|image| !image.is_empty());
    images.sort();
    images.dedup();
    let foreign = checked.models.values().filter(|model| model.foreign_volume);
    let foreign = foreign.filter_map(|model| model.location.as_ref()?.volume.clone());
    let foreign = foreign.map(|name| VolumeRole::Foreign { name });
    Question {
        images,
        volumes: std::iter::once(VolumeRole::Models).chain(foreign).collect(),
    }
}

/// Whether a pass decides by what a router measured.
pub(super) fn needs_report(server: &LayaServer) -> bool {
    let rollout = server
        .status
        .as_ref()
        .and_then(|status| status.rollout.as_ref());
    let state = rollout.and_then(|rollout| rollout.state);
    state.is_some_and(|state| state != RolloutState::Done)
}

/// How much hurry there is with the replicas of a server.
fn pace(server: &LayaServer) -> Pace {
    let status = server.status.as_ref();
    let waits = needs_report(server) || status.is_none_or(|status| status.champion.is_none());
    if waits { Pace::Rollout } else { Pace::Steady }
}

/// The replicas to be asked: all that run and have an address. `questions` knows the wording of contracts, `recorded` what
/// checkpoints must answer.
pub(super) fn replicas(
    server: &LayaServer,
    checked: &Checked,
    observed: &Observed,
    questions: impl Fn(&str) -> Option<Arc<QuestionSet>>,
    recorded: impl Fn(&str) -> Arc<[RecordedProbe]>,
) -> Vec<Replica> {
    let pace = pace(server);
    let running = observed
        .servers
        .iter()
        .filter(|seen| seen.state == RunState::Running);
    let watched = running.filter_map(|seen| {
        let url = seen.url.clone()?;
        let stored = checked.documents.get(&seen.revision);
        let inputs = stored.or(seen.inputs.as_ref());
        let wanted = Wanted::of(inputs, server);
        let mut replica = wanted.replica(
            &server.spec,
            &seen.revision,
            seen.ordinal,
            url,
            pace,
            &questions,
        );
        if let Some(checkpoint) = &replica.digest {
            replica.recorded = recorded(checkpoint);
        }
        Some(replica)
    });
    watched.collect()
}

/// The external server as a replica; `known` is what it said before.
pub(super) fn external(
    server: &LayaServer,
    known: Option<&ReplicaProbe>,
    questions: impl Fn(&str) -> Option<Arc<QuestionSet>>,
) -> Option<Replica> {
    let url = server.spec.external.as_ref()?.url.trim_end_matches('/');
    // It names what it serves, and is asked in that wording; nobody wished for another.
    let contract = known.and_then(|known| known.contract.clone());
    let wanted = Wanted {
        digest: None,
        contract,
        server_api: server.spec.server_api,
    };
    let url = url.to_owned();
    let mut replica = wanted.replica(&server.spec, "", 0, url, pace(server), &questions);
    replica.contract = None;
    Some(replica)
}

/// What a replica should be.
struct Wanted {
    digest: Option<String>,
    contract: Option<String>,
    server_api: ServerApi,
}

impl Wanted {
    fn of(inputs: Option<&RevisionInputs>, server: &LayaServer) -> Self {
        Self {
            digest: inputs.map(|inputs| inputs.digest.clone()),
            contract: inputs.and_then(|inputs| inputs.contract.clone()),
            server_api: inputs.map_or(server.spec.server_api, |inputs| inputs.server_api),
        }
    }

    fn replica(
        self,
        spec: &LayaServerSpec,
        revision: &str,
        ordinal: u32,
        url: String,
        pace: Pace,
        questions: &impl Fn(&str) -> Option<Arc<QuestionSet>>,
    ) -> Replica {
        let set = match &self.contract {
            Some(contract) => questions(contract),
            // A checkpoint that names none is taken to be ours (control-plane 2).
            None => Some(QuestionSet::ours()),
        };
        let seconds = u64::try_from(spec.probe.interval_seconds).unwrap_or(60);
        let millis = u64::try_from(spec.probe.timeout_millis).unwrap_or(5_000);
        Replica {
            revision: revision.to_owned(),
            ordinal,
            url,
            server_api: self.server_api,
            digest: self.digest,
            contract: self.contract,
            questions: set,
            recorded: Arc::from([]),
            timeout: Duration::from_millis(millis),
            interval: Duration::from_secs(seconds),
            pace,
        }
    }
}

/// How long this process has known the durable starts of each server, by the boot-time clock.
#[derive(Debug)]
pub(super) struct FactAges {
    /// When this process began.
    began: Duration,
    /// First sight of each fact, by uid of its server; none of those that were there when the server was first looked at,
    /// since nobody knows how old they were.
    first: Mutex<HashMap<String, BTreeMap<String, Option<Duration>>>>,
}

impl FactAges {
    pub(super) fn new(began: Duration) -> Self {
        Self {
            began,
            first: Mutex::default(),
        }
    }

    /// The ages of the facts that a server has now. Facts it has no more are forgotten.
    pub(super) fn of(&self, uid: &str, server: &LayaServer, boot: Duration) -> Ages {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let before = first.remove(uid);
        let now: BTreeMap<_, _> = fact_keys(server)
            .into_iter()
            .map(|key| {
                let seen = match &before {
                    Some(before) => before.get(&key).copied().unwrap_or(Some(boot)),
                    None => None,
                };
                (key, seen)
            })
            .collect();
        let facts = now
            .iter()
            .filter_map(|(key, seen)| Some((key.clone(), boot.saturating_sub((*seen)?))))
            .collect();
        first.insert(uid.to_owned(), now);
        Ages {
            process: boot.saturating_sub(self.began),
            facts,
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.remove(uid);
    }
}

#[cfg(test)]
mod tests;
