//! Row Recovering of control-plane 3.2: no facts are left, and servers of ours run. The oldest that is ready is the champion.

use api::event::EventReason;
use api::kinds::laya_server::{Version, Wish};
use api::reason::Reason;
use backend::ServerSeen;

use super::facts::Facts;
use super::replicas::Replica;
use super::revision;
use super::rollout::Ran;
use super::view::{Because, Draft, View};

/// Seconds that a server has to be ready before everything begins anew.
const WAIT_SECONDS: i64 = 60;

/// Takes over what runs; waits a while for something to take over.
pub(super) fn run(view: &View<'_>, draft: &mut Draft) -> Ran {
    let status = &draft.status;
    let fresh = status.champion.is_none()
        && status.candidate.is_none()
        && status.state().is_none()
        && status.history.is_empty()
        && status.rejected.is_empty();
    let Some(observed) = view.observed.filter(|_| fresh) else {
        return Ran::Nothing;
    };
    let known = observed
        .servers
        .iter()
        .filter(|server| server.inputs.is_some());
    let mut ready: Vec<_> = known
        .clone()
        .filter(|server| Replica::new(server, &view.seen.replicas).is_ready())
        .collect();
    ready.sort_by_key(|server| (server.started_at, server.revision.clone(), server.ordinal));
    if let Some(version) = ready.first().and_then(|server| version(view, server)) {
        let revision = version.revision.clone().unwrap_or_default();
        draft.tell(
            EventReason::Adopted,
            format!("revision {revision} runs and is taken over as champion"),
        );
        draft.status.champion = Some(version);
        return Ran::Something;
    }
    let since = status.wish.as_ref().and_then(|wish: &Wish| wish.since);
    let waited = since.is_none_or(|since| view.clocks.passed("wish", since, WAIT_SECONDS));
    let alive = known
        .clone()
        .any(|server| Replica::new(server, &view.seen.replicas).lives());
    if !alive || waited {
        return Ran::Nothing;
    }
    draft.waits = Some(Because::new(
        Reason::Preparing,
        "servers of an earlier life run; the first that is ready is taken over",
    ));
    Ran::Something
}

fn version(view: &View<'_>, server: &ServerSeen) -> Option<Version> {
    let inputs = server.inputs.as_ref()?;
    let model = server
        .model
        .clone()
        .or_else(|| model_of(view, &inputs.digest))
        .unwrap_or_default();
    Some(Version {
        image_id: server.image_id.clone(),
        revision: Some(server.revision.clone()),
        ..revision::version(view, &model, inputs)
    })
}

fn model_of(view: &View<'_>, digest: &str) -> Option<String> {
    let mut models = view.checked.models.values();
    models
        .find(|model| model.digest.as_deref() == Some(digest))
        .map(|model| model.name.clone())
}
