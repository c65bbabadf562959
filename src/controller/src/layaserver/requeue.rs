//! When a server is looked at again (control-plane 7.2).

use std::time::Duration;

use api::kinds::laya_server::RolloutState;

use super::facts::Facts;
use super::restarts;
use super::traffic;
use super::view::{Draft, View};
use crate::reconciler::Requeue;

/// While a rollout moves.
const ROLLOUT: Duration = Duration::from_secs(2);
/// While one is watched.
const WATCH: Duration = Duration::from_secs(5);

pub(super) fn after(view: &View<'_>, draft: &Draft) -> Requeue {
    let interval = u64::try_from(view.spec.probe.interval_seconds).unwrap_or(60);
    let next_probe = Requeue::After(Duration::from_secs(interval));
    if traffic::is_suspended(view) {
        let up = view.observed.is_some_and(|observed| {
            let mut servers = observed.servers.iter();
            servers.any(|server| view.replicas(&server.revision).any_up())
        });
        return if up {
            Requeue::After(WATCH)
        } else {
            Requeue::Steady
        };
    }
    if view.spec.external.is_some() {
        return next_probe;
    }
    match draft.status.state() {
        Some(RolloutState::Baking) => Requeue::After(WATCH),
        Some(RolloutState::Paused | RolloutState::AwaitingApproval | RolloutState::Gating) => {
            Requeue::Waiting
        }
        Some(RolloutState::Preparing) if draft.status.champion.is_some() => Requeue::After(WATCH),
        Some(_) => Requeue::After(ROLLOUT),
        None if draft.waits.is_some() => Requeue::Waiting,
        None if restarts::is_loop(view, draft) => Requeue::After(WATCH),
        None => {
            let wanted = usize::try_from(view.cut.replicas).unwrap_or(0);
            let champion = view.replicas_of(draft.status.champion.as_ref());
            if champion.maybe_ready() == wanted && champion.alive().count() == wanted {
                next_probe
            } else {
                Requeue::After(WATCH)
            }
        }
    }
}
