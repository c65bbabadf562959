//! From the form of the document to the policy type of crate `routing`. Structs are taken apart field by field, so
//! that a new knob cannot be forgotten here.

use decision::vocabulary::{Effort, Tier, Validation};
use routing::keywords::GroupEdit;
use routing::policy::{AddedRule, Deadlines, PolicySource, QuotaShare, Thresholds};
use routing::profile::Profile;
use routing::registry::{EntryPatch, Prices};
use routing::requirement::Floor;

use super::{
    DeadlinesSpec, FloorSpec, KeywordSpec, ModelSpec, PricesSpec, PrivacySpec, ProfileSpec,
    QuotaSpec, RoutingPolicySpec, RuleSpec, ThresholdsSpec,
};
use crate::FieldError;

pub(super) fn source(spec: &RoutingPolicySpec) -> Result<PolicySource, FieldError> {
    let RoutingPolicySpec {
        server_ref: _,
        profile,
        profiles,
        tiers,
        models,
        providers,
        baseline,
        rules,
        disabled_rules,
        keywords,
        thresholds,
        deadlines,
        escalate_after_failures,
        tool_routing,
        memory,
        telemetry,
        exploration,
        switch_price,
        cost_basis,
        on_floor_unmet,
        quota,
        privacy,
    } = spec;
    let DeadlinesSpec {
        timeout_millis,
        breaker_seconds,
    } = *deadlines;
    let PrivacySpec {
        request_text,
        retention_days,
    } = *privacy;
    Ok(PolicySource {
        profile: profile.clone(),
        profiles: profiles.iter().map(own_profile).collect(),
        tiers: tiers
            .iter()
            .map(|tier| (tier.name, tier.models.clone()))
            .collect(),
        models: models
            .iter()
            .enumerate()
            .map(model)
            .collect::<Result<_, _>>()?,
        providers: (!providers.is_empty()).then(|| providers.clone()),
        baseline: baseline.clone(),
        rules: rules.iter().map(rule).collect(),
        disabled_rules: disabled_rules.clone(),
        keywords: keywords.iter().map(group).collect(),
        thresholds: limits(thresholds),
        deadlines: Deadlines {
            timeout_millis,
            breaker_seconds,
        },
        escalate_after_failures: *escalate_after_failures,
        tool_routing: (*tool_routing).into(),
        memory: *memory,
        telemetry: *telemetry,
        exploration: exploration.value(),
        switch_price: *switch_price,
        cost_basis: (*cost_basis).into(),
        on_floor_unmet: (*on_floor_unmet).into(),
        quota: quota.iter().map(share).collect(),
        request_text: request_text.map(Into::into),
        retention_days,
    })
}

fn own_profile(spec: &ProfileSpec) -> Profile {
    let ProfileSpec {
        name,
        quality,
        cost,
        latency,
        risk,
        min_success,
    } = spec;
    Profile {
        name: name.clone(),
        quality: quality.ratio(),
        cost: cost.ratio(),
        latency: latency.ratio(),
        risk: risk.ratio(),
        min_success: min_success.ratio(),
    }
}

fn model((at, spec): (usize, &ModelSpec)) -> Result<EntryPatch, FieldError> {
    let ModelSpec {
        model,
        context_window,
        efforts,
        capabilities,
        prices,
        disabled,
    } = spec;
    Ok(EntryPatch {
        model: model.clone(),
        tier: None,
        context_window: *context_window,
        efforts: *efforts,
        capabilities: *capabilities,
        prices: prices
            .as_ref()
            .map(|prices| self::prices(at, prices))
            .transpose()?,
        disabled: Some(*disabled),
    })
}

fn prices(at: usize, spec: &PricesSpec) -> Result<Prices, FieldError> {
    let PricesSpec {
        input,
        cached_input,
        cache_write,
        output,
        as_of,
        source,
    } = spec;
    let as_of = as_of.parse().map_err(|_| {
        FieldError::new(
            format!("spec.models[{at}].prices.asOf"),
            format!("`{as_of}` is no date like 2026-11-30"),
        )
    })?;
    Ok(Prices {
        input: input.price(),
        cached_input: cached_input.as_ref().map(super::Decimal::price),
        cache_write: cache_write.as_ref().map(super::Decimal::price),
        output: output.price(),
        as_of,
        source: source.clone(),
    })
}

fn rule(spec: &RuleSpec) -> AddedRule {
    let RuleSpec {
        id,
        patterns,
        unless,
        languages: _,
        floor,
        note: _,
    } = spec;
    let floor = floor.as_ref().map(
        |FloorSpec {
             tier,
             effort,
             validation,
         }| Floor {
            tier: tier.unwrap_or(Tier::Fast),
            effort: effort.unwrap_or(Effort::Minimal),
            validation: validation.unwrap_or(Validation::None),
        },
    );
    AddedRule {
        id: id.clone(),
        patterns: patterns.clone(),
        unless: unless.clone(),
        floor,
    }
}

fn group(spec: &KeywordSpec) -> GroupEdit {
    let KeywordSpec {
        id,
        any,
        unless,
        remove,
    } = spec;
    GroupEdit {
        id: id.clone(),
        any: any.clone(),
        unless: unless.clone(),
        remove: remove.clone(),
    }
}

fn limits(spec: &ThresholdsSpec) -> Thresholds {
    let ThresholdsSpec {
        min_confidence,
        memory_similarity,
        memory_lesson,
        high_risk,
    } = spec;
    Thresholds {
        min_confidence: min_confidence.value(),
        memory_similarity: memory_similarity.value(),
        memory_lesson: memory_lesson.value(),
        high_risk: high_risk.value(),
    }
}

fn share(spec: &QuotaSpec) -> (String, QuotaShare) {
    let QuotaSpec {
        provider,
        share,
        budget_per_day,
    } = spec;
    let budget_per_day = budget_per_day.as_ref().map(super::Decimal::value);
    (
        provider.clone(),
        QuotaShare {
            share: share.value(),
            budget_per_day,
        },
    )
}
