//! What to do about a server, and what to say (control-plane 3.2). Pure.

use api::kinds::{LayaServer, LayaServerStatus};

use super::action::Action;
use super::observation::{Checked, Observation};
use crate::clock::Now;
use crate::reconciler::{EventDraft, Requeue};

/// What a pass over a server is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// In order. At most one of them destroys something.
    pub actions: Vec<Action>,
    /// What is now, before the actions.
    pub status: LayaServerStatus,
    /// What people should be told once the status is written.
    pub events: Vec<EventDraft>,
    /// When to look again.
    pub requeue: Requeue,
}

/// What to do and to say about a server.
#[must_use]
pub fn plan(object: &LayaServer, _checked: &Checked, _seen: &Observation, _now: &Now) -> Planned {
    Planned {
        actions: Vec::new(),
        status: object.status.clone().unwrap_or_default(),
        events: Vec::new(),
        requeue: Requeue::Waiting,
    }
}
