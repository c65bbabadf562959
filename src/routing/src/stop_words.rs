//! The stop list of routing.md 14: function words that carry no task. A data file, read once per process.

use std::collections::HashSet;
use std::sync::LazyLock;

static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    include_str!("../data/stop_words.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect()
});

/// Whether a folded word (lower case, marks removed) is a function word.
#[must_use]
pub fn is_stop(word: &str) -> bool {
    WORDS.contains(word)
}
