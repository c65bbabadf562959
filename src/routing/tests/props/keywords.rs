//! Keywords and derivation under arbitrary texts, terms and files: nothing panics, every text has an assessment, and
//! what holds for every text holds for odd ones too.

use proptest::prelude::*;
use routing::derive::derive;
use routing::keywords::{Group, GroupEdit, GroupFile, Keywords, term};
use routing::rules;
use routing::words::{Stream, Words};

const NONE: [&str; 0] = [];

/// Words that match something, between any characters at all.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("fix"),
        Just("login"),
        Just("production"),
        Just("migration"),
        Just("checkout"),
        Just("why"),
        Just("?"),
        Just("testes"),
        Just("修复登录"),
        Just("バグ"),
        Just("고쳐줘"),
        Just("ошибка"),
        Just("resetPassword"),
        Just("\0"),
        Just("\u{301}"),
        Just("\""),
        Just("„"),
        Just("src/a.rs"),
        Just("\u{202e}"),
        Just("ß"),
        Just("İ"),
        Just("..."),
    ];
    prop_oneof![
        prop::collection::vec(
            prop_oneof![word.prop_map(str::to_owned), any::<String>()],
            0..30
        )
        .prop_map(|w| w.join(" ")),
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_text_has_a_consistent_assessment(text in text()) {
        let scan = Keywords::builtin().scan(&text);
        let derived = derive(&scan);
        let assessment = &derived.assessment;
        prop_assert!(derived.complexity <= 4 && derived.risk <= 3 && derived.ambiguity <= 2);
        for number in [assessment.task.complexity, assessment.task.risk, assessment.task.ambiguity, assessment.task.reasoning] {
            prop_assert!((0.0..=1.0).contains(&number));
        }
        prop_assert!(assessment.confidence == 0.5 || assessment.confidence == 0.3);
        prop_assert_eq!(assessment.confidences.len(), 18);
        prop_assert!(!(derived.read_only && assessment.tools.requires_write));
        let rules = rules::fired(&scan, &NONE, &NONE);
        prop_assert!(!derived.explanatory || rules.is_empty(), "explanatory requests fire none");
        prop_assert!(rules.is_empty() || assessment.security_sensitive, "a built-in rule means the flag");
        // Twice the same.
        prop_assert_eq!(&derive(&Keywords::builtin().scan(&text)), &derived);
        for reason in derived.reasons(&scan) {
            prop_assert_eq!(reason.group.is_some() && reason.terms.is_empty(), false, "{:?}", reason);
        }
    }

    #[test]
    fn matches_lie_inside_the_text(text in text()) {
        let scan = Keywords::builtin().scan(&text);
        for group in Group::ALL {
            let mut before = None;
            for found in scan.all(*group) {
                prop_assert!(found.first <= found.last && found.last < scan.words().len(found.stream));
                prop_assert!(before <= Some((found.stream, found.first)), "in text order");
                before = Some((found.stream, found.first));
            }
        }
    }

    #[test]
    fn case_accents_and_spaces_change_no_match(text in "[a-zA-Zçãéñü ]{0,60}") {
        let topics = |text: &str| {
            let scan = Keywords::builtin().scan(text);
            Group::ALL.iter().map(|group| scan.all(*group).iter().filter(|m| m.stream == Stream::Plain).count()).collect::<Vec<_>>()
        };
        let lower = text.to_lowercase();
        prop_assert_eq!(topics(&text), topics(&lower));
        prop_assert_eq!(topics(&lower), topics(&lower.replace(' ', " \n\t ")));
        prop_assert_eq!(topics(&lower), topics(&lower.replace('ç', "c").replace('ã', "a").replace('é', "e\u{301}")));
    }

    #[test]
    fn what_stands_before_takes_no_floor_away(text in "[a-z ]{0,40}", prefix in "[bcdfgjklm]{3,9}( [bcdfgjklm]{3,9}){0,12}") {
        // Words of consonants match nothing; put before a text they move matches, and lose none.
        let count = |text: &str, group| Keywords::builtin().scan(text).all(group).len();
        let longer = format!("{prefix} {text}");
        for group in [Group::TopicAuth, Group::TopicPayment, Group::TopicVulnerability, Group::TopicProduction] {
            prop_assert!(count(&longer, group) >= count(&text, group), "{group} in {longer:?}");
        }
    }

    #[test]
    fn both_streams_read_the_same_letters(text in any::<String>()) {
        let words = Words::new(&text);
        let joined = |stream| words.iter(stream).collect::<String>();
        prop_assert_eq!(joined(Stream::Plain), joined(Stream::Camel));
        prop_assert!(words.content_words() <= words.len(Stream::Plain));
    }

    #[test]
    fn any_term_is_read_or_refused(term in any::<String>()) {
        let _ = term::read(&term, |_| ());
    }

    #[test]
    fn a_good_term_is_found_in_its_own_words(words in prop::collection::vec("[a-z]{2,8}", 1..5)) {
        let edit = GroupEdit { id: "follow.add".into(), any: vec![words.join(" ")], unless: vec![], remove: vec![] };
        let keywords = Keywords::builtin().with_edits(&[edit]).expect("a good term");
        let scan_text = format!("zzz {} zzz", words.join("-"));
        prop_assert!(keywords.scan(&scan_text).matches(Group::FollowAdd));
    }

    #[test]
    fn any_file_is_read_or_refused_with_a_line(text in prop_oneof![
        any::<String>(),
        "version = [0-9]\n(\\[\\[group\\]\\]\nid = \"(type.test|nope)\"\n(any|all) = \\[\"[a-z* .]{0,12}\"\\]\n){0,3}",
    ]) {
        if let Err(error) = GroupFile::parse_toml(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{}", error);
        }
    }
}
