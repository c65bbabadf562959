//! Bounds and keys of the lists of a `RoutingPolicy` (control-plane 6), which an API server checks by schema.

use std::collections::HashSet;

use jiff::civil::Date;
use serde_json::Value;

use super::{API_VERSION, KIND, RoutingPolicy, RoutingPolicySpec, RuleSpec, check_name};
use crate::FieldError;
use crate::document::cut;

// Ours, where the page gives a list or string no bound, since everything in a spec has one (control-plane 1.2): ids become
// labels of metrics, notes are for people.
const MAX_KEY: usize = 128;
const MAX_LANGUAGES: usize = 32;
const MAX_LANGUAGE: usize = 32;
const MAX_NOTE: usize = 1024;

/// Limits that the types do not keep: a list that is there and empty, a set that is written with repetitions.
pub(super) fn check_tree(tree: &Value) -> Option<FieldError> {
    let len = |value: &Value| value.as_array().map(Vec::len);
    let spec = tree.get("spec")?;
    if let Some(tiers) = spec.get("tiers").and_then(len)
        && let Some(error) = count("spec.tiers", tiers, 1, 4)
    {
        return Some(error);
    }
    let models = spec.get("models")?.as_array()?;
    models.iter().enumerate().find_map(|(at, model)| {
        ["efforts", "capabilities"].into_iter().find_map(|name| {
            let len = model.get(name).and_then(len)?;
            let least = usize::from(name == "efforts");
            count(&format!("spec.models[{at}].{name}"), len, least, 8)
        })
    })
}

/// The first limit that does not hold.
pub(super) fn check(policy: &RoutingPolicy) -> Option<FieldError> {
    if policy.api_version != API_VERSION {
        return Some(FieldError::new(
            "apiVersion",
            cut(&format!(
                "must be `{API_VERSION}`, is `{}`",
                policy.api_version
            )),
        ));
    }
    if policy.kind != KIND {
        return Some(FieldError::new(
            "kind",
            cut(&format!("must be `{KIND}`, is `{}`", policy.kind)),
        ));
    }
    check_name("metadata.name", &policy.metadata.name)
        .err()
        .or_else(|| {
            let server = policy.spec.server_ref.as_ref()?;
            check_name("spec.serverRef.name", &server.name).err()
        })
        .or_else(|| check_spec(&policy.spec))
}

fn check_spec(spec: &RoutingPolicySpec) -> Option<FieldError> {
    length("spec.profile", &spec.profile, 1, MAX_KEY).or_else(|| check_lists(spec))
}

fn check_lists(spec: &RoutingPolicySpec) -> Option<FieldError> {
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
        let Some(prices) = &model.prices else {
            continue;
        };
        let path = format!("spec.models[{at}].prices");
        let as_of = &prices.as_of;
        if as_of
            .parse::<Date>()
            .is_ok_and(|date| date.to_string() == *as_of)
        {
            let found = length(&format!("{path}.source"), &prices.source, 0, 128);
            if found.is_some() {
                return found;
            }
        } else {
            return Some(FieldError::new(
                format!("{path}.asOf"),
                cut(&format!("`{as_of}` is no date like 2026-11-30")),
            ));
        }
    }
    for (at, rule) in spec.rules.iter().enumerate() {
        let found = check_rule(at, rule);
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

fn check_rule(at: usize, rule: &RuleSpec) -> Option<FieldError> {
    let path = |name: &str| format!("spec.rules[{at}].{name}");
    let list = |name: &str, items: &[String], least, most, longest| {
        let path = path(name);
        count(&path, items.len(), least, most)
            .or_else(|| lengths(&path, items.iter().cloned(), longest))
    };
    list("patterns", &rule.patterns, 1, 32, 256)
        .or_else(|| list("unless", &rule.unless, 0, 32, 256))
        .or_else(|| list("languages", &rule.languages, 0, MAX_LANGUAGES, MAX_LANGUAGE))
        .or_else(|| length(&path("note"), rule.note.as_deref()?, 0, MAX_NOTE))
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
    items
        .enumerate()
        .find_map(|(at, item)| length(&format!("{path}[{at}]"), &item, 1, most))
}

fn length(path: &str, text: &str, least: usize, most: usize) -> Option<FieldError> {
    let len = text.chars().count();
    let wrong = !(least..=most).contains(&len);
    wrong.then(|| {
        FieldError::new(
            path,
            format!("has {len} characters, allowed are {least} to {most}"),
        )
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
        let len = key.chars().count();
        // A model reference keeps its own limit.
        if len > MAX_KEY && path != "spec.models" {
            return Some(FieldError::new(
                format!("{path}[{at}]"),
                format!("has a key of {len} characters, allowed are 1 to {MAX_KEY}"),
            ));
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
