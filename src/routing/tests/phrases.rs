//! The phrase files: what must fire a deterministic rule and what must not, in every language (routing.md 5). A report
//! of a wrong rule becomes a line there.

use routing::keywords::Keywords;
use routing::rules;

const NONE: [&str; 0] = [];

/// The ids of the rules that fire on a phrase; `⏎` stands for a line break.
fn fired(phrase: &str) -> Vec<String> {
    let text = phrase.replace('⏎', "\n");
    let scan = Keywords::builtin().scan(&text);
    rules::fired(&scan, &NONE, &NONE)
        .iter()
        .map(|rule| rule.as_str().to_owned())
        .collect()
}

fn lines(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split('\t').collect())
}

fn by_language<'a>(
    rows: impl Iterator<Item = Vec<&'a str>>,
) -> std::collections::BTreeMap<&'a str, usize> {
    rows.fold(std::collections::BTreeMap::new(), |mut counts, row| {
        *counts.entry(row[0]).or_default() += 1;
        counts
    })
}

const LANGUAGES: [&str; 13] = [
    "en", "pt", "es", "de", "fr", "it", "zh", "ja", "ru", "ko", "pl", "cs", "tr",
];

#[test]
fn phrases_that_must_fire_do() {
    let file = include_str!("phrases/phrases_must.tsv");
    let mut wrong = Vec::new();
    for row in lines(file) {
        let [language, wanted, phrase] = row[..] else {
            panic!("not three columns: {row:?}")
        };
        let fired = fired(phrase);
        if !wanted
            .split(',')
            .all(|rule| fired.iter().any(|id| id == rule))
        {
            wrong.push(format!(
                "{language}: {phrase:?} fires {fired:?}, must fire {wanted}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} phrases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn phrases_that_must_not_fire_do_not() {
    let file = include_str!("phrases/phrases_must_not.tsv");
    let mut wrong = Vec::new();
    for row in lines(file) {
        let [language, phrase] = row[..] else {
            panic!("not two columns: {row:?}")
        };
        let fired = fired(phrase);
        if !fired.is_empty() {
            wrong.push(format!("{language}: {phrase:?} fires {fired:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} phrases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_files_hold_enough_of_every_language() {
    let must_not = by_language(lines(include_str!("phrases/phrases_must_not.tsv")));
    let must = by_language(lines(include_str!("phrases/phrases_must.tsv")));
    assert!(must_not.values().sum::<usize>() >= 200 && must.values().sum::<usize>() >= 100);
    for language in LANGUAGES {
        assert!(
            must_not.contains_key(language) && must.contains_key(language),
            "{language}"
        );
    }
}
