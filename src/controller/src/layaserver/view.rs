//! What a pass looks at ([`View`], never changed) and what it writes ([`Draft`]).

use std::time::Duration;

use api::event::EventReason;
use api::kinds::laya_server::{RolloutProgress, RolloutState, Version};
use api::kinds::{LayaServer, LayaServerSpec, LayaServerStatus};
use api::reason::Reason;
use backend::{Observed, ServerSpec};
use jiff::Timestamp;

use super::action::Action;
use super::cut::Cut;
use super::deadline::Clocks;
use super::observation::{Checked, Observation};
use super::replicas::{Replica, Replicas};
use super::revision;
use crate::reconciler::EventDraft;

/// Seconds, beyond those that a replica must be ready, in which a process has asked all that runs.
const YOUNG_SECONDS: u64 = 60;

/// Everything a pass decides by.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) object: &'a LayaServer,
    pub(super) spec: &'a LayaServerSpec,
    pub(super) cut: Cut,
    pub(super) checked: &'a Checked,
    pub(super) seen: &'a Observation,
    /// What runs; only where all of it was seen.
    pub(super) observed: Option<&'a Observed>,
    pub(super) clocks: Clocks<'a>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        object: &'a LayaServer,
        checked: &'a Checked,
        seen: &'a Observation,
        clocks: Clocks<'a>,
    ) -> Self {
        Self {
            object,
            spec: &object.spec,
            cut: Cut::of(&object.spec, &checked.capabilities),
            checked,
            seen,
            observed: seen.engine.as_ref().ok().filter(|seen| seen.complete),
            clocks,
        }
    }

    /// Whether this process has had no time yet to ask what runs: what it does not know then speaks against nobody.
    pub(super) fn is_young(&self) -> bool {
        let ready = u64::try_from(self.spec.rollout.min_ready_seconds).unwrap_or(0);
        self.seen.ages.process < Duration::from_secs(YOUNG_SECONDS.saturating_add(ready))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clocks.now
    }

    /// Replicas of a revision, with what asking them showed.
    pub(super) fn replicas(&self, revision: &str) -> Replicas<'a> {
        let servers = self.observed.iter().flat_map(|observed| {
            observed
                .servers
                .iter()
                .filter(|server| server.revision == revision)
        });
        let probes = &self.seen.replicas;
        Replicas::new(servers.map(|seen| Replica::new(seen, probes)).collect())
    }

    /// Replicas of a version; none without one.
    pub(super) fn replicas_of(&self, version: Option<&Version>) -> Replicas<'a> {
        match super::facts::revision(version) {
            Some(revision) => self.replicas(revision),
            None => Replicas::new(Vec::new()),
        }
    }

    /// How a version is rendered: from its stored document, never from spec; `None` where something of that is missing.
    pub(super) fn server(&self, version: &Version) -> Option<ServerSpec> {
        revision::server(self, version).ok()
    }

    pub(super) fn on(&self, action: backend::Action) -> Action {
        Action::on(self.checked.capabilities.name, action)
    }

    /// Whether people were told of this reason already.
    pub(super) fn says(&self, reason: Reason) -> bool {
        let status = self.object.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice());
        let mut conditions = conditions.unwrap_or_default().iter();
        conditions.any(|condition| condition.reason == reason.as_str())
    }

    pub(super) fn drain_seconds(&self) -> u32 {
        u32::try_from(self.spec.rollout.drain_seconds).unwrap_or(0)
    }

    /// Whether one more server of this size fits beside what runs. Where the engine does not say, it is asked by trying.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.observed
            .and_then(|observed| observed.room)
            .is_none_or(|room| room.fits(bytes))
    }
}

/// Why something does not go on, for a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Because {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Because {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// What a pass is going to write and do.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) status: LayaServerStatus,
    pub(super) actions: Vec<Action>,
    pub(super) events: Vec<EventDraft>,
    /// What the rollout, or its start, waits for.
    pub(super) waits: Option<Because>,
}

impl Draft {
    pub(super) fn new(status: LayaServerStatus) -> Self {
        Self {
            status,
            actions: Vec::new(),
            events: Vec::new(),
            waits: None,
        }
    }

    pub(super) fn tell(&mut self, reason: EventReason, note: impl Into<String>) {
        self.events.push(EventDraft {
            reason,
            note: note.into(),
        });
    }

    /// The rollout, which is there while one runs.
    pub(super) fn rollout(&mut self) -> &mut RolloutProgress {
        self.status.rollout.get_or_insert_default()
    }

    /// The rollout goes to another state, whose clock begins now.
    pub(super) fn go(&mut self, view: &View<'_>, state: RolloutState) {
        let rollout = self.rollout();
        rollout.state = Some(state);
        rollout.paused_from = None;
        view.clocks.restart(rollout);
    }
}
