//! The read routes: the policy in force, its models, the contract, health.

use std::sync::Arc;

use api::responses::{HealthResponse, ModelStatus, ModelsResponse, PolicyResponse, ServingState};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use decision::json::{self, Object};
use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::policy::Policy;
use routing::registry::Entry;
use service::http::{Tenant, json_bytes, json_response};

use crate::decide::Decider;
use crate::knowledge::History;
use crate::policy::ActivePolicy;

pub(crate) async fn policy(State(decider): State<Arc<Decider>>) -> Response {
    let active = decider.policy.current();
    let ActivePolicy { policy, spec } = &*active;
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
    let active = decider.policy.current();
    let policy = &active.policy;
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

/// The questions in force in their order, which is part of their digest: hence the writer that keeps it.
pub(crate) async fn contract(State(decider): State<Arc<Decider>>) -> Response {
    let facts = decider.servers.facts();
    let contract = facts.wording.contract();
    let mut answer = Object::new();
    answer.push("digest", contract.digest().to_string());
    answer.push("shape", contract.shape_digest().to_string());
    answer.push("description", contract.description());
    answer.push("language", contract.language());
    answer.push("decisions", contract.request_questions());
    json_bytes(json::write(&answer.into()).into_bytes())
}

/// `ok` is true only while a model serves; with fewer servers than there should be, or rules alone, it is `degraded`.
pub(crate) async fn health(State(decider): State<Arc<Decider>>) -> Response {
    let facts = decider.servers.facts();
    let contract = facts.wording.contract();
    let serves = facts.serving.state != ServingState::RulesOnly;
    let questions = contract.questions().iter();
    json_response(&HealthResponse {
        ok: serves,
        status: match facts.serving.state {
            ServingState::Ready => "ok",
            ServingState::Degraded | ServingState::RulesOnly => "degraded",
        }
        .to_owned(),
        model: facts.serving.champion.filter(|_| serves),
        decisions: questions.map(|question| question.id.clone()).collect(),
        contract: contract.digest().to_string(),
        shape: contract.shape_digest().to_string(),
        device: facts.serving.device,
        serving: facts.serving.state,
    })
}
