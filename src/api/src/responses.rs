//! What the router's read routes answer (routing.md 18).

use std::collections::BTreeMap;

use decision::vocabulary::Tier;
use routing::policy::Problem;
use routing::registry::{ModelRef, Prices};
use routing::thinking::EffortSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /v1/policy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyResponse {
    /// Name of the document.
    pub name: String,
    /// First 10 hex digits of the digest.
    pub revision: String,
    /// Digest of the canonical spec.
    pub digest: String,
    /// Whether it is in force.
    pub accepted: bool,
    /// Profile in force when a request names none.
    pub profile: String,
    /// The spec with its defaults.
    pub spec: Value,
    /// What is not as it should be.
    pub warnings: Vec<Problem>,
}

/// `GET /v1/models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelsResponse {
    /// Models of each tier, in order.
    pub tiers: BTreeMap<Tier, Vec<ModelStatus>>,
    /// The decision model.
    pub serving: Serving,
}

/// One model of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelStatus {
    /// `provider/model`.
    pub model: ModelRef,
    /// What precedes the first slash.
    pub provider: String,
    /// Whether the policy's providers hold its own.
    pub has_credentials: bool,
    /// What is left of the provider's plan, 0..=1, two decimals.
    pub availability: f64,
    /// Efforts it supports.
    pub efforts: EffortSet,
    /// Tokens it can hold.
    pub context_window: Option<u64>,
    /// USD per million tokens.
    pub prices: Option<Prices>,
}

/// Whether the decision model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServingState {
    /// It does.
    Ready,
    /// Some of its servers do.
    Degraded,
    /// None does; rules answer.
    RulesOnly,
}

/// The decision model behind the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Serving {
    /// Whether it answers.
    pub state: ServingState,
    /// Name of the version that serves.
    pub champion: Option<String>,
    /// Name of the version that wants to.
    pub candidate: Option<String>,
    /// Name of the server.
    pub server: Option<String>,
    /// What it runs on.
    pub device: Option<String>,
}

impl Serving {
    /// No model: rules answer.
    #[must_use]
    pub fn rules_only() -> Self {
        Self {
            state: ServingState::RulesOnly,
            champion: None,
            candidate: None,
            server: None,
            device: None,
        }
    }
}

/// `GET /v1/contract`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractResponse {
    /// Digest with wording.
    pub digest: String,
    /// Digest without.
    pub shape: String,
    /// What the questions are about.
    pub description: String,
    /// Their language.
    pub language: String,
    /// Questions in order, in the form of `decisions.json`.
    pub decisions: Value,
}

/// `GET /health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthResponse {
    /// True only while a model serves, so that a System One client falls back by itself.
    pub ok: bool,
    /// `ok` or `degraded`.
    pub status: String,
    /// Version that serves.
    pub model: Option<String>,
    /// Ids of the questions in order.
    pub decisions: Vec<String>,
    /// Digest with wording.
    pub contract: String,
    /// Digest without.
    pub shape: String,
    /// What it runs on.
    pub device: Option<String>,
    /// Whether the model answers.
    pub serving: ServingState,
}
