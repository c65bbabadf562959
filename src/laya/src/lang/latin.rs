//! Languages in Latin script by their function words and letters, and what capitals may say (wire.md 9.5, 9.6).

use std::collections::{HashMap, HashSet};

use super::{chars, tables};

/// What the words and letters of a text say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Profile {
    pub(super) language: Option<&'static str>,
    /// Share of listed letters, unrounded.
    pub(super) rate: f64,
    pub(super) looks_non_english: bool,
    /// Number of words.
    pub(super) words: usize,
}

impl Profile {
    pub(super) fn of(text: &str) -> Self {
        let tables = tables::get();
        let blanked = chars::lower(&chars::blank_identifiers(text));
        let words: Vec<&str> = chars::words(&blanked).collect();
        let rate = rate(text);
        let non_english = rate >= tables.thresholds.non_english_rate;
        let any = |list: &HashSet<String>| words.iter().any(|word| list.contains(*word));
        let nordic = any(&tables.nordic_overlap_words) && !any(&tables.en_only_words);
        let (language, looks_non_english) = if words.len() < 4 {
            if words.len() >= 2 && any(&tables.short_swedish_words) {
                (Some("sv"), non_english)
            } else {
                (None, non_english || nordic)
            }
        } else {
            let language = by_words(&words, rate);
            (language, non_english || (language.is_none() && nordic))
        };
        Self {
            language,
            rate,
            looks_non_english,
            words: words.len(),
        }
    }
}

/// Listed letters per code point of the lower-cased text.
fn rate(text: &str) -> f64 {
    let listed = &tables::get().non_en_diacritics;
    let (mut found, mut all) = (0usize, 0usize);
    for c in text.to_lowercase().chars() {
        all += 1;
        found += usize::from(listed.contains(&c));
    }
    found as f64 / all.max(1) as f64
}

fn by_words(words: &[&str], rate: f64) -> Option<&'static str> {
    let tables = tables::get();
    let mut occurrences: HashMap<&str, usize> = HashMap::new();
    for word in words {
        *occurrences.entry(word).or_default() += 1;
    }
    let score = |list: &HashSet<String>| -> usize {
        let found = occurrences.iter().filter(|(word, _)| list.contains(**word));
        found
            .map(|(word, n)| {
                if tables.en_collision_words.contains(*word) {
                    1
                } else {
                    *n
                }
            })
            .sum()
    };
    let own = |list: &HashSet<String>| {
        occurrences
            .keys()
            .any(|word| list.contains(*word) && !tables.shared_words.contains(*word))
    };
    let english = tables.words_of("en").map_or(0, score);
    let best = tables
        .word_lists
        .iter()
        .filter(|(code, list)| *code != "en" && own(list))
        .map(|(code, list)| (*code, score(list)))
        .reduce(|best, next| if next.1 > best.1 { next } else { best });

    let non_english = rate >= tables.thresholds.non_english_rate;
    if let Some((code, score)) = best {
        let has = |word: &str| occurrences.contains_key(word);
        let swedish = code == "sv"
            && has("inte")
            && has("kan")
            && matches!(words.first(), Some(&("kan" | "jag" | "vi")))
            && english <= 1;
        if score >= 2.max(english + 2) || swedish || (non_english && score >= 2.max(english)) {
            return Some(code);
        }
    }
    let rescued = || {
        let listed = |word: &&&str| word.chars().any(|c| tables.non_en_diacritics.contains(&c));
        rate < tables.thresholds.rescue_rate
            && occurrences
                .keys()
                .filter(|word| tables.en_only_words.contains(**word))
                .count()
                >= 2
            && occurrences.keys().filter(listed).count() <= 1
    };
    (english >= 1 && (!non_english || rescued())).then_some("en")
}

/// The language of a profile after a look at capitals, which only ever doubts another language than English.
pub(super) fn after_capitals(text: &str, profile: &Profile) -> Option<&'static str> {
    let language = profile.language.filter(|code| *code != "en");
    let Some(language) = language else {
        return profile.language;
    };
    if chars::is_shouted(text) {
        return has_evidence(text, profile.rate, language).then_some(language);
    }
    let runs: Vec<&str> = chars::words(text)
        .filter(|w| chars::is_run(w) && chars::is_shouted(w))
        .collect();
    let long = |run: &&str| run.chars().count() >= tables::get().thresholds.shouted_word;
    if runs.is_empty() || runs.iter().any(long) {
        return Some(language);
    }
    Profile::of(&chars::blank_runs(text, chars::is_shouted)).language
}

/// Whether a shouted text shows enough of a language: a long word, and listed letters or a listed word that is not too
/// short to be an abbreviation.
pub(super) fn has_evidence(text: &str, rate: f64, language: &str) -> bool {
    let tables = tables::get();
    let limits = &tables.thresholds;
    let list = tables.words_of(language);
    let listed = |word: &str| {
        word.chars().count() >= limits.shouted_listed_word
            && list.is_some_and(|list| list.contains(&word.to_lowercase()))
    };
    chars::words(text).any(|word| word.chars().count() >= limits.shouted_word)
        && (rate >= limits.non_english_rate || chars::words(text).any(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_words_name_no_language_but_short_swedish_ones() {
        for (text, language, looks) in [
            ("glömt lösenord", Some("sv"), true),
            ("lösenord", None, true),
            ("kvitto tack", Some("sv"), false),
            ("hej tack", None, true),
            ("hej please", None, false),
            ("", None, false),
        ] {
            let profile = Profile::of(text);
            assert_eq!(
                (profile.language, profile.looks_non_english),
                (language, looks),
                "{text}"
            );
        }
    }

    #[test]
    fn a_swedish_opening_is_enough() {
        assert_eq!(Profile::of("kan jag inte betala nu").language, Some("sv"));
    }
}
