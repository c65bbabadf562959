//! The wish (control-plane 3.1): what is to serve, and who says so.

use api::kinds::laya_server::{Promotions, Rejection, Wish};
use api::reason::Reason;
use backend::RevisionInputs;

use super::facts::{Facts, is_revision, revision as revision_of};
use super::observation::ModelView;
use super::revision;
use super::view::{Draft, View};

/// `wish.from` of a wish of spec.
pub(super) const SPEC: &str = "Spec";

/// The wish with what it needs to be acted on.
#[derive(Debug, Clone)]
pub(super) struct Wished<'a> {
    /// Name of the LayaModel.
    pub(super) model: String,
    /// That model, if it is there.
    pub(super) view: Option<&'a ModelView>,
    /// What makes the revision, once the checkpoint is known.
    pub(super) inputs: Option<(String, RevisionInputs)>,
    /// Why it is not tried.
    pub(super) rejected: Option<Rejection>,
}

impl Wished<'_> {
    pub(super) fn revision(&self) -> Option<&str> {
        self.inputs.as_ref().map(|(revision, _)| revision.as_str())
    }
}

/// Puts the wish in force into the draft and says what it comes to.
pub(super) fn settle<'a>(view: &View<'a>, draft: &mut Draft) -> Wished<'a> {
    forget_rejections(view, draft);
    let named = &view.spec.model_ref.name;
    let wish = draft.status.wish.clone().unwrap_or_default();
    let wish = if wish.spec_model.as_ref() == Some(named) {
        promoted(view, draft, &wish).unwrap_or(wish)
    } else {
        Wish {
            model: Some(named.clone()),
            digest: None,
            from: Some(SPEC.to_owned()),
            spec_model: Some(named.clone()),
            since: Some(view.now()),
        }
    };
    let mut wished = look(view, draft, &wish);
    let mut wish = wish;
    let by_run = wish.from.as_deref() != Some(SPEC);
    let champion = draft.status.champion.clone();
    if let Some(champion) = champion.filter(|_| by_run && wished.rejected.is_some()) {
        // A promotion that was taken back ends; what serves is wished again.
        wish.model = champion.model;
        wish.digest = champion.digest;
        wish.from = Some(SPEC.to_owned());
        wish.since = Some(view.now());
        wished = look(view, draft, &wish);
    }
    if let Some((_, inputs)) = &wished.inputs {
        wish.digest = Some(inputs.digest.clone());
    }
    draft.status.wish = Some(wish);
    wished
}

/// A changed `retry` forgets rejections once.
fn forget_rejections(view: &View<'_>, draft: &mut Draft) {
    let retry = Some(view.spec.rollout.retry);
    if draft.status.retry_seen != retry {
        if draft.status.retry_seen.is_some() || view.spec.rollout.retry > 0 {
            if draft.status.failed_in_place() {
                // It goes on from there, and what failed may have been its deadline.
                let clocks = view.clocks;
                clocks.restart(draft.rollout());
            }
            draft.status.rejected.clear();
        }
        draft.status.retry_seen = retry;
    }
}

/// The newest promotion that became due after the wish in force.
fn promoted(view: &View<'_>, draft: &Draft, wish: &Wish) -> Option<Wish> {
    if view.spec.promotions == Promotions::Ignore {
        return None;
    }
    let newest = view.checked.promotions.last()?;
    if wish.since.is_some_and(|since| newest.due_at <= since) {
        return None;
    }
    let next = Wish {
        model: Some(newest.model.clone()),
        digest: None,
        from: Some(format!("TrainingRun/{}", newest.run)),
        spec_model: wish.spec_model.clone(),
        since: Some(view.now().max(newest.due_at)),
    };
    // One that was taken back before is no wish at all.
    look(view, draft, &next).rejected.is_none().then_some(next)
}

fn look<'a>(view: &View<'a>, draft: &Draft, wish: &Wish) -> Wished<'a> {
    let model = wish.model.clone().unwrap_or_default();
    let known = view.checked.models.get(&model);
    let digest = known
        .and_then(|known| known.digest.clone())
        .or_else(|| wish.digest.clone());
    let inputs = digest.map(|digest| {
        let contract = known.filter(|known| known.digest.is_some()).map_or_else(
            || recorded_contract(draft, &digest),
            |known| known.contract.clone(),
        );
        let inputs = revision::wished(view, &digest, contract.as_deref());
        (inputs.revision(), inputs)
    });
    let rejected = inputs
        .as_ref()
        .and_then(|(revision, inputs)| rejection(view, draft, revision, &inputs.digest));
    Wished {
        model,
        view: known,
        inputs,
        rejected,
    }
}

/// The contract of a checkpoint whose model does not say it now.
fn recorded_contract(draft: &Draft, digest: &str) -> Option<String> {
    let status = &draft.status;
    [&status.champion, &status.candidate, &status.previous]
        .into_iter()
        .flatten()
        .find(|version| version.digest.as_deref() == Some(digest))
        .and_then(|version| version.contract.clone())
}

/// Why a revision is not tried. One whose rollout stands still after a failure is still being tried, and a person may force
/// what only its gate stopped.
fn rejection(view: &View<'_>, draft: &Draft, revision: &str, digest: &str) -> Option<Rejection> {
    let rejection = draft.status.rejection(revision)?;
    if draft.status.rolled() == Some(revision) && draft.status.failed_in_place() {
        return None;
    }
    let force = view.spec.rollout.force.as_ref();
    let forced = force.is_some_and(|force| force.digest.0 == digest);
    let by_gate = [Reason::GateFailed, Reason::GateInconclusive]
        .iter()
        .any(|reason| rejection.reason.as_deref() == Some(reason.as_str()));
    (!(forced && by_gate)).then(|| rejection.clone())
}

/// Whether the champion is what is wished.
pub(super) fn is_served(draft: &Draft, wished: &Wished<'_>) -> bool {
    let champion = draft.status.champion.as_ref();
    match wished.revision() {
        Some(revision) => is_revision(champion, revision),
        // Nothing is known of the model now: what serves under its name is taken to be it.
        None => {
            revision_of(champion).is_some()
                && champion.and_then(|champion| champion.model.as_ref()) == Some(&wished.model)
        }
    }
}
