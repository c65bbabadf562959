//! Properties of memory that hold for any text (routing.md 14).

use decision::vocabulary::{Effort, Tier};
use jiff::Timestamp;
use proptest::prelude::*;
use routing::memory::{
    LearnedTask, MemoryIndex, Standing, Thresholds, Weights, merge_key, similarity, words,
};

/// Texts that share words often enough to be close, mixed with any Unicode.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::collection::vec(
            prop_oneof!["fix", "date", "parser", "não", "botão", "Salvar", "don't", "登录按钮", "แก้บัก"], 0..8,
        ).prop_map(|words| words.join(" ")),
        1 => any::<String>(),
        1 => "\\PC{0,40}",
    ]
}

fn tasks(requests: &[String]) -> Vec<LearnedTask<usize>> {
    let task = |(at, request): (usize, &String)| LearnedTask {
        id: format!("s{at:05}"),
        request: request.clone(),
        lesson: (at % 2 == 0).then(|| "Look first.".to_owned()),
        created: Timestamp::UNIX_EPOCH,
        standing: match at % 5 {
            4 => Standing::Stale,
            level => Standing::InForce {
                tier: Tier::ALL[level % 4],
                effort: Effort::ALL[at % 5],
                labels: at,
            },
        },
    };
    requests.iter().enumerate().map(task).collect()
}

proptest! {
    #[test]
    fn similarity_is_a_symmetric_share(corpus in proptest::collection::vec(text(), 0..6), one in text(), other in text()) {
        let weights = Weights::of_requests(corpus.iter().map(String::as_str));
        let (one, other) = (weights.vector(&one), weights.vector(&other));
        let there = similarity(&one, &other);
        prop_assert!((0.0..=1.0).contains(&there), "{there}");
        prop_assert_eq!(there, similarity(&other, &one));
        let same = similarity(&one, &one);
        let least = if one.is_empty() { 0.0 } else { 1.0 - 1e-9 };
        prop_assert!((least..=1.0).contains(&same), "{same}");
    }

    #[test]
    fn the_index_gives_what_comparing_one_by_one_gives(requests in proptest::collection::vec(text(), 0..12), asked in text()) {
        let index = MemoryIndex::build(requests.iter().map(String::as_str), tasks(&requests));
        let asked_vector = index.weights().vector(&asked);
        let found = index.search(&asked, usize::MAX);
        for task in index.tasks() {
            let expected = similarity(&asked_vector, &index.weights().vector(&task.request));
            let got = found.iter().find(|found| found.task.id == task.id).map_or(0.0, |found| found.similarity);
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn the_route_is_close_enough_and_not_below_an_equally_close_task(
        requests in proptest::collection::vec(text(), 0..12), asked in text(),
    ) {
        let index = MemoryIndex::build(requests.iter().map(String::as_str), tasks(&requests));
        let recall = index.recall(&asked, Thresholds::default());
        prop_assert!(recall.lessons.len() <= 3);
        if let Some(route) = recall.route {
            prop_assert!(route.similarity >= 0.6 - 1e-9);
            let skipped: Vec<_> = recall.skipped.iter().map(|skipped| skipped.task.as_str()).collect();
            for found in index.search(&asked, usize::MAX) {
                if let Standing::InForce { tier, .. } = found.task.standing
                    && found.similarity >= route.similarity
                    && !skipped.contains(&found.task.id.as_str())
                {
                    prop_assert!(tier <= route.tier);
                }
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(requests in proptest::collection::vec(text(), 1..10), asked in text()) {
        let forward = MemoryIndex::build(requests.iter().map(String::as_str), tasks(&requests));
        let mut turned = tasks(&requests);
        turned.reverse();
        let backward = MemoryIndex::build(requests.iter().rev().map(String::as_str), turned);
        let ids = |index: &MemoryIndex<usize>| {
            let recall = index.recall(&asked, Thresholds::default());
            let lessons: Vec<_> = recall.lessons.iter().map(|found| found.task.id.clone()).collect();
            (recall.route.map(|found| found.task.id.clone()), lessons, recall.skipped)
        };
        prop_assert_eq!(ids(&forward), ids(&backward));
    }

    #[test]
    fn runs_without_word_breaks_become_overlapping_pairs(run in "[一-龥]{2,12}|[ก-ฮ]{2,12}|[ァ-ヶー]{2,12}") {
        let words = words(&run);
        // Folding keeps the number of letters: marks of voiced Kana fall away with their own code points.
        prop_assert_eq!(words.len(), run.chars().count() - 1);
        for pair in words.windows(2) {
            prop_assert_eq!(pair[0].chars().nth(1), pair[1].chars().next());
        }
    }

    #[test]
    fn words_are_folded_already(text in text()) {
        for word in words(&text) {
            prop_assert!(word.chars().count() >= 2);
            prop_assert!(word.chars().all(char::is_alphanumeric), "{word:?}");
        }
    }

    #[test]
    fn a_merge_key_is_its_own_merge_key(text in any::<String>()) {
        let key = merge_key(&text);
        prop_assert_eq!(merge_key(&key), key);
    }
}
