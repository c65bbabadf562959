//! Servers as numbers: gauges from the objects as they are cached, and rollouts as they end (control-plane 15).

use std::collections::{HashMap, HashSet};

use api::condition::ConditionType;
use api::kinds::laya_server::{RolloutRecord, RolloutState, Strategy, Version};
use api::kinds::{ConditionStatus, LayaServer};
use kube::ResourceExt;

use super::reconciler::server_id;
use crate::conditions::find;
use crate::merge::Change;
use crate::metrics::{RolloutEnded, ServerGauge};
use crate::probe::Prober;
use crate::queue::Key;
use crate::watched::Watched;

/// Tells the gauges of a server: which, the role for those that have one, and the value.
pub fn gauges_of(
    server: &LayaServer,
    prober: &Prober,
    gauge: &mut dyn FnMut(ServerGauge, [&str; 3], f64),
) {
    let (namespace, name) = (server.namespace().unwrap_or_default(), server.name_any());
    let mut tell = |which, role: &str, value| gauge(which, [&namespace, &name, role], value);
    let status = server.status.clone().unwrap_or_default();
    let wanted = if server.spec.suspend {
        0
    } else if server.spec.external.is_some() {
        1
    } else {
        server.spec.replicas
    };
    tell(ServerGauge::ReplicasWanted, "", f64::from(wanted));
    let ready = status.ready_replicas.unwrap_or(0);
    tell(ServerGauge::ReplicasReady, "", f64::from(ready));
    let holds = |kind| match find(&status.conditions, kind)?.status {
        ConditionStatus::True => Some(1.0),
        ConditionStatus::False => Some(0.0),
        ConditionStatus::Unknown => None,
    };
    for (which, kind) in [
        (ServerGauge::DeviceMatched, ConditionType::DeviceMatched),
        (ServerGauge::RollbackReady, ConditionType::RollbackReady),
    ] {
        if let Some(value) = holds(kind) {
            tell(which, "", value);
        }
    }
    let state = status.rollout.as_ref().and_then(|rollout| rollout.state);
    let active = state.is_some_and(|state| state != RolloutState::Done);
    tell(ServerGauge::RolloutActive, "", f64::from(u8::from(active)));
    let id = server_id(server);
    let revision = |version: &Option<Version>| version.as_ref()?.revision.clone();
    for (role, revision) in [
        ("champion", revision(&status.champion)),
        ("candidate", revision(&status.candidate)),
    ] {
        let latency = revision.and_then(|revision| prober.latency(&id, &revision));
        if let Some(latency) = latency {
            tell(ServerGauge::ProbeLatency, role, latency.as_secs_f64());
        }
    }
}

/// Which rollouts of each server are known to have ended. What ended before this process saw the server is not counted.
#[derive(Debug, Default)]
pub struct Endings(HashMap<Key, HashSet<String>>);

impl Endings {
    /// Takes a change: the rollouts that have ended since the one before.
    pub fn changed(&mut self, change: &Change<Watched<LayaServer>>) -> Vec<RolloutEnded> {
        match change {
            Change::Deleted(server) => {
                self.0.remove(&Key::of(server.as_ref()));
                Vec::new()
            }
            Change::Applied(server) => match server.as_ref() {
                Watched::Parsed(server) => self.ended(server),
                Watched::Unparsed(_) => Vec::new(),
            },
        }
    }

    fn ended(&mut self, server: &LayaServer) -> Vec<RolloutEnded> {
        let history = server
            .status
            .as_ref()
            .map(|status| status.history.as_slice());
        let history = history.unwrap_or_default();
        let now = history.iter().filter_map(|record| record.id.clone());
        let Some(known) = self.0.insert(Key::of(server), now.collect()) else {
            return Vec::new();
        };
        let strategy = strategy(server.spec.rollout.strategy);
        let is_new =
            |record: &&RolloutRecord| record.id.as_ref().is_some_and(|id| !known.contains(id));
        let ended = history.iter().filter(is_new);
        ended.filter_map(|record| count(strategy, record)).collect()
    }
}

fn count(strategy: &'static str, record: &RolloutRecord) -> Option<RolloutEnded> {
    let outcome = record.outcome.as_deref()?;
    let outcome = RolloutEnded::OUTCOMES
        .into_iter()
        .find(|word| *word == outcome)?;
    let took = record.finished_at?.duration_since(record.started_at?);
    Some(RolloutEnded {
        strategy,
        outcome,
        seconds: took.as_secs_f64().max(0.0),
    })
}

const fn strategy(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::BlueGreen => "BlueGreen",
        Strategy::Canary => "Canary",
        Strategy::Shadow => "Shadow",
        Strategy::Replace => "Replace",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn server(history: &Value) -> Change<Watched<LayaServer>> {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {"name": "main", "namespace": "space"},
            "spec": {"modelRef": {"name": "v1"}}, "status": {"history": history},
        });
        Change::Applied(Arc::new(serde_json::from_value(object).unwrap()))
    }

    fn record(id: &str, outcome: &str) -> Value {
        json!({"id": id, "outcome": outcome, "startedAt": "2026-11-30T10:00:00Z", "finishedAt": "2026-11-30T10:01:30Z"})
    }

    #[test]
    fn a_rollout_is_counted_once_when_it_ends() {
        let mut endings = Endings::default();
        let old = record("1", "Promoted");
        assert_eq!(
            endings.changed(&server(&json!([old]))),
            [],
            "before our time"
        );
        let new = server(&json!([
            record("2", "RolledBack"),
            old,
            record("3", "Invented")
        ]));
        let ended = RolloutEnded {
            strategy: "BlueGreen",
            outcome: "RolledBack",
            seconds: 90.0,
        };
        assert_eq!(endings.changed(&new), [ended]);
        assert_eq!(endings.changed(&new), []);
        let Change::Applied(gone) = new.clone() else {
            panic!()
        };
        assert_eq!(endings.changed(&Change::Deleted(gone)), []);
        assert_eq!(endings.changed(&new), [], "a new one of the name");
    }
}
