//! Vectors 23.3 and 23.4, and what they do not reach.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::*;
use crate::follow_up::switch_price;
use crate::registry::Prices;
use crate::thinking::EffortSet;

fn candidate(name: &str, tier: Tier, provider: &str, order: u32) -> Candidate {
    Candidate {
        model: ModelRef::parse(&format!("{provider}/{name}")).unwrap(),
        tier,
        order,
        efforts: EffortSet::ALL,
        context_window: None,
        capabilities: None,
        prices: None,
    }
}

/// The candidates of 23.4.
fn six() -> Vec<Candidate> {
    [
        ("haiku", Tier::Fast, "A"),
        ("luna", Tier::Fast, "O"),
        ("sonnet", Tier::Balanced, "A"),
        ("terra", Tier::Balanced, "O"),
        ("opus", Tier::Strong, "A"),
        ("fable", Tier::Frontier, "A"),
    ]
    .iter()
    .zip(0..)
    .map(|((name, tier, provider), order)| candidate(name, *tier, provider, order))
    .collect()
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

fn full(_: &str) -> Ratio {
    Ratio::ONE
}

fn untried(_: &ModelRef) -> Evidence {
    Evidence::NONE
}

fn input<'a>(candidates: &'a [Candidate], profile: &'a Profile) -> SelectionInput<'a> {
    SelectionInput {
        candidates,
        required_tier: Tier::Balanced,
        min_tier: Tier::Fast,
        task_risk: ratio(0.2),
        profile,
        availability: &full,
        evidence: &untried,
        switch: None,
        context_tokens: 0,
        cost_basis: CostBasis::Tiers,
        estimate: None,
        on_floor_unmet: OnFloorUnmet::Strongest,
    }
}

fn close(got: f64, wanted: f64) -> bool {
    (got - wanted).abs() <= 5e-5
}

fn ids(selection: &Selection) -> Vec<&str> {
    selection
        .ranked
        .iter()
        .map(|scored| scored.candidate.model.id())
        .collect()
}

fn codes(selection: &Selection) -> Vec<&'static str> {
    selection
        .warnings
        .iter()
        .map(|warning| warning.code.as_str())
        .collect()
}

