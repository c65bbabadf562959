//! What a server references, from caches that are complete: models, and the runs that promote into it.

use std::collections::BTreeMap;

use api::condition::ConditionType;
use api::kinds::laya_server::Version;
use api::kinds::training_run::PromoteMode;
use api::kinds::{ConditionStatus, LayaModel, LayaServer, LayaServerStatus, TrainingRun};
use api::reason::Reason;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};

use super::facts::wording;
use super::observation::{GateView, ModelView, Promotion};
use crate::conditions::find;
use crate::watched::Watched;

/// The reserved name of `source.volume` that means the volume of all our models.
const OUR_VOLUME: &str = "models";
/// Verdict of a gate that lets a candidate serve.
const PASSED: &str = "Passed";

/// Models that spec or status of a server name, by name.
pub(super) fn models(
    server: &LayaServer,
    store: &Store<Watched<LayaModel>>,
    promotions: &[Promotion],
) -> BTreeMap<String, ModelView> {
    let namespace = server.namespace().unwrap_or_default();
    let promoted = promotions.iter().map(|promotion| promotion.model.as_str());
    let named = named_models(server).chain(promoted);
    let views = named.filter_map(|name| {
        let found = store.get(&ObjectRef::new(name).within(&namespace))?;
        Some((name.to_owned(), view(name, &found)))
    });
    views.collect()
}

/// Names of models that spec or status of a server name.
fn named_models(server: &LayaServer) -> impl Iterator<Item = &str> {
    let status = server.status.as_ref();
    let wish = status.and_then(|status| status.wish.as_ref()?.model.as_deref());
    let versions = status.into_iter().flat_map(versions);
    let versions = versions.filter_map(|version| version.model.as_deref());
    std::iter::once(server.spec.model_ref.name.as_str())
        .chain(wish)
        .chain(versions)
}

/// Versions that a status names.
pub(super) fn versions(status: &LayaServerStatus) -> impl Iterator<Item = &Version> {
    [&status.champion, &status.candidate, &status.previous]
        .into_iter()
        .flatten()
}

/// Whether a server names a model of its namespace.
#[must_use]
pub fn names_model(server: &LayaServer, model: &str) -> bool {
    named_models(server).any(|name| name == model)
}

fn view(name: &str, model: &Watched<LayaModel>) -> ModelView {
    let model = match model {
        Watched::Parsed(model) => model,
        Watched::Unparsed(unparsed) => {
            return ModelView {
                name: name.to_owned(),
                ready: false,
                reason: Reason::InvalidSpec.as_str().to_owned(),
                message: unparsed.error.clone(),
                digest: None,
                contract: None,
                size_bytes: 0,
                location: None,
                foreign_volume: false,
                deleting: unparsed.metadata.deletion_timestamp.is_some(),
                verified_at: None,
            };
        }
    };
    let status = model.status.clone().unwrap_or_default();
    let ready = find(&status.conditions, ConditionType::Ready);
    let volume = model.spec.source.volume.as_ref();
    let spec_contract = model.spec.contract.as_ref();
    ModelView {
        name: name.to_owned(),
        ready: ready.is_some_and(|ready| ready.status == ConditionStatus::True),
        reason: ready.map_or_else(
            || Reason::Waiting.as_str().to_owned(),
            |ready| ready.reason.clone(),
        ),
        message: ready.map_or_else(
            || "nothing was said of it yet".to_owned(),
            |ready| ready.message.clone(),
        ),
        digest: status.digest,
        contract: status
            .contract
            .or_else(|| spec_contract.map(|contract| contract.0.clone())),
        size_bytes: status
            .size_bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(0),
        location: status.location,
        foreign_volume: volume.is_some_and(|volume| volume.name != OUR_VOLUME),
        deleting: model.meta().deletion_timestamp.is_some(),
        verified_at: status.verified_at,
    }
}

/// What the gate says of the candidate. Nothing judges yet.
pub(super) fn gate(server: &LayaServer) -> GateView {
    match &server.spec.rollout.gate_ref {
        None => GateView::None,
        Some(gate) => GateView::NotJudged {
            name: gate.name.clone(),
        },
    }
}

/// Promotions into a server that are due, oldest first (3.1): of a run that succeeded, whose gate passed where one is
/// named, and that is automatic with the champion's wording or approved.
pub(super) fn promotions<'a>(
    server: &LayaServer,
    runs: impl Iterator<Item = &'a TrainingRun>,
    contract_of: impl Fn(&str) -> Option<String>,
) -> Vec<Promotion> {
    let status = server.status.as_ref();
    let champion = status.and_then(|status| status.champion.as_ref());
    let served = wording(champion.and_then(|champion| champion.contract.as_deref()));
    let mut due: Vec<_> = runs
        .filter(|run| run.namespace() == server.namespace())
        .filter_map(|run| {
            let promote = &run.spec.promote;
            let into = promote.server_ref.as_ref()?;
            let status = run.status.as_ref()?;
            let succeeded = status.outcome.as_ref()?.succeeded == Some(true);
            let verdict = status
                .gate
                .as_ref()
                .and_then(|gate| gate.verdict.as_deref());
            let judged = run.spec.gate_ref.is_none() || verdict == Some(PASSED);
            let model = status.produced_model.as_ref()?.name.clone()?;
            let wanted = match promote.mode {
                PromoteMode::Never => false,
                PromoteMode::Manual => promote.approved,
                PromoteMode::Automatic => {
                    promote.approved || wording(contract_of(&model).as_deref()) == served
                }
            };
            let due_at = status.promotion.as_ref().and_then(|promotion| promotion.at);
            (into.name == server.name_any() && succeeded && judged && wanted).then_some(Promotion {
                run: run.name_any(),
                model,
                due_at: due_at.or(status.completed_at)?,
            })
        })
        .collect();
    due.sort_by(|a, b| (a.due_at, &a.run).cmp(&(b.due_at, &b.run)));
    due
}

#[cfg(test)]
mod tests;
