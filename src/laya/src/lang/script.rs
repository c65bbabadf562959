//! Scripts by code point: letters counted per script, and runs of letters of a script that is not Latin.

use unicode_normalization::char::canonical_combining_class;

use super::{chars, tables};

/// Letters per script, in order of first appearance, `latin` apart.
#[derive(Default)]
pub(super) struct Counts {
    latin: usize,
    others: Vec<(&'static str, usize)>,
}

fn in_latin_zone(code: u32, first_limit: u32) -> bool {
    code < first_limit || matches!(code, 0x1E00..=0x1EFF | 0xFF21..=0xFF3A | 0xFF41..=0xFF5A)
}

fn named(code: u32) -> Option<&'static str> {
    let holds = |ranges: &[(u32, u32)]| {
        ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&code))
    };
    tables::get()
        .script_ranges
        .iter()
        .find(|(_, ranges)| holds(ranges))
        .map(|(name, _)| *name)
}

pub(super) fn count(text: &str) -> Counts {
    let mut counts = Counts::default();
    for c in text.chars().filter(|c| chars::is_letter(*c)) {
        let code = u32::from(c);
        if in_latin_zone(code, 0x02B0) {
            counts.latin += 1;
            continue;
        }
        let script = named(code).unwrap_or("other");
        match counts.others.iter_mut().find(|(name, _)| *name == script) {
            Some((_, n)) => *n += 1,
            None => counts.others.push((script, 1)),
        }
    }
    counts
}

impl Counts {
    pub(super) fn total(&self) -> usize {
        self.latin + self.others.iter().map(|(_, n)| n).sum::<usize>()
    }

    pub(super) fn of(&self, script: &str) -> usize {
        if script == "latin" {
            self.latin
        } else {
            self.others
                .iter()
                .find(|(name, _)| *name == script)
                .map_or(0, |(_, n)| *n)
        }
    }

    /// The script with most letters, `latin` only if no other has as many; `unknown` without letters.
    pub(super) fn dominant(&self) -> &'static str {
        if self.total() == 0 {
            return "unknown";
        }
        match self.most() {
            Some((script, n)) if n >= self.latin => script,
            _ => "latin",
        }
    }

    /// The script other than `latin` with most letters, the first on a tie.
    pub(super) fn largest_non_latin(&self) -> Option<&'static str> {
        self.most().map(|(script, _)| script)
    }

    fn most(&self) -> Option<(&'static str, usize)> {
        self.others
            .iter()
            .copied()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Fractions of all letters, `latin` first, zeros left out.
    pub(super) fn profile(&self) -> Vec<(&'static str, f64)> {
        let total = self.total() as f64;
        let all = std::iter::once(("latin", self.latin)).chain(self.others.iter().copied());
        all.filter(|(_, n)| *n > 0)
            .map(|(script, n)| (script, n as f64 / total))
            .collect()
    }
}

/// Whether some run of two or more characters of one named script does not begin in upper case.
pub(super) fn has_non_latin_words(text: &str) -> bool {
    let mut run: Option<(&'static str, char, usize)> = None;
    let is_word = |run: Option<(&'static str, char, usize)>| {
        run.is_some_and(|(_, first, n)| n >= 2 && !first.is_uppercase())
    };
    for c in text.chars().filter(|c| canonical_combining_class(*c) == 0) {
        let code = u32::from(c);
        let script = if in_latin_zone(code, 0x0250) {
            None
        } else {
            named(code)
        };
        run = match (script, run) {
            (Some(script), Some((name, first, n))) if name == script => Some((name, first, n + 1)),
            (script, before) => {
                if is_word(before) {
                    return true;
                }
                script.map(|script| (script, c, 1))
            }
        };
    }
    is_word(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_by_script() {
        let counts = count("ab где あ中文x");
        assert_eq!(counts.total(), 9);
        assert_eq!(counts.dominant(), "cyrillic");
        assert_eq!(counts.profile()[0], ("latin", 3.0 / 9.0));
        assert_eq!(
            count("ab гд").dominant(),
            "cyrillic",
            "latin comes last on a tie"
        );
        assert_eq!(count("12 !").dominant(), "unknown");
    }

    #[test]
    fn words_of_other_scripts_begin_in_lower_case() {
        for (text, has) in [
            ("где", true),
            ("Где", false),
            ("α x", false),
            ("αβ", true),
            ("П где", true),
            ("नमस्ते", true),
            ("ab", false),
        ] {
            assert_eq!(has_non_latin_words(text), has, "{text}");
        }
    }
}
