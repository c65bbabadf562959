//! What a decision is asked for: the body of `POST /v1/route` as a typed value (routing.md 18) and the checks that
//! serde cannot express. Every refusal names the path of its field.

use std::collections::{BTreeMap, HashSet};

use decision::vocabulary::{Effort, Tier};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::registry::Capability;
use crate::registry::{EntryPatch, ModelRef, Prices};
use crate::skills::Skill;
use crate::text;
use crate::thinking::EffortSet;

/// Longest request text, in UTF-16 units.
pub const MAX_REQUEST_UNITS: usize = 100_000;
/// Longest conversation id, in UTF-16 units.
pub const MAX_CONVERSATION_UNITS: usize = 128;
/// Longest name of a profile, in UTF-16 units; no policy has a longer one (control-plane 6).
pub const MAX_PROFILE_UNITS: usize = 128;
/// Most names, references or skills in one list.
pub const MAX_LIST: usize = 200;

/// The name under which a client asks for whatever model is decided.
const VIRTUAL_MODEL: &str = "laya/auto";

/// A field that was refused, with its path in the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{path}{}{message}", if path.is_empty() { "" } else { ": " })]
pub struct FieldError {
    /// For example `constraints.model` or `labels.complexity`; empty for the body itself.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl FieldError {
    /// A refusal of the field at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A message of the user.
    #[default]
    User,
    /// A side request such as a summary: a fixed decision.
    Direct,
}

/// One request for a decision.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteRequest {
    /// The text as the user gave it; 1 to 100 000 UTF-16 units, not blank.
    pub request: String,
    /// Who asks.
    #[serde(default)]
    pub kind: RequestKind,
    /// Name of the cost profile; the policy's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The conversation this belongs to; at most 128 UTF-16 units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The decision this follows, if the client knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_decision_id: Option<Uuid>,
    /// Providers with credentials; the policy's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<Vec<String>>,
    /// Models with credentials; every model of the registry when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<RequestModel>>,
    /// Share of each provider's plan that is left, 0..=1 (clamped).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota: BTreeMap<String, f64>,
    /// The client's own knobs.
    #[serde(default, skip_serializing_if = "RequestSettings::is_empty")]
    pub settings: RequestSettings,
    /// The user's explicit choice.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// What the conversation holds now.
    #[serde(default, skip_serializing_if = "ConversationContext::is_empty")]
    pub context: ConversationContext,
    /// Names of the active tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Known skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// All 18 labels, which skip the assessment.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<decision::labels::Labels>")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Value>,
    /// Decide without storing and without exploring.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A model the client has credentials for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestModel {
    /// `provider/model`.
    #[serde(rename = "ref")]
    pub model: ModelRef,
    /// Its tier; needed when the registry lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Tokens it can hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Efforts it supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<EffortSet>,
    /// USD per million tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

impl RequestModel {
    /// The same as a change to the registry.
    #[must_use]
    pub fn patch(&self) -> EntryPatch {
        let Self {
            model,
            tier,
            context_window,
            efforts,
            prices,
        } = self.clone();
        EntryPatch {
            model,
            tier,
            efforts,
            context_window,
            capabilities: None,
            prices,
            disabled: None,
        }
    }
}

/// A client's `laya.*` settings that travel with a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestSettings {
    /// 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<f64>,
    /// 0 = off, at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_failures: Option<u32>,
    /// Whether learned tasks are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<bool>,
    /// Whether outcomes are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<bool>,
    /// Whether tools that are not needed are taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_routing: Option<crate::tool_routing::ToolRouting>,
    /// Models per tier; each given tier replaces the policy's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<Tier, Vec<ModelRef>>,
    /// Probability of exploration, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<f64>,
    /// Whether moving in the middle of a conversation has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_price: Option<bool>,
    /// What savings are measured against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<ModelRef>,
}

impl RequestSettings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the user chose, which always wins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    /// This model and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// This tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// This effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// None of these models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<ModelRef>,
    /// Capabilities the model must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
}

impl Constraints {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of the conversation, for the price of moving to another model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConversationContext {
    /// The model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentModel>,
    /// Tokens the conversation holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens the current model has in its prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// When the current model was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
}

impl ConversationContext {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The model in use and how hard it thinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CurrentModel {
    /// `provider/model`.
    pub model: ModelRef,
    /// Its effort.
    pub effort: Effort,
}

impl RouteRequest {
    /// A plain request of a user with every default.
    #[must_use]
    pub fn new(request: impl Into<String>) -> Self {
        Self {
            request: request.into(),
            ..Self::default()
        }
    }

