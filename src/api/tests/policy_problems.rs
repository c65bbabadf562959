//! What compiling a policy finds: the path in the document and whether the policy is used all the same.

#![allow(clippy::unwrap_used)]

use api::routing_policy::{PolicyError, RoutingPolicy, RoutingPolicySpec};
use routing::policy::{Policy, Problem, Severity};
use serde_json::{Value, json};

fn spec(spec: &Value) -> RoutingPolicySpec {
    let document = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "team"}, "spec": spec,
    });
    RoutingPolicy::read(&document.to_string()).unwrap().spec
}

fn compile(spec: &RoutingPolicySpec) -> Result<Policy, Vec<Problem>> {
    spec.compile("team", "2026-11-30".parse().unwrap())
        .map_err(|error| match error {
            PolicyError::Problems(problems) => problems,
            PolicyError::Document(error) => panic!("{error}"),
        })
}

fn has(name: &str, problems: &[Problem], severity: Severity, path: &str, told: &str) {
    let found = problems.iter().any(|problem| {
        problem.path == path && problem.severity == severity && problem.message.contains(told)
    });
    assert!(
        found,
        "{name}: no {severity:?} at {path} with `{told}` in {problems:#?}"
    );
}

#[test]
fn errors_keep_a_policy_from_being_used() {
    let own = |name: &str| json!({"name": name, "quality": "0.4", "cost": "0.3", "latency": "0.2", "risk": "0.1", "minSuccess": "0.8"});
    for (name, changed, path, told) in [
        (
            "UnknownModel",
            json!({"models": [{"ref": "acme/small"}], "tiers": [{"name": "fast", "models": ["acme/small", "acme/other"]}]}),
            "spec.tiers[fast].models",
            "`acme/other` is not in `models`",
        ),
        (
            "a model in two tiers",
            json!({"tiers": [{"name": "fast", "models": ["acme/a"]}, {"name": "strong", "models": ["acme/a"]}]}),
            "spec.tiers",
            "`acme/a` is listed twice",
        ),
        (
            "a model twice in a tier",
            json!({"tiers": [{"name": "fast", "models": ["acme/a", "acme/a"]}]}),
            "spec.tiers",
            "`acme/a` is listed twice",
        ),
        (
            "unknown profile",
            json!({"profile": "cheap"}),
            "spec.profile",
            "`cheap` is unknown; there are economy, balanced, quality, critical",
        ),
        (
            "unknown profile beside own ones",
            json!({"profile": "cheap", "profiles": [own("night")]}),
            "spec.profile",
            "there are night, economy",
        ),
        (
            "an own profile with a built-in's name",
            json!({"profiles": [own("economy")]}),
            "spec.profiles[economy]",
            "name of a built-in profile",
        ),
        (
            "a disabled rule that is not there",
            json!({"disabledRules": ["authentication", "pay"]}),
            "spec.disabledRules[1]",
            "`pay` is no built-in rule; there are production-database-migration",
        ),
        (
            "an added rule with a built-in's id",
            json!({"rules": [{"id": "authentication", "patterns": ["x"]}]}),
            "spec.rules[0].id",
            "id of a built-in rule",
        ),
        (
            "deadline too short",
            json!({"deadlines": {"timeoutMillis": 99}}),
            "spec.deadlines.timeoutMillis",
            "between 100 and 60000",
        ),
        (
            "deadline too long",
            json!({"deadlines": {"timeoutMillis": 60001}}),
            "spec.deadlines.timeoutMillis",
            "between 100 and 60000",
        ),
        (
            "breaker too short",
            json!({"deadlines": {"breakerSeconds": 0}}),
            "spec.deadlines.breakerSeconds",
            "between 1 and 3600",
        ),
        (
            "breaker too long",
            json!({"deadlines": {"breakerSeconds": 3601}}),
            "spec.deadlines.breakerSeconds",
            "between 1 and 3600",
        ),
        (
            "too many failures",
            json!({"escalateAfterFailures": 21}),
            "spec.escalateAfterFailures",
            "between 0 and 20",
        ),
        (
            "kept too short",
            json!({"privacy": {"retentionDays": 0}}),
            "spec.privacy.retentionDays",
            "between 1 and 3650",
        ),
        (
            "kept too long",
            json!({"privacy": {"retentionDays": 3651}}),
            "spec.privacy.retentionDays",
            "between 1 and 3650",
        ),
    ] {
        let problems = compile(&spec(&changed)).expect_err(name);
        has(name, &problems, Severity::Error, path, told);
    }
}

/// The reader refuses an empty tier; a spec that was built in another way is refused here.
#[test]
fn an_empty_tier_is_an_error() {
    let mut spec = spec(&json!({"tiers": [{"name": "fast", "models": ["acme/a"]}]}));
    spec.tiers[0].models.clear();
    let problems = compile(&spec).expect_err("EmptyTier");
    has(
        "EmptyTier",
        &problems,
        Severity::Error,
        "spec.tiers",
        "tier `fast` lists no model",
    );
}

