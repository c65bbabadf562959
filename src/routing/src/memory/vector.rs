//! Word weights of a corpus and the vectors of texts under them (routing.md 14).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::words::words;

/// In how many requests of a corpus each word occurs.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    requests: usize,
    occurs_in: HashMap<String, u32>,
}

impl Weights {
    /// Counts the words of all requests of the dataset, learned or not.
    pub fn of_requests<'a>(requests: impl IntoIterator<Item = &'a str>) -> Self {
        let mut weights = Self::default();
        for request in requests {
            weights.requests += 1;
            for word in words(request).into_iter().collect::<HashSet<_>>() {
                *weights.occurs_in.entry(word).or_default() += 1;
            }
        }
        weights
    }

    /// Number of requests counted.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Inverse document frequency, ln((N+1)/(df+1)) + 1, with df 0 for a word no request has (routing.md 14). At least 1.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "no corpus comes near 2^53 requests"
    )]
    pub fn idf(&self, word: &str) -> f64 {
        let occurs_in = self.occurs_in.get(word).copied().unwrap_or(0);
        ((self.requests as f64 + 1.0) / (f64::from(occurs_in) + 1.0)).ln() + 1.0
    }

    /// The vector of a text: (1 + ln count)·idf per content word, L2-normalised. Without content words it is empty.
    #[must_use]
    pub fn vector(&self, text: &str) -> Vector {
        self.vector_of_words(words(text))
    }

    pub(super) fn vector_of_words(&self, words: Vec<String>) -> Vector {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
        let mut terms: Vec<(String, f64)> = counts
            .into_iter()
            .map(|(word, count)| {
                let weight = (1.0 + f64::from(count).ln()) * self.idf(&word);
                (word, weight)
            })
            .collect();
        let norm = terms
            .iter()
            .map(|(_, weight)| weight * weight)
            .sum::<f64>()
            .sqrt();
        for (_, weight) in &mut terms {
            *weight /= norm;
        }
        Vector { terms }
    }
}

/// A text as weights of its words. Words are in order, so that sums do not depend on hashing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vector {
    terms: Vec<(String, f64)>,
}

impl Vector {
    /// Whether the text had no content word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Its words with their weights, in the order of the words.
    pub fn terms(&self) -> impl Iterator<Item = (&str, f64)> {
        self.terms
            .iter()
            .map(|(word, weight)| (word.as_str(), *weight))
    }
}

/// Cosine of two vectors of the same weights, 0..=1; 0 when either is empty.
#[must_use]
pub fn similarity(one: &Vector, other: &Vector) -> f64 {
    let mut sum = 0.0;
    let mut rest = other.terms.as_slice();
    for (word, weight) in &one.terms {
        let skip = rest.partition_point(|(candidate, _)| candidate < word);
        rest = rest.get(skip..).unwrap_or_default();
        if let Some((found, counterpart)) = rest.first()
            && found == word
        {
            sum += weight * counterpart;
        }
    }
    f64::min(sum, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_rare_words_more_and_unknown_words_most() {
        let weights = Weights::of_requests(["Fix the date parser", "Fix the form", "Fix fix fix"]);
        assert_eq!(weights.requests(), 3);
        assert!(
            (weights.idf("fix") - 1.0).abs() < 1e-12,
            "in all of them: ln(4/4) + 1"
        );
        assert!((weights.idf("date") - (2f64.ln() + 1.0)).abs() < 1e-12);
        assert!((weights.idf("crash") - (4f64.ln() + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn empty_texts_are_like_nothing() {
        let weights = Weights::of_requests([]);
        assert!(weights.vector("the of").is_empty());
        assert_eq!(similarity(&weights.vector(""), &weights.vector("")), 0.0);
        assert_eq!(
            similarity(&weights.vector("date"), &weights.vector("")),
            0.0
        );
        assert!((similarity(&weights.vector("date"), &weights.vector("Date")) - 1.0).abs() < 1e-12);
    }
}
