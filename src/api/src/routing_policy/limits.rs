//! Bounds and keys of the lists of a `RoutingPolicy` (control-plane 6), which an API server checks by schema.

use std::collections::HashSet;

use super::{API_VERSION, KIND, RoutingPolicy, RoutingPolicySpec, check_name};
use crate::FieldError;

/// The first limit that does not hold.
pub(super) fn check(policy: &RoutingPolicy) -> Option<FieldError> {
    if policy.api_version != API_VERSION {
        return Some(FieldError::new(
            "apiVersion",
            format!("must be `{API_VERSION}`, is `{}`", policy.api_version),
        ));
    }
    if policy.kind != KIND {
        return Some(FieldError::new(
            "kind",
            format!("must be `{KIND}`, is `{}`", policy.kind),
        ));
    }
    check_name("metadata.name", &policy.metadata.name)
        .err()
        .or_else(|| check_spec(&policy.spec))
}

fn check_spec(spec: &RoutingPolicySpec) -> Option<FieldError> {
    keyed(
        "spec.profiles",
        spec.profiles.iter().map(|item| item.name.clone()),
        8,
    )
    .or_else(|| {
        keyed(
            "spec.tiers",
            spec.tiers.iter().map(|item| item.name.to_string()),
            4,
        )
    })
    .or_else(|| {
        keyed(
            "spec.models",
            spec.models.iter().map(|item| item.model.to_string()),
            256,
        )
    })
    .or_else(|| keyed("spec.providers", spec.providers.iter().cloned(), 64))
    .or_else(|| {
        keyed(
            "spec.rules",
            spec.rules.iter().map(|item| item.id.clone()),
            128,
        )
    })
    .or_else(|| {
        keyed(
            "spec.disabledRules",
            spec.disabled_rules.iter().cloned(),
            16,
        )
    })
    .or_else(|| {
        keyed(
            "spec.keywords",
            spec.keywords.iter().map(|item| item.id.clone()),
            128,
        )
    })
    .or_else(|| {
        keyed(
            "spec.quota",
            spec.quota.iter().map(|item| item.provider.clone()),
            64,
        )
    })
    .or_else(|| check_items(spec))
}

fn check_items(spec: &RoutingPolicySpec) -> Option<FieldError> {
    for (at, tier) in spec.tiers.iter().enumerate() {
        let path = format!("spec.tiers[{at}].models");
        let found = count(&path, tier.models.len(), 1, 32)
            .or_else(|| lengths(&path, tier.models.iter().map(ToString::to_string), 160));
        if found.is_some() {
            return found;
        }
    }
    for (at, model) in spec.models.iter().enumerate() {
        if let Some(prices) = &model.prices
            && prices.source.chars().count() > 128
        {
            return Some(FieldError::new(
                format!("spec.models[{at}].prices.source"),
                "has more than 128 characters",
            ));
        }
    }
    for (at, rule) in spec.rules.iter().enumerate() {
        let patterns = format!("spec.rules[{at}].patterns");
        let unless = format!("spec.rules[{at}].unless");
        let found = count(&patterns, rule.patterns.len(), 1, 32)
            .or_else(|| lengths(&patterns, rule.patterns.iter().cloned(), 256))
            .or_else(|| count(&unless, rule.unless.len(), 0, 32))
            .or_else(|| lengths(&unless, rule.unless.iter().cloned(), 256));
        if found.is_some() {
            return found;
        }
    }
    for (at, group) in spec.keywords.iter().enumerate() {
        for (name, terms) in [
            ("any", &group.any),
            ("unless", &group.unless),
            ("remove", &group.remove),
        ] {
            let path = format!("spec.keywords[{at}].{name}");
            let found = count(&path, terms.len(), 0, 256)
                .or_else(|| lengths(&path, terms.iter().cloned(), 256));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn count(path: &str, len: usize, least: usize, most: usize) -> Option<FieldError> {
    let wrong = !(least..=most).contains(&len);
    wrong.then(|| {
        FieldError::new(
            path,
            format!("has {len} entries, allowed are {least} to {most}"),
        )
    })
}

fn lengths(path: &str, items: impl Iterator<Item = String>, most: usize) -> Option<FieldError> {
    items.enumerate().find_map(|(at, item)| {
        let len = item.chars().count();
        (len == 0 || len > most).then(|| {
            FieldError::new(
                format!("{path}[{at}]"),
                format!("has {len} characters, allowed are 1 to {most}"),
            )
        })
    })
}

/// Bounds of a list whose items have a key, which may stand in it once.
fn keyed(path: &str, keys: impl Iterator<Item = String>, most: usize) -> Option<FieldError> {
    let mut seen = HashSet::new();
    for (at, key) in keys.enumerate() {
        if at >= most {
            return Some(FieldError::new(
                path,
                format!("has more than {most} entries"),
            ));
        }
        if key.trim().is_empty() {
            return Some(FieldError::new(format!("{path}[{at}]"), "has a blank key"));
        }
        if seen.contains(&key) {
            return Some(FieldError::new(
                format!("{path}[{at}]"),
                format!("`{key}` stands in the list twice"),
            ));
        }
        seen.insert(key);
    }
    None
}
