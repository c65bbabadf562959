use decision::vocabulary::Effort;

use super::*;

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

fn small() -> Registry {
    let entry = |text: &str, tier| Entry::new(model(text), tier);
    Registry::new(vec![
        entry("north/oak", Tier::Strong),
        entry("south/fern", Tier::Fast),
        entry("north/moss", Tier::Fast),
    ])
    .unwrap()
}

fn listed(registry: &Registry) -> Vec<String> {
    registry
        .entries()
        .iter()
        .map(|entry| format!("{} {}", entry.tier, entry.model))
        .collect()
}

#[test]
fn the_built_in_registry_is_the_table_of_the_page() {
    let registry = Registry::built_in();
    let counts: Vec<_> = registry
        .tiers()
        .map(|(tier, entries)| (tier, entries.count()))
        .collect();
    assert_eq!(
        counts,
        [
            (Tier::Fast, 3),
            (Tier::Balanced, 3),
            (Tier::Strong, 3),
            (Tier::Frontier, 2)
        ]
    );
    assert_eq!(listed(registry)[0], "fast anthropic/claude-haiku-4-5");
    assert_eq!(listed(registry)[10], "frontier openai-codex/gpt-6.1-sol");
    for entry in registry.entries() {
        assert_eq!(entry.prices, None, "prices of {} are unknown", entry.model);
        assert_eq!(entry.efforts, EffortSet::ALL);
    }
}

#[test]
fn orders_by_tier_and_then_as_listed() {
    assert_eq!(
        listed(&small()),
        ["fast south/fern", "fast north/moss", "strong north/oak"]
    );
}

#[test]
fn replaces_a_tier_whole() {
    let mut registry = small();
    let mut oak = registry.entry(&model("north/oak")).unwrap().clone();
    oak.context_window = Some(7);
    registry.put(oak);
    registry
        .replace_tier(Tier::Fast, &[model("east/reed"), model("north/oak")])
        .unwrap();
    assert_eq!(listed(&registry), ["fast east/reed", "fast north/oak"]);
    let moved = registry.entry(&model("north/oak")).unwrap();
    assert_eq!(
        moved.context_window,
        Some(7),
        "what is known of a model moves with it"
    );
}

#[test]
fn refuses_lists_that_leave_a_question_open() {
    let twice = [
        (Tier::Fast, vec![model("a/b")]),
        (Tier::Strong, vec![model("a/b")]),
    ];
    assert!(matches!(
        small().replace_tiers(&twice),
        Err(RegistryError::Duplicate { .. })
    ));
    assert!(matches!(
        small().replace_tier(Tier::Fast, &[]),
        Err(RegistryError::EmptyTier { tier: Tier::Fast })
    ));
    let entry = Entry::new(model("a/b"), Tier::Fast);
    assert!(matches!(
        Registry::new(vec![entry.clone(), entry]),
        Err(RegistryError::Duplicate { .. })
    ));
}

#[test]
fn reads_every_field_and_no_other() {
    let text = r#"
        version = 1
        [[model]]
        ref = "north/oak"
        tier = "strong"
        efforts = ["low", "high"]
        context_window = 200000
        capabilities = ["tools"]
        disabled = true
        prices = { input = 3, cached_input = 0.3, output = 15, as_of = "2026-10-01", source = "price list" }
    "#;
    let registry = Registry::from_toml(text).unwrap();
    let oak = registry.entry(&model("north/oak")).unwrap();
    assert_eq!(
        oak.efforts,
        EffortSet::new(&[Effort::Low, Effort::High]).unwrap()
    );
    assert_eq!(
        oak.prices.as_ref().and_then(|prices| prices.cache_write),
        None
    );
    for (name, from, to) in [
        ("other field", "disabled", "enabled"),
        ("other tier", "\"strong\"", "\"huge\""),
        ("no effort", "[\"low\", \"high\"]", "[]"),
        ("other version", "version = 1", "version = 2"),
        ("negative price", "input = 3", "input = -3"),
        ("bad reference", "north/oak", "oak"),
    ] {
        assert!(
            Registry::from_toml(&text.replacen(from, to, 1)).is_err(),
            "{name}"
        );
    }
}

#[test]
fn the_digest_is_of_content_and_order() {
    let registry = small();
    assert!(registry.digest().starts_with("sha256:"));
    assert_eq!(registry.digest().len(), 7 + 64);
    assert_eq!(registry.digest(), small().digest());
    let mut turned = small();
    turned
        .replace_tier(Tier::Fast, &[model("north/moss"), model("south/fern")])
        .unwrap();
    assert_ne!(turned.digest(), registry.digest());
    let mut known = small();
    known.put(Entry {
        disabled: true,
        ..Entry::new(model("north/moss"), Tier::Fast)
    });
    assert_ne!(known.digest(), registry.digest());
}

#[test]
fn candidates_have_credentials_and_meet_the_constraints() {
    let mut registry = small();
    let tools: Capabilities = [Capability::Tools].into_iter().collect();
    registry.put(Entry {
        capabilities: Some(tools),
        ..Entry::new(model("north/blind"), Tier::Fast)
    });
    registry.put(Entry {
        disabled: true,
        ..Entry::new(model("north/off"), Tier::Fast)
    });
    registry.put(Entry::new(model("laya/auto"), Tier::Fast));
    let (candidates, refused) = registry.candidates(&CandidateQuery {
        providers: &["north".to_owned(), "laya".to_owned()],
        exclude: &[model("north/moss")],
        capabilities: [Capability::Vision].into_iter().collect(),
    });
    let names: Vec<_> = candidates
        .iter()
        .map(|candidate| (candidate.model.as_str(), candidate.order))
        .collect();
    assert_eq!(
        names,
        [("north/oak", 5)],
        "unknown capabilities are no obstacle"
    );
    let reasons: Vec<_> = refused
        .iter()
        .map(|(model, reason)| format!("{model} {reason}"))
        .collect();
    assert_eq!(
        reasons,
        [
            "south/fern no_credentials",
            "north/moss constraint",
            "north/blind constraint",
            "north/off constraint",
            "laya/auto constraint",
        ]
    );
}

#[test]
fn patches_change_what_they_name() {
    let mut registry = small();
    let patches: Vec<EntryPatch> = serde_json::from_str(
        r#"[
            {"ref": "south/fern", "context_window": 9},
            {"ref": "south/fern", "disabled": true},
            {"ref": "north/moss", "tier": "strong"},
            {"ref": "west/new"},
            {"ref": "west/known", "tier": "fast"}
        ]"#,
    )
    .unwrap();
    let warnings = registry.patch(&patches);
    assert_eq!(
        listed(&registry),
        [
            "fast south/fern",
            "fast west/known",
            "balanced west/new",
            "strong north/oak",
            "strong north/moss",
        ]
    );
    let fern = registry.entry(&model("south/fern")).unwrap();
    assert_eq!((fern.context_window, fern.disabled), (Some(9), true));
    let messages: Vec<_> = warnings
        .iter()
        .map(|warning| format!("{}: {}", warning.code, warning.message))
        .collect();
    assert_eq!(
        messages,
        ["capability_unknown: nothing is known of west/new; it counts as balanced"]
    );
    assert!(serde_json::from_str::<EntryPatch>(r#"{"ref": "a/b", "price": 1}"#).is_err());
}
