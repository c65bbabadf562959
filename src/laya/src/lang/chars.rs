//! Notions of characters that detection counts with: letter, word character, upper-case text. None of them is what the
//! standard library or `\w` calls so (wire.md 9.2).

use unicode_general_category::{GeneralCategory as Category, get_general_category as category};

use super::tables;

/// General category L*.
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    let letter = matches!(
        category(c),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
    );
    letter
        || tables::get()
            .post_database_letter_ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&u32::from(c)))
}

/// Letters, and characters with a numeric value that are no decimal digits (`½`, `Ⅳ`): what words are made of.
pub(super) fn is_word_letter(c: char) -> bool {
    is_letter(c)
        || (!c.is_ascii() && matches!(category(c), Category::LetterNumber | Category::OtherNumber))
}

/// Word letters, decimal digits and `_`.
pub(super) fn is_word_char(c: char) -> bool {
    c == '_'
        || c.is_ascii_digit()
        || is_word_letter(c)
        || (!c.is_ascii() && category(c) == Category::DecimalNumber)
}

/// A word character that is no `_`.
pub(super) fn is_alphanumeric(c: char) -> bool {
    c != '_' && is_word_char(c)
}

/// At least one upper-case character, none in lower or title case.
pub(super) fn is_shouted(text: &str) -> bool {
    let mut upper = false;
    for c in text.chars() {
        if c.is_lowercase() || (!c.is_ascii() && category(c) == Category::TitlecaseLetter) {
            return false;
        }
        upper |= c.is_uppercase();
    }
    upper
}

/// White space as `str.split` of the original sees it.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Maximal runs of word letters.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word_letter(c))
        .filter(|word| !word.is_empty())
}

/// Full lower case, but `İ` becomes a plain `i` first.
pub(super) fn lower(text: &str) -> String {
    text.replace('İ', "i").to_lowercase()
}

/// Replaces by a space each run of at least two word letters for which `blank` holds.
pub(super) fn blank_runs(text: &str, blank: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|c| !is_word_letter(c)).unwrap_or(rest.len());
        let (letters, tail) = rest.split_at(run);
        if is_run(letters) && blank(letters) {
            out.push(' ');
        } else {
            out.push_str(letters);
        }
        let other = tail.find(is_word_letter).unwrap_or(tail.len());
        out.push_str(&tail[..other]);
        rest = &tail[other..];
    }
    out
}

/// Whether a word is long enough to be a letter run.
pub(super) fn is_run(word: &str) -> bool {
    word.chars().nth(1).is_some()
}

/// Replaces identifiers (`github.com`, `v1.2.3`, `.com`) by a space: a maybe empty run of word characters and `-`, not
/// preceded by one, then one or more groups of `.` or `@` and a non-empty such run.
pub(super) fn blank_identifiers(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let in_run = |at: usize| chars.get(at).is_some_and(|c| *c == '-' || is_word_char(*c));
    let run_end = |mut at: usize| {
        while in_run(at) {
            at += 1;
        }
        at
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let mut end = at;
        if at == 0 || !in_run(at - 1) {
            let mut next = run_end(at);
            while matches!(chars.get(next), Some('.' | '@')) && in_run(next + 1) {
                next = run_end(next + 1);
                end = next;
            }
        }
        if end > at {
            out.push(' ');
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_word_characters_are_their_own_notions() {
        for (c, letter, in_word, word_char) in [
            ('a', true, true, true),
            ('ß', true, true, true),
            ('ª', true, true, true),
            ('5', false, false, true),
            ('٣', false, false, true),
            ('_', false, false, true),
            ('½', false, true, true),
            ('Ⅳ', false, true, true),
            ('\u{301}', false, false, false),
            ('\u{345}', false, false, false),
            ('\u{93e}', false, false, false),
            ('-', false, false, false),
        ] {
            assert_eq!(
                (is_letter(c), is_word_letter(c), is_word_char(c)),
                (letter, in_word, word_char),
                "{c:?}"
            );
        }
        assert!(
            is_shouted("A1!")
                && !is_shouted("Ab")
                && !is_shouted("12")
                && !is_shouted("AǅA")
                && is_shouted("ⅣA")
        );
    }

    #[test]
    fn identifiers_and_runs_are_blanked() {
        for (text, blanked) in [
            ("see github.com now", "see   now"),
            ("v1.2.3", " "),
            (".com a", "  a"),
            ("..com", ". "),
            ("a. b", "a. b"),
            ("me@x.org, x-y.z", " ,  "),
            ("end.", "end."),
            ("a.b.", " ."),
        ] {
            assert_eq!(blank_identifiers(text), blanked, "{text}");
        }
        assert_eq!(blank_runs("ab CD e F GH1", is_shouted), "ab   e F  1");
        assert_eq!(lower("İSTANBUL ΟΔΟΣ"), "istanbul οδος");
    }
}
