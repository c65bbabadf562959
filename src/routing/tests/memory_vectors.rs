//! The memory vectors of routing.md 23.7.

use std::collections::BTreeMap;

use decision::vocabulary::{Effort, Tier};
use jiff::Timestamp;
use routing::memory::{Guard, LearnedTask, MemoryIndex, Standing, Thresholds, similarity, words};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    #[serde(rename = "source")]
    _source: String,
    tolerance: f64,
    corpus: Vec<String>,
    learned: BTreeMap<String, usize>,
    recalls: Vec<RecallRow>,
    words: Vec<WordsRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallRow {
    text: String,
    similarity: Vec<f64>,
    route: Option<String>,
    guards: Vec<Guard>,
    lessons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordsRow {
    text: String,
    words: Vec<String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors/memory.json"))
        .expect("the vectors are JSON of this form")
}

fn index(vectors: &Vectors) -> MemoryIndex<()> {
    let tasks = vectors.learned.iter().map(|(id, at)| LearnedTask {
        id: id.clone(),
        request: vectors.corpus[*at].clone(),
        lesson: Some(format!("lesson of {id}")),
        created: Timestamp::UNIX_EPOCH,
        standing: Standing::InForce {
            tier: Tier::Balanced,
            effort: Effort::Medium,
            labels: (),
        },
    });
    MemoryIndex::build(vectors.corpus.iter().map(String::as_str), tasks.collect())
}

#[test]
fn recalls_the_tasks_of_the_vectors() {
    let vectors = vectors();
    let index = index(&vectors);
    for row in &vectors.recalls {
        let asked = index.weights().vector(&row.text);
        for (task, expected) in index.tasks().iter().zip(&row.similarity) {
            let got = similarity(&asked, &index.weights().vector(&task.request));
            assert!(
                (got - expected).abs() <= vectors.tolerance,
                "{:?} and {}: {got}",
                row.text,
                task.id
            );
        }
        let recall = index.recall(&row.text, Thresholds::default());
        assert_eq!(
            recall.route.map(|found| found.task.id.clone()),
            row.route,
            "route of {:?}",
            row.text
        );
        let guards: Vec<_> = recall.skipped.iter().map(|skipped| skipped.guard).collect();
        assert_eq!(guards, row.guards, "guards of {:?}", row.text);
        let lessons: Vec<_> = recall
            .lessons
            .iter()
            .map(|found| found.task.id.clone())
            .collect();
        assert_eq!(lessons, row.lessons, "lessons of {:?}", row.text);
    }
}

#[test]
fn cuts_words_as_the_vectors_do() {
    for row in vectors().words {
        assert_eq!(words(&row.text), row.words, "{:?}", row.text);
    }
}
