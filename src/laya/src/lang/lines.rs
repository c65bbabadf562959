//! A foreign line or field in a state that reads as English as a whole (wire.md 9.7). Lines end at U+000A alone.

use std::borrow::Cow;

use super::latin::{Profile, has_evidence};
use super::text::prefix;
use super::{Detection, TEXT_CHARS, analyse, chars, round4, tables};

/// Words below which a line names no language.
const LEAST_WORDS: usize = 4;
/// Letters below which a line in another script is no finding.
const LEAST_LETTERS: usize = 10;
/// Code points below which a line of a field is not looked at.
const LEAST_LINE: usize = 7;

/// Sets language and segment if some line of some leaf reads as another language.
pub(super) fn look_for_other_language(leaves: &[Cow<'_, str>], detection: &mut Detection) {
    let mut left = TEXT_CHARS;
    for line in leaves.iter().flat_map(|leaf| leaf.split('\n')) {
        if left == 0 {
            return;
        }
        let segment = prefix(line, left);
        left -= segment.chars().count();
        if let Some(language) = language_of_line(segment) {
            detection.language = Some(language);
            detection.is_english = false;
            detection.language_undecided = false;
            detection.mixed_segment = Some(segment.trim_matches(chars::is_space).to_owned());
            return;
        }
    }
}

/// Takes language and verdict over from the field with most letters that is not English when its lines are read alone.
pub(super) fn look_for_other_field(leaves: &[Cow<'_, str>], detection: &mut Detection) {
    let mut found: Option<(usize, Detection)> = None;
    for leaf in leaves {
        let Some(line) = other_line(leaf) else {
            continue;
        };
        let letters = prefix(leaf, TEXT_CHARS)
            .chars()
            .filter(|c| chars::is_letter(*c))
            .count();
        if found.as_ref().is_none_or(|(most, _)| letters > *most) {
            found = Some((letters, line));
        }
    }
    if let Some((_, other)) = found {
        detection.language = other.language;
        detection.is_english = false;
        detection.language_undecided = other.language_undecided;
    }
}

/// The line of a leaf with most letters that is not English on its own.
fn other_line(leaf: &str) -> Option<Detection> {
    let mut found: Option<(usize, Detection)> = None;
    for line in leaf.split('\n') {
        let line = prefix(line, TEXT_CHARS);
        if line.chars().nth(LEAST_LINE - 1).is_none()
            || line.chars().all(chars::is_space)
            || is_code(line)
        {
            continue;
        }
        let alone = analyse(line);
        let detection = alone.detection;
        if detection.is_english {
            continue;
        }
        let named =
            detection.language.is_some_and(|code| code != "en") && language_of_line(line).is_some();
        let script = detection.script != "latin"
            && alone.has_non_latin_words
            && alone.letters >= LEAST_LETTERS;
        let letters = detection.script == "latin"
            && round4(detection.diacritic_rate) >= tables::get().thresholds.non_english_rate
            && alone.words >= LEAST_WORDS;
        if (named || script || letters)
            && found.as_ref().is_none_or(|(most, _)| alone.letters > *most)
        {
            found = Some((alone.letters, detection));
        }
    }
    found.map(|(_, detection)| detection)
}

/// One of `= ; { } [ ]`, or a word character before `(`.
fn is_code(line: &str) -> bool {
    let mut before = None;
    line.chars().any(|c| {
        let code = matches!(c, '=' | ';' | '{' | '}' | '[' | ']')
            || (c == '(' && before.is_some_and(chars::is_word_char));
        before = Some(c);
        code
    })
}

/// The line rule: another language than English, if the line is prose of it.
fn language_of_line(segment: &str) -> Option<&'static str> {
    if segment.chars().all(chars::is_space) || is_code(segment) {
        return None;
    }
    let tokens: Vec<&str> = segment
        .split(chars::is_space)
        .filter(|t| !t.is_empty() && !is_joined(t))
        .collect();
    let mut text = tokens.join(" ");
    let shouted = chars::is_shouted(&text);
    if !shouted {
        text = chars::blank_runs(&text, chars::is_shouted);
    }
    let profile = Profile::of(&text);
    let language = profile
        .language
        .filter(|code| *code != "en" && profile.words >= LEAST_WORDS)?;
    if shouted && !has_evidence(&text, profile.rate, language) {
        return None;
    }
    let list = tables::get().words_of(language)?;
    let lowered = chars::lower(&chars::blank_identifiers(&text));
    let different: std::collections::HashSet<&str> = chars::words(&lowered)
        .filter(|word| list.contains(*word))
        .collect();
    (different.len() >= 2).then_some(language)
}

/// A letter or digit, one of `. _ / \`, a letter or digit.
fn is_joined(token: &str) -> bool {
    let chars: Vec<char> = token.chars().collect();
    let joint = |w: &[char]| {
        matches!(w[1], '.' | '_' | '/' | '\\')
            && chars::is_alphanumeric(w[0])
            && chars::is_alphanumeric(w[2])
    };
    chars.windows(3).any(joint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_rule_wants_prose() {
        for (line, language) in [
            (
                "Bitte senden Sie mir die Rechnung und das Formular",
                Some("de"),
            ),
            ("x = und der die das ist", None),
            ("foo(und der die das ist)", None),
            ("und die", None),
            ("   ", None),
            ("please send me the invoice and the form", None),
        ] {
            assert_eq!(language_of_line(line), language, "{line}");
        }
        assert!(
            is_joined("a.b")
                && is_joined("x/y")
                && !is_joined("a.")
                && !is_joined("a__b")
                && !is_joined("a-b")
        );
    }
}
