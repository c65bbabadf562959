//! The data of language detection: `data/lang-tables.json`, read out of the package laya 0.4.15 (see NOTICE). Read once
//! per process; a test reads it too, so a table that does not parse never ships.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// First and last code point of each range.
type Ranges = Vec<(u32, u32)>;

/// Word lists, script ranges, letters and limits.
#[derive(Deserialize)]
pub(super) struct Tables {
    #[serde(deserialize_with = "script_ranges")]
    pub(super) script_ranges: Vec<(&'static str, Ranges)>,
    #[serde(deserialize_with = "ranges")]
    pub(super) post_database_letter_ranges: Ranges,
    #[serde(rename = "stop_words_in_order", deserialize_with = "word_lists")]
    pub(super) word_lists: Vec<(&'static str, HashSet<String>)>,
    pub(super) short_swedish_words: HashSet<String>,
    #[serde(deserialize_with = "letters")]
    pub(super) non_en_diacritics: HashSet<char>,
    pub(super) nordic_overlap_words: HashSet<String>,
    pub(super) en_collision_words: HashSet<String>,
    pub(super) shared_words: HashSet<String>,
    pub(super) en_only_words: HashSet<String>,
    pub(super) thresholds: Thresholds,
}

/// Limits of wire.md 9.1.
#[derive(Deserialize)]
pub(super) struct Thresholds {
    #[serde(rename = "NON_EN_DIACRITIC_RATE")]
    pub(super) non_english_rate: f64,
    #[serde(rename = "ENGLISH_RESCUE_DIACRITIC_RATE")]
    pub(super) rescue_rate: f64,
    #[serde(rename = "NON_LATIN_FRACTION")]
    pub(super) non_latin_fraction: f64,
    #[serde(rename = "NON_LATIN_MIN_FRACTION")]
    pub(super) non_latin_min_fraction: f64,
    #[serde(rename = "NON_LATIN_MIN_LETTERS")]
    pub(super) non_latin_min_letters: f64,
    #[serde(rename = "_SHOUTED_MIN_STOPWORD")]
    pub(super) shouted_listed_word: usize,
    #[serde(rename = "_SHOUTED_MIN_WORD")]
    pub(super) shouted_word: usize,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/lang-tables.json"))
        .expect("the shipped tables parse")
});

pub(super) fn get() -> &'static Tables {
    &TABLES
}

impl Tables {
    /// The words of a language.
    pub(super) fn words_of(&self, language: &str) -> Option<&HashSet<String>> {
        self.word_lists
            .iter()
            .find(|(code, _)| *code == language)
            .map(|(_, words)| words)
    }
}

/// A JSON object as pairs in the order of the file. The names are few, fixed and live as long as the process.
fn in_order<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(&'static str, V)>, D::Error> {
    struct InOrder<V>(std::marker::PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
        type Value = Vec<(&'static str, V)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, V>()? {
                pairs.push((&*name.leak(), value));
            }
            Ok(pairs)
        }
    }
    deserializer.deserialize_map(InOrder(std::marker::PhantomData))
}

fn bounds<E: serde::de::Error>(pairs: &[(String, String)]) -> Result<Ranges, E> {
    let hex =
        |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).map_err(E::custom);
    pairs
        .iter()
        .map(|(low, high)| Ok((hex(low)?, hex(high)?)))
        .collect()
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ranges, D::Error> {
    bounds(&Vec::deserialize(deserializer)?)
}

fn script_ranges<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(&'static str, Ranges)>, D::Error> {
    let scripts: Vec<(&'static str, Vec<(String, String)>)> = in_order(deserializer)?;
    scripts
        .into_iter()
        .map(|(name, pairs)| Ok((name, bounds(&pairs)?)))
        .collect()
}

fn word_lists<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(&'static str, HashSet<String>)>, D::Error> {
    in_order(deserializer)
}

fn letters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashSet<char>, D::Error> {
    Ok(String::deserialize(deserializer)?.chars().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_tables_are_those_of_the_page() {
        let tables = get();
        let codes: Vec<&str> = tables.word_lists.iter().map(|(code, _)| *code).collect();
        assert_eq!(
            codes,
            [
                "en", "fr", "de", "es", "pt", "it", "nl", "sv", "ro", "bn", "az"
            ]
        );
        assert_eq!(tables.script_ranges.len(), 25);
        let t = &tables.thresholds;
        assert_eq!(
            (
                t.non_english_rate,
                t.rescue_rate,
                t.non_latin_fraction,
                t.non_latin_min_fraction
            ),
            (0.02, 0.06, 0.2, 0.1)
        );
        assert_eq!(
            (
                t.non_latin_min_letters,
                t.shouted_word,
                t.shouted_listed_word
            ),
            (10.0, 5, 4)
        );
    }
}