#[derive(Deserialize)]
struct Vectors<Row> {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UtilityRow {
    profile: String,
    required: Tier,
    cells: [(f64, f64, bool); 4],
    winner: Tier,
    #[serde(default)]
    warnings: Vec<String>,
}

#[test]
fn vectors_23_3_utilities() {
    let file = include_str!("../../tests/vectors/utilities.json");
    let vectors: Vectors<UtilityRow> = serde_json::from_str(file).unwrap();
    let candidates: Vec<_> = Tier::ALL
        .iter()
        .zip(0..)
        .map(|(tier, order)| candidate(tier.as_str(), *tier, "P", order))
        .collect();
    assert_eq!(vectors.rows.len(), 16);
    for row in vectors.rows {
        let name = format!("{}, {}", row.profile, row.required);
        let profile = Profile::built_in(&row.profile).unwrap();
        let selection = select(&SelectionInput {
            required_tier: row.required,
            ..input(&candidates, &profile)
        })
        .unwrap();
        for (tier, (success, utility, eligible)) in Tier::ALL.iter().zip(row.cells) {
            let scored = selection
                .ranked
                .iter()
                .find(|scored| scored.candidate.tier == *tier)
                .unwrap();
            assert!(
                close(scored.success, success),
                "{name}: success of {tier} is {}",
                scored.success
            );
            assert!(
                close(scored.utility, utility),
                "{name}: utility of {tier} is {}",
                scored.utility
            );
            assert_eq!(
                scored.eligible != Eligible::No,
                eligible,
                "{name}: {tier} eligible"
            );
        }
        assert_eq!(
            selection.winner().unwrap().candidate.tier,
            row.winner,
            "{name}: winner"
        );
        assert_eq!(codes(&selection), row.warnings, "{name}: warnings");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectionRow {
    name: String,
    profile: Option<String>,
    required: Option<Tier>,
    min: Option<Tier>,
    only: Option<Vec<String>>,
    #[serde(default)]
    availability: BTreeMap<String, Ratio>,
    #[serde(default)]
    history: BTreeMap<String, (f64, f64)>,
    switch: Option<SwitchRow>,
    on_floor_unmet: Option<OnFloorUnmet>,
    #[serde(default)]
    first: Vec<(String, Option<f64>, Option<f64>)>,
    ranking: Option<Vec<String>>,
    #[serde(default)]
    eligible: BTreeMap<String, Eligible>,
    #[serde(default)]
    excluded: Vec<String>,
    dropped: Option<BTreeMap<String, Exclusion>>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    refused: bool,
    explore: Option<ExploreRow>,
    explored: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchRow {
    current: String,
    cached_tokens: u64,
    seconds_ago: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExploreRow {
    draw: Ratio,
    hours_ago: Option<i64>,
}

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

#[test]
fn vectors_23_4_selection() {
    let file = include_str!("../../tests/vectors/selection.json");
    let vectors: Vectors<SelectionRow> = serde_json::from_str(file).unwrap();
    assert_eq!(vectors.rows.len(), 25);
    for row in vectors.rows {
        check(&row);
    }
}

fn check(row: &SelectionRow) {
    let name = &row.name;
    let known = |candidate: &Candidate| {
        row.only.as_ref().is_none_or(|only| {
            only.iter()
                .any(|word| word == candidate.model.id() || word == candidate.model.provider())
        })
    };
    let all = six();
    let candidates: Vec<_> = all
        .iter()
        .filter(|candidate| known(candidate))
        .cloned()
        .collect();
    let current = row.switch.as_ref().map(|switch| {
        let used = NOW - SignedDuration::from_secs(switch.seconds_ago);
        let current = all
            .iter()
            .find(|candidate| candidate.model.id() == switch.current)
            .unwrap();
        (
            current.model.clone(),
            switch_price(switch.cached_tokens, used, NOW),
        )
    });
    let profile = Profile::built_in(row.profile.as_deref().unwrap_or("balanced")).unwrap();
    let input = SelectionInput {
        required_tier: row.required.unwrap_or(Tier::Balanced),
        min_tier: row.min.unwrap_or(Tier::Fast),
        availability: &|provider| {
            row.availability
                .get(provider)
                .copied()
                .unwrap_or(Ratio::ONE)
        },
        evidence: &|model| {
            let (successes, failures) = row.history.get(model.id()).copied().unwrap_or_default();
            Evidence::new(successes, failures).unwrap()
        },
        switch: current.as_ref().map(|(current, price)| Switch {
            current,
            price: *price,
        }),
        on_floor_unmet: row.on_floor_unmet.unwrap_or_default(),
        ..input(&candidates, &profile)
    };
    let result = select(&input);
    assert_eq!(result.is_err(), row.refused, "{name}: refused");
    let Ok(selection) = result else { return };
    for ((id, success, utility), scored) in row.first.iter().zip(&selection.ranked) {
        assert_eq!(
            scored.candidate.model.id(),
            id,
            "{name}: ranking {:?}",
            ids(&selection)
        );
        assert!(
            success.is_none_or(|s| close(scored.success, s)),
            "{name}: success {}",
            scored.success
        );
        assert!(
            utility.is_none_or(|u| close(scored.utility, u)),
            "{name}: utility {}",
            scored.utility
        );
    }
    if let Some(ranking) = &row.ranking {
        assert_eq!(ids(&selection), *ranking, "{name}: ranking");
    }
    let excluded: Vec<_> = selection
        .ranked
        .iter()
        .filter(|s| s.excluded)
        .map(|s| s.candidate.model.id())
        .collect();
    if row.explore.is_none() {
        assert_eq!(excluded, row.excluded, "{name}: excluded by history");
    }
    for (id, eligible) in &row.eligible {
        let scored = selection
            .ranked
            .iter()
            .find(|s| s.candidate.model.id() == id)
            .unwrap();
        assert_eq!(scored.eligible, *eligible, "{name}: {id}");
    }
    if let Some(dropped) = &row.dropped {
        let got: BTreeMap<_, _> = selection
            .dropped
            .iter()
            .map(|(model, reason)| (model.id().to_owned(), *reason))
            .collect();
        assert_eq!(got, *dropped, "{name}: dropped");
    }
    assert_eq!(codes(&selection), row.warnings, "{name}: warnings");
    if let Some(exploration) = &row.explore {
        let asked = ExplorationInput {
            required_tier: input.required_tier,
            min_tier: input.min_tier,
            draw: exploration.draw,
            last_explored: exploration
                .hours_ago
                .map(|hours| NOW - SignedDuration::from_hours(hours)),
            ..exploring()
        };
        let explored = explore(&selection, &asked).ok();
        let explored = explored.map(|at| selection.ranked[at].candidate.model.id());
        assert_eq!(explored, row.explored.as_deref(), "{name}: explored");
    }
}

fn exploring() -> ExplorationInput {
    ExplorationInput {
        rate: ratio(0.05),
        draw: ratio(0.03),
        required_tier: Tier::Balanced,
        min_tier: Tier::Fast,
        task_risk: ratio(0.2),
        explicit: false,
        new_task: true,
        stored: true,
        last_explored: None,
        now: NOW,
    }
}

#[test]
fn explores_only_where_it_may() {
    let (candidates, profile) = (six(), Profile::default());
    let selection = select(&input(&candidates, &profile)).unwrap();
    let may = exploring();
    for (name, asked, wanted) in [
        ("little known is enough", may, Ok("terra")),
        (
            "off",
            ExplorationInput {
                rate: Ratio::ZERO,
                draw: Ratio::ZERO,
                ..may
            },
            Err(NotExplored::Draw),
        ),
        (
            "explicit",
            ExplorationInput {
                explicit: true,
                ..may
            },
            Err(NotExplored::Explicit),
        ),
        (
            "same task",
            ExplorationInput {
                new_task: false,
                ..may
            },
            Err(NotExplored::SameTask),
        ),
        (
            "not stored",
            ExplorationInput {
                stored: false,
                ..may
            },
            Err(NotExplored::NotStored),
        ),
        (
            "sensitive",
            ExplorationInput {
                min_tier: Tier::Strong,
                ..may
            },
            Err(NotExplored::Sensitive),
        ),
        (
            "risk",
            ExplorationInput {
                task_risk: ratio(0.66),
                ..may
            },
            Err(NotExplored::Risk),
        ),
        (
            "just below the risk",
            ExplorationInput {
                task_risk: ratio(0.65),
                ..may
            },
            Ok("terra"),
        ),
        (
            "winner below required",
            ExplorationInput {
                required_tier: Tier::Strong,
                ..may
            },
            Err(NotExplored::BelowRequired),
        ),
    ] {
        let got = explore(&selection, &asked).map(|at| selection.ranked[at].candidate.model.id());
        assert_eq!(got, wanted, "{name}");
    }
}

#[test]
fn explores_neither_well_known_nor_exhausted_models() {
    let (candidates, profile) = (six(), Profile::default());
    let known = |model: &ModelRef| match model.id() {
        "terra" => Evidence::new(2.5, 0.5).unwrap(),
        "sonnet" => Evidence::new(9.0, 0.0).unwrap(),
        _ => Evidence::NONE,
    };
    let selection = select(&SelectionInput {
        evidence: &known,
        ..input(&candidates, &profile)
    })
    .unwrap();
    assert_eq!(
        explore(&selection, &exploring()),
        Err(NotExplored::Nobody),
        "3 runs and not excluded"
    );
    let scarce = |provider: &str| {
        if provider == "O" {
            ratio(0.49)
        } else {
            Ratio::ONE
        }
    };
    let selection = select(&SelectionInput {
        availability: &scarce,
        ..input(&candidates, &profile)
    })
    .unwrap();
    assert_eq!(
        explore(&selection, &exploring()),
        Err(NotExplored::Nobody),
        "availability below a half"
    );
}

#[test]
fn explores_each_of_several_with_the_same_chance() {
    let profile = Profile::default();
    let candidates: Vec<_> = ["a", "b", "c", "d"]
        .iter()
        .zip(0..)
        .map(|(name, order)| candidate(name, Tier::Balanced, "P", order))
        .collect();
    let selection = select(&input(&candidates, &profile)).unwrap();
    let mut counts = [0; 4];
    for step in 0..300 {
        let draw = ratio(0.05 * (f64::from(step) + 0.5) / 300.0);
        counts[explore(
            &selection,
            &ExplorationInput {
                draw,
                ..exploring()
            },
        )
        .unwrap()] += 1;
    }
    assert_eq!(counts, [0, 100, 100, 100]);
}

#[test]
fn drops_windows_too_small_for_the_conversation_and_a_fifth() {
    let profile = Profile::default();
    for (name, window, tokens, kept) in [
        ("exactly a fifth more", Some(120_000), 100_000, true),
        ("one token less", Some(119_999), 100_000, false),
        ("unknown window", None, 100_000, true),
        ("no conversation", Some(1), 0, true),
        ("no overflow", Some(u64::MAX), u64::MAX, false),
    ] {
        let mut candidates = six();
        candidates[2].context_window = window;
        let selection = select(&SelectionInput {
            context_tokens: tokens,
            ..input(&candidates, &profile)
        })
        .unwrap();
        assert_eq!(ids(&selection).contains(&"sonnet"), kept, "{name}");
        let dropped = selection
            .dropped
            .iter()
            .any(|(_, reason)| *reason == Exclusion::ContextWindow);
        assert_eq!(dropped, !kept, "{name}: dropped with the reason");
    }
}

#[test]
fn says_why_there_is_no_candidate() {
    let profile = Profile::default();
    let none = select(&input(&[], &profile)).unwrap_err();
    assert_eq!(none.cause, NoCandidateCause::None);
    let mut candidates = six();
    for candidate in &mut candidates {
        candidate.context_window = Some(100);
    }
    let narrow = select(&SelectionInput {
        context_tokens: 1000,
        ..input(&candidates, &profile)
    })
    .unwrap_err();
    assert_eq!(narrow.cause, NoCandidateCause::ContextWindow);
    assert_eq!(narrow.dropped.len(), 6);
    let weak = SelectionInput {
        min_tier: Tier::Strong,
        on_floor_unmet: OnFloorUnmet::Refuse,
        ..input(&candidates[..2], &profile)
    };
    let weak = select(&weak).unwrap_err();
    assert_eq!(
        weak.to_string(),
        "none of 2 models is of tier strong or above, and policy refuses weaker ones"
    );
}

#[test]
fn an_unmet_floor_takes_the_strongest_tier_that_is_available() {
    let (candidates, profile) = (six(), Profile::default());
    let weak = &candidates[..3]; // haiku and sonnet of A, luna of O
    for (name, exhausted, winner, warnings) in [
        (
            "all there",
            "",
            "sonnet",
            &["floor_not_met", "below_minimum_success"][..],
        ),
        (
            "the strongest is away",
            "A",
            "luna",
            &["floor_not_met", "below_minimum_success"],
        ),
        (
            "all away",
            "AO",
            "sonnet",
            &[
                "floor_not_met",
                "provider_unavailable",
                "below_minimum_success",
            ],
        ),
    ] {
        let availability = |provider: &str| {
            if exhausted.contains(provider) {
                Ratio::ZERO
            } else {
                Ratio::ONE
            }
        };
        let selection = select(&SelectionInput {
            min_tier: Tier::Strong,
            required_tier: Tier::Strong,
            availability: &availability,
            ..input(weak, &profile)
        })
        .unwrap();
        assert_eq!(ids(&selection)[0], winner, "{name}");
        assert_eq!(codes(&selection), warnings, "{name}");
    }
}

#[test]
fn a_floor_that_only_small_windows_reach_is_not_met() {
    let profile = Profile::default();
    let mut candidates = six();
    for candidate in &mut candidates[4..] {
        candidate.context_window = Some(1000);
    }
    let asked = SelectionInput {
        min_tier: Tier::Strong,
        required_tier: Tier::Strong,
        context_tokens: 1000,
        ..input(&candidates, &profile)
    };
    let selection = select(&asked).unwrap();
    assert_eq!(ids(&selection), ["sonnet", "terra"]);
    assert_eq!(
        codes(&selection),
        ["floor_not_met", "below_minimum_success"]
    );
    let dropped: Vec<_> = selection
        .dropped
        .iter()
        .map(|(model, reason)| (model.id(), *reason))
        .collect();
    assert_eq!(
        dropped,
        [
            ("haiku", Exclusion::BelowMinTier),
            ("luna", Exclusion::BelowMinTier),
            ("opus", Exclusion::ContextWindow),
            ("fable", Exclusion::ContextWindow),
        ]
    );
}

#[test]
fn the_switching_price_is_ignored_where_staying_is_not_an_option() {
    let (candidates, profile) = (six(), Profile::default());
    let gone = ModelRef::parse("A/gone").unwrap();
    for (name, current, required, pays) in [
        (
            "current meets the requirement",
            &candidates[2].model,
            Tier::Balanced,
            true,
        ),
        (
            "current is below the requirement",
            &candidates[0].model,
            Tier::Balanced,
            false,
        ),
        ("current is no candidate", &gone, Tier::Balanced, false),
    ] {
        let switch = Some(Switch {
            current,
            price: Ratio::ONE,
        });
        let selection = select(&SelectionInput {
            switch,
            required_tier: required,
            ..input(&candidates, &profile)
        })
        .unwrap();
        let paid = selection
            .ranked
            .iter()
            .filter(|scored| scored.switch_cost > 0.0)
            .count();
        assert_eq!(paid, if pays { 5 } else { 0 }, "{name}");
    }
}

#[test]
fn prices_spread_cost_between_cheapest_and_dearest() {
    let (candidates, profile) = (six(), Profile::default());
    let usd = |value: f64| Some(Usd::new(value).unwrap());
    let estimates =
        |values: [Option<Usd>; 6]| move |candidate: &Candidate| values[candidate.order as usize];
    let known = estimates([usd(0.01), usd(0.02), usd(0.1), usd(0.1), usd(1.0), usd(1.0)]);
    let equal = estimates([usd(1.0); 6]);
    let unknown = estimates([usd(0.01), None, usd(0.1), usd(0.1), usd(1.0), usd(1.0)]);
    let free = estimates([usd(0.0), usd(1.0), usd(1.0), usd(1.0), usd(1.0), usd(1.0)]);
    for (name, estimate, haiku, sonnet) in [
        ("known", &known as EstimateOf<'_>, 0.10, 0.10 + 0.75 / 2.0),
        ("equal", &equal, 0.10, 0.35),
        ("one unknown", &unknown, 0.10, 0.35),
        ("free", &free, 0.10, 0.85),
    ] {
        let asked = SelectionInput {
            cost_basis: CostBasis::Prices,
            estimate: Some(estimate),
            ..input(&candidates, &profile)
        };
        let selection = select(&asked).unwrap();
        let cost = |id: &str| {
            selection
                .ranked
                .iter()
                .find(|s| s.candidate.model.id() == id)
                .unwrap()
                .cost
        };
        assert!(
            close(cost("haiku"), haiku),
            "{name}: haiku {}",
            cost("haiku")
        );
        assert!(
            close(cost("sonnet"), sonnet),
            "{name}: sonnet {}",
            cost("sonnet")
        );
    }
}

#[test]
fn alternatives_are_the_next_three_others() {
    let (candidates, profile) = (six(), Profile::default());
    let selection = select(&input(&candidates, &profile)).unwrap();
    let next = |chosen| {
        selection
            .alternatives(chosen)
            .map(|s| s.candidate.model.id())
            .collect::<Vec<_>>()
    };
    assert_eq!(next(0), ["terra", "opus", "fable"]);
    assert_eq!(
        next(1),
        ["sonnet", "opus", "fable"],
        "the winner is an alternative of the explored one"
    );
}

/// `Prices` is not looked at by selection; only estimates are.
#[test]
fn prices_alone_change_nothing() {
    let profile = Profile::default();
    let mut candidates = six();
    let plain = select(&input(&candidates, &profile)).unwrap();
    let text = r#"{"input":900,"output":900,"as_of":"2026-01-01","source":"s"}"#;
    let prices: Prices = serde_json::from_str(text).unwrap();
    candidates[2].prices = Some(prices);
    let priced = select(&input(&candidates, &profile)).unwrap();
    assert_eq!(ids(&plain), ids(&priced));
}