const BAD_TERMS: &[(&str, &str, &str)] = &[
    (
        r#"{"rules": [{"id": "r", "patterns": ["ok", "a*b"]}]}"#,
        "spec.rules[0].patterns[1]",
        "`*` may only end a word",
    ),
    (
        r#"{"rules": [{"id": "r", "patterns": ["ok"], "unless": ["..."]}]}"#,
        "spec.rules[0].unless[0]",
        "gap",
    ),
    (
        r#"{"keywords": [{"id": "topic.auth"}, {"id": "topic.cats", "any": ["cat"]}]}"#,
        "spec.keywords[1].id",
        "topic.cats",
    ),
    (
        r#"{"keywords": [{"id": "topic.auth", "any": ["?!"]}]}"#,
        "spec.keywords[0].any[0]",
        "no letter or digit",
    ),
    (
        r#"{"keywords": [{"id": "topic.auth", "remove": ["never there"]}]}"#,
        "spec.keywords[0].remove[0]",
        "has no term",
    ),
];

/// BadPattern: a term that cannot be read, with what is wrong about it.
#[test]
fn terms_that_cannot_be_read_are_errors() {
    for (changed, path, told) in BAD_TERMS {
        let problems = compile(&spec(&serde_json::from_str(changed).unwrap())).expect_err(path);
        let end = path.split_once('[').map_or("", |(_, end)| end);
        let found = problems.iter().any(|problem| {
            problem.severity == Severity::Error
                && problem.path.ends_with(end)
                && problem.message.contains(told)
        });
        assert!(found, "{path}: {problems:#?}");
    }
}

/// The same with the whole path.
#[test]
fn terms_that_cannot_be_read_have_the_path_of_their_list() {
    for (changed, path, told) in BAD_TERMS {
        let problems = compile(&spec(&serde_json::from_str(changed).unwrap())).expect_err(path);
        has(path, &problems, Severity::Error, path, told);
    }
}

/// All problems at once, so that a person needs one pass to repair a file.
#[test]
fn every_problem_is_told_at_once() {
    let problems = compile(&spec(&json!({
        "profile": "cheap",
        "disabledRules": ["pay"],
        "escalateAfterFailures": 21,
        "models": [{"ref": "acme/small"}],
    })))
    .expect_err("three errors and a warning");
    let paths: Vec<_> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "spec.escalateAfterFailures",
            "spec.profile",
            "spec.disabledRules[0]",
            "spec.models[acme/small]"
        ]
    );
}

#[test]
fn warnings_leave_a_policy_in_use() {
    let priced = |as_of: &str| {
        json!({
            "tiers": [{"name": "fast", "models": ["acme/small"]}],
            "models": [{"ref": "acme/small", "prices": {"input": "1", "output": "5", "asOf": as_of, "source": "https://example.com"}}],
        })
    };
    for (name, changed, path, told) in [
        (
            "MissingPrice",
            json!({"tiers": [{"name": "fast", "models": ["acme/small"]}], "models": [{"ref": "acme/small"}]}),
            "spec.models[acme/small]",
            "has no prices",
        ),
        (
            "StalePrice, 91 days",
            priced("2026-08-31"),
            "spec.models[acme/small].prices.asOf",
            "more than 90 days ago",
        ),
        (
            "a model that no tier names",
            json!({"models": [{"ref": "acme/lost"}]}),
            "spec.models[acme/lost]",
            "is in no tier",
        ),
    ] {
        let policy =
            compile(&spec(&changed)).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
        assert_eq!(policy.warnings.len(), 1, "{name}: {:#?}", policy.warnings);
        has(name, &policy.warnings, Severity::Warning, path, told);
    }
    for (name, changed) in [("90 days", priced("2026-09-01")), ("nothing", json!({}))] {
        let policy = compile(&spec(&changed)).unwrap();
        assert_eq!(policy.warnings, [], "{name}");
    }
}

#[test]
fn what_is_written_holds() {
    let policy = compile(&spec(&json!({
        "profile": "night",
        "profiles": [{"name": "night", "quality": "0.2", "cost": "0.8", "latency": "0", "risk": "0", "minSuccess": "0.5"}],
        "disabledRules": ["authentication"],
        "rules": [{"id": "personal-data", "patterns": ["gdpr"], "floor": {"tier": "frontier"}}],
        "providers": ["acme"],
        "deadlines": {"timeoutMillis": 100, "breakerSeconds": 3600},
        "escalateAfterFailures": 0,
        "quota": [{"provider": "acme", "share": "0.25", "budgetPerDay": "12.50"}],
        "privacy": {"requestText": "None", "retentionDays": 3650},
    })))
    .unwrap();
    assert_eq!(policy.name, "team");
    assert_eq!(policy.digest[7..17], *policy.revision());
    assert_eq!(policy.added_rule_ids(), ["personal-data"]);
    let source = &policy.source;
    assert_eq!(source.profile, "night");
    assert_eq!(policy.profile("night").unwrap().cost.get(), 0.8);
    assert_eq!(source.providers.as_deref(), Some(&["acme".to_owned()][..]));
    assert_eq!(
        (
            source.deadlines.timeout_millis,
            source.deadlines.breaker_seconds
        ),
        (100, 3600)
    );
    assert_eq!(source.quota["acme"].share, 0.25);
    assert_eq!(source.quota["acme"].budget_per_day, Some(12.5));
    assert_eq!(
        (source.escalate_after_failures, source.retention_days),
        (0, 3650)
    );
}
