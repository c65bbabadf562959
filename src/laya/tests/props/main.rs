//! Properties over random input: detection is total, rows keep to their budgets, tokens never leave the vocabulary.

use decision::json::Value;
use laya::lang::detect;
use laya::{Budget, Keep, QuestionTokens, Specials, build_row, plan_passes};
use proptest::prelude::*;

const SPECIALS: Specials = Specials {
    cls: 1,
    sep: 2,
    pad: 0,
    mask: 3,
};

fn states() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[A-ZÅÄÖa-zß0-9 .,\n(=_İǅ½Ⅳ]{0,60}",
        "(kan|jag|inte|und|der|où|не|где|ab|AB) ?\n?"
    ];
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(8, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-z]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn detection_is_total_and_holds_together(state in states()) {
        let found = detect(&state);
        let sum: f64 = found.script_profile.iter().map(|(_, share)| share).sum();
        prop_assert!(found.script_profile.is_empty() || (sum - 1.0).abs() < 1e-9);
        prop_assert_eq!(found.script == "unknown", found.script_profile.is_empty());
        prop_assert_eq!(found.language_undecided, found.language.is_none());
        prop_assert!((0.0..=1.0).contains(&found.diacritic_rate) && (0.0..=1.0).contains(&found.non_latin_fraction));
        prop_assert!(found.mixed_segment.is_none() || (!found.is_english && found.language.is_some()));
    }

    #[test]
    fn rows_keep_to_their_budgets(
        prompt in 0usize..80,
        options in proptest::collection::vec(0usize..70, 1..40),
        state in 0usize..400,
        max_len in 1usize..300,
        head_max_len in 1usize..200,
        last in any::<bool>(),
    ) {
        let tokens = |n: usize| (100..100 + n as u32).collect::<Vec<u32>>();
        let question = QuestionTokens { prompt: tokens(prompt), options: options.iter().map(|n| tokens(*n)).collect() };
        let keep = if last { Keep::Last } else { Keep::First };
        let row = build_row(SPECIALS, &question, &tokens(state), keep, Budget { max_len, head_max_len });
        prop_assert!(row.ids.len() <= max_len && row.ids[0] == SPECIALS.cls);
        prop_assert!(row.markers.len() <= options.len());
        prop_assert!(row.markers.iter().all(|m| row.ids[*m] == SPECIALS.mask));
        prop_assert!(row.markers.windows(2).all(|w| w[0] < w[1]));
        prop_assert!(row.state_tokens_used <= state);
        prop_assert!((1..=options.len()).contains(&row.distinct_options));
        if row.ids.len() < max_len {
            prop_assert_eq!(row.state_tokens_used, state, "nothing is dropped while there is room");
            prop_assert_eq!(row.markers.len(), options.len());
        }
    }

    #[test]
    fn passes_cover_every_row_once(lengths in proptest::collection::vec(1usize..600, 0..60), limit in 1usize..1000) {
        let passes = plan_passes(&lengths, limit);
        let rows: Vec<usize> = passes.iter().cloned().flatten().collect();
        prop_assert_eq!(rows, (0..lengths.len()).collect::<Vec<_>>());
        for pass in passes {
            prop_assert!(pass.len() == 1 || lengths[pass].iter().sum::<usize>() <= limit);
        }
    }
}
