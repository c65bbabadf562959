//! Restarts of the champion and damage of its checkpoint, as facts (control-plane 3): counted from what the engine shows,
//! each end once.

use api::event::EventReason;
use api::kinds::laya_server::Damage;
use api::reason::Reason;
use jiff::Timestamp;

use super::replicas::{DAMAGED, Replica};
use super::view::{Draft, View};
use crate::clock::whole_seconds;

/// Restarts within [`WINDOW_SECONDS`] that are a loop.
pub(super) const LOOP: i32 = 3;
/// What restarts are counted in.
const WINDOW_SECONDS: i64 = 300;
/// How much longer a loop counts as one: a replica that waited the longest pause ends a while after it.
const GRACE_SECONDS: i64 = 60;
/// First wait before a replica of a loop is made anew; doubled each time.
const FIRST_BACKOFF_SECONDS: i64 = 10;
/// Longest such wait.
const MOST_BACKOFF_SECONDS: i64 = 300;

/// Counts what ended since the last look.
pub(super) fn count(view: &View<'_>, draft: &mut Draft) {
    let replicas = view.replicas_of(draft.status.champion.as_ref());
    let last = draft.status.restarts.as_ref().and_then(|seen| seen.last_at);
    // What happened before it became champion is not counted.
    let champion = draft.status.champion.as_ref();
    let last = last.max(champion.and_then(|champion| champion.since));
    let mut new: Vec<(Timestamp, &Replica<'_>)> = replicas
        .iter()
        .filter_map(|replica| Some((ended_at(view, replica, last)?, replica)))
        .collect();
    new.sort_by_key(|(at, replica)| (*at, replica.ordinal()));
    for (at, replica) in new {
        record(draft, at, replica);
    }
}

/// When the last life of a replica ended, if that was not counted yet.
fn ended_at(view: &View<'_>, replica: &Replica<'_>, last: Option<Timestamp>) -> Option<Timestamp> {
    let began = replica.seen.started_at.map(whole_seconds);
    let fresh = |at: Option<Timestamp>| match (at, last) {
        (Some(at), Some(last)) => at > last,
        (None, Some(_)) => false,
        (_, None) => true,
    };
    if replica.seen.restarts > 0 && replica.lives() {
        // The engine started it again: the start says when.
        return fresh(began).then(|| began.unwrap_or_else(|| view.now()));
    }
    // It ended and stays so: this look says when, and its start which life it was.
    (replica.is_down() && replica.crashed() && fresh(began)).then(|| view.now())
}

fn record(draft: &mut Draft, at: Timestamp, replica: &Replica<'_>) {
    let restarts = draft.status.restarts.get_or_insert_default();
    let is_new = restarts
        .since
        .is_none_or(|since| at.as_second() - since.as_second() > WINDOW_SECONDS);
    if is_new {
        restarts.count = Some(0);
        restarts.since = Some(at);
    }
    restarts.count = Some(restarts.count.unwrap_or(0).saturating_add(1));
    restarts.last_at = Some(at);
    restarts.last_exit_code = replica.seen.exit_code;
    let reason = replica.crash_reason();
    restarts.last_reason = Some(reason.as_str().to_owned());
}

/// Whether the champion ends again and again.
pub(super) fn is_loop(view: &View<'_>, draft: &Draft) -> bool {
    let Some(restarts) = &draft.status.restarts else {
        return false;
    };
    let recent = restarts
        .last_at
        .is_some_and(|at| view.clocks.seconds_since(at) <= WINDOW_SECONDS + GRACE_SECONDS);
    recent && restarts.count.unwrap_or(0) >= LOOP
}

/// Whether a replica of a loop may be made anew: 10 s·2ⁿ after its last end, at most 5 min; one that the engine keeps
/// starting by itself, as long after the first.
pub(super) fn may_recreate(view: &View<'_>, draft: &Draft, replica: &Replica<'_>) -> bool {
    let Some(restarts) = &draft.status.restarts else {
        return true;
    };
    let over = restarts.count.unwrap_or(0).saturating_sub(LOOP).clamp(0, 5);
    let wait = (FIRST_BACKOFF_SECONDS << over).min(MOST_BACKOFF_SECONDS);
    let (fact, at) = if replica.lives() && !replica.runs() {
        ("restarts", restarts.since)
    } else {
        ("restart", restarts.last_at)
    };
    at.is_none_or(|at| view.clocks.passed(fact, at, wait))
}

/// A replica that lost its GPU is made anew: counted as a restart, so that the pauses grow.
pub(super) fn gpu_lost(view: &View<'_>, draft: &mut Draft) {
    let now = view.now();
    let restarts = draft.status.restarts.get_or_insert_default();
    let old = restarts
        .since
        .is_none_or(|since| view.clocks.seconds_since(since) > WINDOW_SECONDS);
    if old {
        restarts.count = Some(0);
        restarts.since = Some(now);
    }
    restarts.count = Some(restarts.count.unwrap_or(0).saturating_add(1));
    restarts.last_reason = Some(Reason::GpuLost.as_str().to_owned());
    restarts.last_exit_code = None;
    restarts.last_at = Some(now);
}

/// Takes down that a replica found its checkpoint damaged; LayaModel reads it and repairs.
pub(super) fn damage(view: &View<'_>, draft: &mut Draft) {
    let versions = [
        draft.status.champion.clone(),
        draft.status.candidate.clone(),
        draft.status.previous.clone(),
    ];
    for version in versions.iter().flatten() {
        let replicas = view.replicas_of(Some(version));
        let Some(digest) = &version.digest else {
            continue;
        };
        let verified = verified_at(view, version.model.as_deref());
        let known = draft.status.damage.as_ref().is_some_and(|damage| {
            damage.digest.as_ref() == Some(digest)
                && damage
                    .at
                    .is_some_and(|at| verified.is_none_or(|verified| at > verified))
        });
        let found = replicas.iter().any(|replica| {
            let after = match (replica.seen.started_at, verified) {
                (Some(began), Some(verified)) => began >= verified,
                _ => true,
            };
            !replica.runs() && replica.seen.exit_code == Some(DAMAGED) && after
        });
        if found && !known {
            draft.status.damage = Some(Damage {
                digest: Some(digest.clone()),
                at: Some(view.now()),
            });
            let model = version.model.clone().unwrap_or_default();
            draft.tell(
                EventReason::ModelDamaged,
                format!("a replica found files of LayaModel {model} ({digest}) other than their manifest; the model is checked and repaired"),
            );
        }
    }
}

fn verified_at(view: &View<'_>, model: Option<&str>) -> Option<Timestamp> {
    view.checked.models.get(model?)?.verified_at
}
