//! Row Sweeping of control-plane 3.2: what is neither champion, candidate nor previous goes, and the previous one rests once
//! nobody watches its successor any more. One thing a pass.

use std::collections::BTreeSet;

use api::kinds::laya_server::{RolloutState, ServerApi, Version};
use backend::RunState;

use super::action::{Action, document_name};
use super::facts::{Facts, is_revision, revision};
use super::kept_log;
use super::replicas::Replicas;
use super::rollout::Ran;
use super::traffic;
use super::view::{Draft, View};

/// Seconds beyond the drain until something is killed.
const GRACE_SECONDS: u32 = 10;

/// Seconds a server has for its stop.
pub(super) fn grace(view: &View<'_>) -> u32 {
    view.drain_seconds().saturating_add(GRACE_SECONDS)
}

/// Whether something runs that should not, so that its room is about to be free.
pub(super) fn is_due(view: &View<'_>, draft: &Draft) -> bool {
    let resting = draft.status.previous.as_ref().is_some_and(|previous| {
        rests(draft, previous) && view.replicas_of(Some(previous)).any_up()
    });
    resting
        || unneeded(view, draft)
            .iter()
            .any(|it| view.replicas(it).any_up())
}

/// Does one thing about what is not needed.
pub(super) fn run(view: &View<'_>, draft: &mut Draft) -> Ran {
    if let Some(previous) = draft.status.previous.clone().filter(|it| rests(draft, it)) {
        let replicas = view.replicas_of(Some(&previous));
        if let Some(actions) = stop(view, &previous, &replicas) {
            draft.actions.extend(actions);
            return Ran::Something;
        }
    }
    for gone in unneeded(view, draft) {
        let replicas = view.replicas(&gone);
        let leaving = |state| state == RunState::Stopping;
        let all_leave = replicas.iter().all(|replica| leaving(replica.seen.state));
        if traffic::has(draft, &gone) || all_leave {
            continue;
        }
        // Before the deletion, and in the same pass: a log that cannot be kept holds nothing up.
        let log = kept_log::store_rejected(view, draft, &gone);
        draft.actions.extend(log);
        let version = Version {
            revision: Some(gone.clone()),
            ..Version::default()
        };
        let urls = urls(&replicas);
        draft.actions.extend(drains(view, &version, &urls));
        draft.actions.push(view.on(backend::Action::DeleteServer {
            revision: gone,
            ordinals: backend::Ordinals::All,
            grace_seconds: grace(view),
        }));
        return Ran::Something;
    }
    documents(view, draft)
}

/// The previous version runs while its successor is watched, and when it is what is wished again.
fn rests(draft: &Draft, previous: &Version) -> bool {
    let watched = matches!(
        draft.status.works_at(),
        Some(RolloutState::Promoted | RolloutState::Baking | RolloutState::Draining)
    );
    let wished = previous
        .revision
        .as_deref()
        .is_some_and(|revision| is_revision(draft.status.candidate.as_ref(), revision));
    !watched && !wished
}

/// Revisions that run, or did, and that status does not name as a version.
fn unneeded(view: &View<'_>, draft: &Draft) -> BTreeSet<String> {
    let status = &draft.status;
    let versions = [&status.champion, &status.candidate, &status.previous];
    let needed: BTreeSet<_> = versions
        .into_iter()
        .filter_map(|version| revision(version.as_ref()))
        .collect();
    let servers = view.observed.iter().flat_map(|seen| seen.servers.iter());
    servers
        .filter(|server| !needed.contains(server.revision.as_str()))
        .map(|server| server.revision.clone())
        .collect()
}

/// Drains and stops all replicas of a version; `None` when none is left to be told.
pub(super) fn stop(
    view: &View<'_>,
    version: &Version,
    replicas: &Replicas<'_>,
) -> Option<Vec<Action>> {
    replicas.alive().next()?;
    let mut actions = drains(view, version, &urls(replicas));
    actions.push(view.on(backend::Action::StopServer {
        revision: version.revision.clone().unwrap_or_default(),
        ordinals: backend::Ordinals::All,
        grace_seconds: grace(view),
    }));
    Some(actions)
}

fn urls(replicas: &Replicas<'_>) -> Vec<String> {
    let running = replicas.iter().filter(|replica| replica.runs());
    running
        .filter_map(|replica| replica.seen.url.clone())
        .collect()
}

/// Servers are told to finish; those that speak only Laya's own words cannot be.
pub(super) fn drains(view: &View<'_>, version: &Version, urls: &[String]) -> Vec<Action> {
    let inputs = revision(Some(version)).and_then(|it| view.checked.documents.get(it));
    let api = inputs.map_or(view.spec.server_api, |inputs| inputs.server_api);
    if api == ServerApi::Laya {
        return Vec::new();
    }
    let drain = |url: &String| view.on(backend::Action::Drain { url: url.clone() });
    urls.iter().map(drain).collect()
}

/// Documents of revisions that status does not name at all go, and logs of those that are not taken back any more; the
/// first of them.
fn documents(view: &View<'_>, draft: &mut Draft) -> Ran {
    if let Some(forget) = kept_log::forget_forgiven(view, draft) {
        draft.actions.push(forget);
        return Ran::Something;
    }
    let status = &draft.status;
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for version in [&status.champion, &status.candidate, &status.previous] {
        named.extend(revision(version.as_ref()));
    }
    named.extend(
        status
            .rejected
            .iter()
            .filter_map(|it| it.revision.as_deref()),
    );
    for record in &status.history {
        named.extend(record.from.as_deref());
        named.extend(record.to.as_deref());
    }
    let runs = |wanted: &str| !view.replicas(wanted).is_empty();
    let gone = view.checked.documents.keys().find_map(|it| {
        let uid = view.checked.document_uids.get(it)?;
        (!named.contains(it.as_str()) && !runs(it)).then(|| (it.clone(), uid.clone()))
    });
    let Some((gone, uid)) = gone else {
        return Ran::Nothing;
    };
    let server = view.object.metadata.name.as_deref().unwrap_or_default();
    draft.actions.push(Action::DeleteRevision {
        name: document_name(server, &gone),
        uid,
    });
    Ran::Something
}
