//! The knobs in force for one request: the policy's, changed by what the client sent. A client of its own router may
//! set them; on a shared router it may only narrow them (routing.md 18).

use std::collections::BTreeMap;

use crate::bounded::Ratio;
use crate::policy::Policy;
use crate::profile::Profile;
use crate::reason::Warning;
use crate::registry::{Entry, ModelRef, Registry};
use crate::request::{FieldError, RequestModel, RouteRequest};
use crate::requirement::RequirementThresholds;
use crate::tool_routing::ToolRouting;

/// Whose router it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The client's own: its settings hold.
    Own,
    /// A team's: the client's settings only narrow the policy.
    Shared,
}

/// The knobs in force for one request.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// Cost profile.
    pub profile: Profile,
    /// Models by tier.
    pub registry: Registry,
    /// Only these models, if the client named some.
    pub only: Option<Vec<ModelRef>>,
    /// Providers with credentials.
    pub providers: Vec<String>,
    /// Share of each plan that is left, as configured.
    pub quota: BTreeMap<String, Ratio>,
    /// Limits of the requirement.
    pub thresholds: RequirementThresholds,
    /// Weighted failures until a task moves up; 0 = never.
    pub escalate_after_failures: u32,
    /// Advice or force.
    pub tool_routing: ToolRouting,
    /// Whether learned tasks are asked.
    pub memory: bool,
    /// Whether outcomes are recorded.
    pub telemetry: bool,
    /// Probability of exploration.
    pub exploration: Ratio,
    /// Whether moving inside a conversation has a price.
    pub switch_price: bool,
    /// What savings are measured against.
    pub baseline: Option<ModelRef>,
    /// What a person should know about the client's models.
    pub warnings: Vec<Warning>,
}

impl Knobs {
    /// The knobs of a request.
    ///
    /// # Errors
    /// Fields that name what the policy does not have.
    pub fn of(
        request: &RouteRequest,
        policy: &Policy,
        client: Client,
    ) -> Result<Self, Vec<FieldError>> {
        let source = &policy.source;
        let name = request.profile.as_deref().unwrap_or(&source.profile);
        let Some(profile) = policy.profile(name) else {
            let names: Vec<_> = policy.profile_names().collect();
            let message = format!("`{name}` is unknown; there are {}", names.join(", "));
            return Err(vec![FieldError::new("profile", message)]);
        };
        let mut warnings = Vec::new();
        let mut registry = policy.registry.clone();
        let mut only = client_tiers(request, client, &mut registry)?;
        if let Some(models) = &request.models {
            let allowed = models
                .iter()
                .filter(|model| policy_allows(policy, client, &model.model));
            let patches: Vec<_> = allowed.map(RequestModel::patch).collect();
            warnings.extend(registry.patch(&patches));
            let named = models.iter().map(|model| model.model.clone());
            only = Some(match only {
                Some(tiers) => named.filter(|model| tiers.contains(model)).collect(),
                None => named.collect(),
            });
        }
        let settings = &request.settings;
        let shared = client == Client::Shared;
        // Own: the client's word. Shared: whatever asks for more care or keeps less.
        let ratio = |value: Option<f64>, policy: f64, narrower: fn(f64, f64) -> f64| {
            let value = value.map_or(policy, |value| {
                if shared {
                    narrower(value, policy)
                } else {
                    value
                }
            });
            Ratio::clamped(value).unwrap_or_default()
        };
        let switch = |value: Option<bool>, policy: bool| {
            value.map_or(policy, |value| if shared { value && policy } else { value })
        };
        let min_confidence = ratio(
            settings.min_confidence,
            source.thresholds.min_confidence,
            f64::max,
        )
        .get();
        Ok(Self {
            profile,
            only,
            providers: providers(request, policy, client, &registry),
            registry,
            quota: quota(request, policy, client),
            thresholds: RequirementThresholds {
                min_confidence,
                high_risk: source.thresholds.high_risk,
            },
            escalate_after_failures: match settings.escalate_after_failures {
                Some(value) if !shared => value,
                _ => source.escalate_after_failures,
            },
            // The tools are the client's own, so this is its to choose everywhere.
            tool_routing: settings.tool_routing.unwrap_or(source.tool_routing),
            memory: switch(settings.memory, source.memory),
            telemetry: switch(settings.telemetry, source.telemetry),
            exploration: ratio(settings.exploration, source.exploration, f64::min),
            switch_price: match settings.switch_price {
                Some(value) if !shared => value,
                _ => source.switch_price,
            },
            baseline: settings
                .baseline
                .clone()
                .filter(|_| !shared)
                .or_else(|| source.baseline.clone()),
            warnings,
        })
    }
}

/// Own: each tier the client names replaces the policy's. Shared: of a named tier only the policy's models that the
/// client names stay.
fn client_tiers(
    request: &RouteRequest,
    client: Client,
    registry: &mut Registry,
) -> Result<Option<Vec<ModelRef>>, Vec<FieldError>> {
    let tiers = &request.settings.tiers;
    if tiers.is_empty() {
        return Ok(None);
    }
    match client {
        Client::Own => {
            let tiers: Vec<_> = tiers
                .iter()
                .map(|(tier, models)| (*tier, models.clone()))
                .collect();
            let refused = |error: crate::registry::RegistryError| {
                vec![FieldError::new("settings.tiers", error.to_string())]
            };
            registry.replace_tiers(&tiers).map_err(refused)?;
            Ok(None)
        }
        Client::Shared => {
            let stays = |entry: &&Entry| {
                tiers
                    .get(&entry.tier)
                    .is_none_or(|models| models.contains(&entry.model))
            };
            Ok(Some(
                registry
                    .entries()
                    .iter()
                    .filter(stays)
                    .map(|entry| entry.model.clone())
                    .collect(),
            ))
        }
    }
}

/// On a shared router a client cannot bring models that the policy does not have.
fn policy_allows(policy: &Policy, client: Client, model: &ModelRef) -> bool {
    client == Client::Own || policy.registry.entry(model).is_some()
}

fn providers(
    request: &RouteRequest,
    policy: &Policy,
    client: Client,
    registry: &Registry,
) -> Vec<String> {
    let every = || {
        let mut names: Vec<_> = registry
            .entries()
            .iter()
            .map(|entry| entry.model.provider().to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let ours = policy.source.providers.as_ref();
    match (&request.providers, client) {
        (Some(named), Client::Shared) => named
            .iter()
            .filter(|name| ours.is_none_or(|ours| ours.contains(name)))
            .cloned()
            .collect(),
        (Some(named), Client::Own) => named.clone(),
        (None, _) => ours.cloned().unwrap_or_else(every),
    }
}

fn quota(request: &RouteRequest, policy: &Policy, client: Client) -> BTreeMap<String, Ratio> {
    let mut shares: BTreeMap<_, _> = policy
        .source
        .quota
        .iter()
        .map(|(provider, quota)| {
            (
                provider.clone(),
                Ratio::clamped(quota.share).unwrap_or_default(),
            )
        })
        .collect();
    for (provider, share) in &request.quota {
        let share = Ratio::clamped(*share).unwrap_or_default();
        let ours = shares.get(provider).copied().unwrap_or(Ratio::ONE);
        let narrower = client == Client::Shared && ours < share;
        shares.insert(provider.clone(), if narrower { ours } else { share });
    }
    shares
}