    /// Checks what the types cannot say: lengths, ranges, names.
    ///
    /// # Errors
    /// Every refused field, in the order of the body; never an empty list.
    pub fn check(&self) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        self.check_text(&mut errors);
        self.check_models(&mut errors);
        self.check_lists(&mut errors);
        for (provider, share) in &self.quota {
            if !share.is_finite() {
                errors.push(FieldError::new(
                    format!("quota.{provider}"),
                    "must be a finite number",
                ));
            }
        }
        self.check_settings(&mut errors);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    fn check_text(&self, errors: &mut Vec<FieldError>) {
        let units = text::units(&self.request);
        if self.request.trim().is_empty() {
            errors.push(FieldError::new("request", "must not be blank"));
        } else if units > MAX_REQUEST_UNITS {
            let message = format!("has {units} UTF-16 units, limit {MAX_REQUEST_UNITS}");
            errors.push(FieldError::new("request", message));
        }
        let units = self.profile.as_deref().map_or(0, text::units);
        if units > MAX_PROFILE_UNITS {
            let message = format!("has {units} UTF-16 units, limit {MAX_PROFILE_UNITS}");
            errors.push(FieldError::new("profile", message));
        }
        if let Some(id) = &self.conversation_id {
            let units = text::units(id);
            if units == 0 || units > MAX_CONVERSATION_UNITS {
                let message =
                    format!("has {units} UTF-16 units, allowed are 1 to {MAX_CONVERSATION_UNITS}");
                errors.push(FieldError::new("conversation_id", message));
            }
        }
    }

    /// What names a model names one, and once.
    fn check_models(&self, errors: &mut Vec<FieldError>) {
        let mut named = HashSet::new();
        for (at, model) in self.models.iter().flatten().enumerate() {
            if !named.insert(&model.model) {
                let message = format!("`{}` stands there twice", model.model);
                errors.push(FieldError::new(format!("models[{at}]"), message));
            }
        }
        let chosen = self.constraints.model.as_ref();
        if chosen.is_some_and(|model| model.as_str() == VIRTUAL_MODEL) {
            let message = format!(
                "`{VIRTUAL_MODEL}` stands for the model that is decided here; name another or none"
            );
            errors.push(FieldError::new("constraints.model", message));
        }
    }

    fn check_lists(&self, errors: &mut Vec<FieldError>) {
        let lists = [
            ("providers", self.providers.as_ref().map_or(0, Vec::len)),
            ("models", self.models.as_ref().map_or(0, Vec::len)),
            ("quota", self.quota.len()),
            ("constraints.exclude", self.constraints.exclude.len()),
            (
                "constraints.capabilities",
                self.constraints.capabilities.len(),
            ),
            ("tools", self.tools.len()),
            ("skills", self.skills.len()),
        ];
        for (path, len) in lists {
            if len > MAX_LIST {
                errors.push(FieldError::new(
                    path,
                    format!("has {len} entries, limit {MAX_LIST}"),
                ));
            }
        }
        for (at, provider) in self.providers.iter().flatten().enumerate() {
            if provider.trim().is_empty() {
                errors.push(FieldError::new(
                    format!("providers[{at}]"),
                    "must not be blank",
                ));
            }
        }
    }

    fn check_settings(&self, errors: &mut Vec<FieldError>) {
        let settings = &self.settings;
        for (name, value) in [
            ("min_confidence", settings.min_confidence),
            ("exploration", settings.exploration),
        ] {
            if let Some(value) = value
                && !(0.0..=1.0).contains(&value)
            {
                errors.push(FieldError::new(
                    format!("settings.{name}"),
                    "must lie between 0 and 1",
                ));
            }
        }
        if settings
            .escalate_after_failures
            .is_some_and(|value| value > 20)
        {
            errors.push(FieldError::new(
                "settings.escalate_after_failures",
                "must lie between 0 and 20",
            ));
        }
        for (tier, models) in &settings.tiers {
            if models.is_empty() || models.len() > MAX_LIST {
                let message = format!("must name 1 to {MAX_LIST} models");
                errors.push(FieldError::new(format!("settings.tiers.{tier}"), message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_the_types_let_through() {
        let long = "x".repeat(129);
        for (name, body, path) in [
            ("fine", r#"{"models":[{"ref":"a/b"},{"ref":"a/c"}]}"#, None),
            (
                "a model twice",
                r#"{"models":[{"ref":"a/b"},{"ref":"a/c"},{"ref":"a/b","tier":"fast"}]}"#,
                Some("models[2]"),
            ),
            (
                "the virtual model",
                r#"{"constraints":{"model":"laya/auto"}}"#,
                Some("constraints.model"),
            ),
            (
                "another model of that provider",
                r#"{"constraints":{"model":"laya/other"}}"#,
                None,
            ),
            (
                "a long profile",
                &format!(r#"{{"profile":"{long}"}}"#),
                Some("profile"),
            ),
            (
                "a profile as long as it may be",
                &format!(r#"{{"profile":"{}"}}"#, &long[1..]),
                None,
            ),
        ] {
            let mut body: Value = serde_json::from_str(body).unwrap();
            body["request"] = "x".into();
            let request: RouteRequest = serde_json::from_value(body).unwrap();
            let refused = request.check().err().map(|errors| errors[0].path.clone());
            assert_eq!(refused.as_deref(), path, "{name}");
        }
    }
}
