//! The read routes: the policy in force, its models, the contract, health.

use std::sync::Arc;

use api::responses::{
    ContractResponse, HealthResponse, ModelStatus, ModelsResponse, PolicyResponse, ServingState,
};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use decision::vocabulary::QuestionId;
use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::policy::Policy;
use routing::registry::Entry;
use service::http::{Tenant, json_response};

use crate::decide::Decider;
use crate::knowledge::History;
use crate::policy::ActivePolicy;
use crate::servers::Facts;

pub(crate) async fn policy(State(decider): State<Arc<Decider>>) -> Response {
    let ActivePolicy { policy, spec } = &*decider.policy;
    json_response(&PolicyResponse {
        name: policy.name.clone(),
        revision: policy.revision().to_owned(),
        digest: policy.digest.clone(),
        accepted: true,
        profile: policy.source.profile.clone(),
        spec: spec.clone(),
        warnings: policy.warnings.clone(),
    })
}

pub(crate) async fn models(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
) -> Response {
    let policy = &decider.policy.policy;
    let known = decider.knowledge.of(&tenant.0);
    let history = known.history();
    let now = Timestamp::now();
    let tiers = policy
        .registry
        .tiers()
        .map(|(tier, entries)| {
            (
                tier,
                entries
                    .map(|entry| model_status(policy, &history, entry, now))
                    .collect(),
            )
        })
        .collect();
    json_response(&ModelsResponse {
        tiers,
        serving: decider.servers.serving(),
    })
}

fn model_status(policy: &Policy, history: &History, entry: &Entry, now: Timestamp) -> ModelStatus {
    let provider = entry.model.provider();
    let listed = policy
        .source
        .providers
        .as_ref()
        .is_none_or(|known| known.iter().any(|name| name == provider));
    let share = policy
        .source
        .quota
        .get(provider)
        .map_or(1.0, |quota| quota.share);
    let configured = Ratio::clamped(share).unwrap_or(Ratio::ONE);
    let availability = history.availability(policy, provider, configured, now);
    ModelStatus {
        model: entry.model.clone(),
        provider: provider.to_owned(),
        has_credentials: listed,
        availability: (availability.get() * 100.0).round() / 100.0,
        efforts: entry.efforts,
        context_window: entry.context_window,
        prices: entry.prices.clone(),
    }
}

/// The questions in the wording of the version that serves, else in ours.
pub(crate) async fn contract(State(decider): State<Arc<Decider>>) -> Response {
    let wording = decider.servers.facts().wording;
    let contract = wording.contract();
    let file: serde_json::Value = serde_json::from_str(&contract.export()).unwrap_or_default();
    json_response(&ContractResponse {
        digest: contract.digest().to_string(),
        shape: contract.shape_digest().to_string(),
        description: contract.description().to_owned(),
        language: contract.language().to_owned(),
        decisions: file.get("decisions").cloned().unwrap_or_default(),
    })
}

/// `ok` is true only while a model serves; with fewer servers than there should be, or rules alone, it is `degraded`.
pub(crate) async fn health(State(decider): State<Arc<Decider>>) -> Response {
    let Facts { serving, wording } = decider.servers.facts();
    let contract = wording.contract();
    let status = match serving.state {
        ServingState::Ready => "ok",
        ServingState::Degraded | ServingState::RulesOnly => "degraded",
    };
    json_response(&HealthResponse {
        ok: serving.state != ServingState::RulesOnly,
        status: status.to_owned(),
        model: serving.champion,
        decisions: QuestionId::ALL
            .iter()
            .map(|id| id.as_str().to_owned())
            .collect(),
        contract: contract.digest().to_string(),
        shape: contract.shape_digest().to_string(),
        device: serving.device,
        serving: serving.state,
    })
}
