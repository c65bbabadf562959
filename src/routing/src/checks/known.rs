//! Which simple commands are checks: the terms of `data/checks.toml` and how they are compared.

use std::sync::LazyLock;

use serde::Deserialize;

use super::shell::Word;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: u32,
    terms: Vec<String>,
    family: Vec<Family>,
    mentions: Mentions,
    prefixes: Prefixes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    start: Vec<String>,
    then: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mentions {
    first: Vec<String>,
    terms: Vec<String>,
    options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prefixes {
    words: Vec<String>,
}

/// One part of a term.
enum Part {
    /// A word; `true` where that end is open.
    Word {
        text: String,
        open_start: bool,
        open_end: bool,
    },
    /// Any words.
    Gap,
    /// No further word but options.
    End,
}

struct Known {
    terms: Vec<Vec<Part>>,
    mentioning: Vec<Vec<Part>>,
    mentioning_first: Vec<String>,
    telling_options: Vec<String>,
    prefixes: Vec<String>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("../../data/checks.toml"))
        .expect("a test reads data/checks.toml");
    let families = file.family.iter().flat_map(|family| {
        family.start.iter().flat_map(|start| {
            family
                .then
                .iter()
                .map(move |then| term(&format!("{start} {then}")))
        })
    });
    Known {
        terms: file
            .terms
            .iter()
            .map(|text| term(text))
            .chain(families)
            .collect(),
        mentioning: file.mentions.terms.iter().map(|text| term(text)).collect(),
        mentioning_first: file.mentions.first,
        telling_options: file.mentions.options,
        prefixes: file.prefixes.words,
    }
});

fn term(text: &str) -> Vec<Part> {
    let part = |word: &str| match word {
        "..." => Part::Gap,
        "$" => Part::End,
        _ => {
            let (open_start, rest) = word
                .strip_prefix('*')
                .map_or((false, word), |rest| (true, rest));
            let (open_end, rest) = rest
                .strip_suffix('*')
                .map_or((false, rest), |rest| (true, rest));
            Part::Word {
                text: rest.to_owned(),
                open_start,
                open_end,
            }
        }
    };
    text.split_whitespace().map(part).collect()
}

/// Whether a simple command is a check and not only about one.
pub(super) fn is_check(words: &[Word]) -> bool {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some(first) = first_word(&words) else {
        return false;
    };
    if KNOWN
        .mentioning_first
        .iter()
        .any(|mention| mention == program(first))
        || words
            .iter()
            .any(|word| KNOWN.telling_options.iter().any(|option| option == word))
    {
        return false;
    }
    occurs(&KNOWN.terms, &words) && !occurs(&KNOWN.mentioning, &words)
}

/// The word that names the program: assignments, options and words like `sudo` may stand before it.
fn first_word<'a>(words: &[&'a str]) -> Option<&'a str> {
    let skipped = |word: &&str| {
        is_assignment(word) || is_option(word) || KNOWN.prefixes.iter().any(|skip| skip == word)
    };
    words.iter().find(|word| !skipped(word)).copied()
}

/// `NAME=value` before a command, or an argument like it.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['-', '+'])
}

/// The name of a program: the last part of its path, without `.exe`, `.cmd` or a version after `@`.
pub(super) fn program(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name
        .strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .unwrap_or(name);
    match name.split_once('@') {
        Some((before, _)) if !before.is_empty() => before,
        _ => name,
    }
}

fn occurs(terms: &[Vec<Part>], words: &[&str]) -> bool {
    (0..words.len()).any(|start| {
        let (word, rest) = (program(words[start]), &words[start + 1..]);
        terms.iter().any(|term| {
            term.split_first()
                .is_some_and(|(first, parts)| equals(first, word) && follows(parts, rest))
        })
    })
}

fn equals(part: &Part, word: &str) -> bool {
    let Part::Word {
        text,
        open_start,
        open_end,
    } = part
    else {
        return false;
    };
    match (open_start, open_end) {
        (false, false) => word == text,
        (false, true) => word.starts_with(text.as_str()),
        (true, false) => word.ends_with(text.as_str()),
        (true, true) => word.contains(text.as_str()),
    }
}

/// Whether the rest of a term matches right after the words before. Options may stand between, and one word after an
/// option, which may be its value.
fn follows(parts: &[Part], words: &[&str]) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        return true;
    };
    match part {
        Part::Gap => (0..=words.len()).any(|skipped| follows(rest, &words[skipped..])),
        Part::End => only_options(words),
        Part::Word { .. } => {
            let Some((word, after)) = words.split_first() else {
                return false;
            };
            if equals(part, word) && follows(rest, after) {
                return true;
            }
            if !is_option(word) {
                return false;
            }
            let value = after
                .first()
                .is_some_and(|value| !is_option(value) && !word.contains('='));
            follows(parts, after) || (value && follows(parts, &after[1..]))
        }
    }
}

fn only_options(words: &[&str]) -> bool {
    let mut after_option = false;
    words.iter().all(|word| {
        let fits = is_option(word) || is_assignment(word) || after_option;
        after_option = is_option(word);
        fits
    })
}
