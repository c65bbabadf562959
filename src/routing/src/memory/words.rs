//! Text to comparable words (routing.md 14): identifiers opened at lower→Upper, case and marks folded, scripts without
//! word breaks cut into overlapping pairs.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::stop_words::is_stop;

/// Words whose presence in only one of two texts turns the meaning round. Folded.
const NEGATIONS: [&str; 8] = [
    "not", "never", "without", "dont", "nao", "nunca", "sem", "nem",
];

/// How a letter or digit takes part in words. A change of kind ends a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Words are what stands between other characters.
    Spaced,
    /// Han and Kana, which share runs: no word breaks, pairs stand for words.
    HanOrKana,
    /// The same for Thai.
    Thai,
}

/// The script of a letter or digit, `None` for what separates words.
fn script(c: char) -> Option<Script> {
    match c {
        'ก'..='ฺ' | 'เ'..='๎' => Some(Script::Thai),
        '\u{3005}'
        | '\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}'
        | '\u{3038}'..='\u{303c}' => Some(Script::HanOrKana),
        '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}'
            if c.is_alphanumeric() =>
        {
            Some(Script::HanOrKana)
        }
        '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}' => Some(Script::HanOrKana),
        _ if c.is_alphanumeric() => Some(Script::Spaced),
        _ => None,
    }
}

/// Every word of `text` in order, folded, one-letter words and stop words included.
#[must_use]
pub fn folded_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut run = String::new();
    let mut kind = Script::Spaced;
    let folded = open_identifiers(text);
    let folded = folded
        .nfd()
        .flat_map(char::to_lowercase)
        .filter(|c| !is_combining_mark(*c));
    for c in folded {
        let Some(next) = script(c) else {
            end_run(&mut run, kind, &mut words);
            continue;
        };
        if next != kind {
            end_run(&mut run, kind, &mut words);
            kind = next;
        }
        run.push(c);
    }
    end_run(&mut run, kind, &mut words);
    words
}

/// `text` with a space at each ASCII lower→Upper boundary.
fn open_identifiers(text: &str) -> String {
    let mut opened = String::with_capacity(text.len() + 8);
    let mut after_lower = false;
    for c in text.chars() {
        if after_lower && c.is_ascii_uppercase() {
            opened.push(' ');
        }
        after_lower = c.is_ascii_lowercase();
        opened.push(c);
    }
    opened
}

/// Moves a finished run into `words`: as it is, or as its overlapping pairs.
fn end_run(run: &mut String, kind: Script, words: &mut Vec<String>) {
    if run.is_empty() {
        return;
    }
    if kind == Script::Spaced || run.chars().nth(1).is_none() {
        words.push(std::mem::take(run));
        return;
    }
    let letters = run.chars().zip(run.chars().skip(1));
    words.extend(letters.map(|(first, second)| String::from_iter([first, second])));
    run.clear();
}

/// The content words of `text` in order: two characters or more and not in the stop list.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = folded_words(text);
    words.retain(|word| word.chars().nth(1).is_some() && !is_stop(word));
    words
}

/// Whether `text` has a negation word. Negations are stop words, so vectors do not see them.
#[must_use]
pub fn is_negated(text: &str) -> bool {
    negates(&folded_words(text))
}

/// [`is_negated`] for words that were already folded. An apostrophe leaves `don` and `t` of `don't`.
pub(super) fn negates(folded: &[String]) -> bool {
    folded.iter().any(|word| NEGATIONS.contains(&word.as_str()))
        || folded
            .windows(2)
            .any(|pair| matches!(pair, [don, t] if don == "don" && t == "t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_scripts_without_word_breaks_into_pairs() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("han", "修复登录", &["修复", "复登", "登录"]),
            ("one letter alone is too short", "修", &[]),
            (
                "kana and han share a run",
                "ボタンを直す",
                &["ホタ", "タン", "ンを", "を直", "直す"],
            ),
            ("prolonged sound", "エラー", &["エラ", "ラー"]),
            ("thai", "แก้บัก", &["แก", "กบ", "บก"]),
            (
                "latin inside ends the run",
                "修复login错误",
                &["修复", "login", "错误"],
            ),
            ("punctuation ends the run", "登录，错误", &["登录", "错误"]),
            ("hangul has spaces", "버튼 수정", &["버튼", "수정"]),
            ("cyrillic", "Исправь Ёлку", &["исправь", "елку"]),
        ];
        for (name, text, expected) in rows {
            let expected: Vec<String> = expected.iter().map(|word| word.nfd().collect()).collect();
            assert_eq!(words(text), expected, "{name}");
        }
    }

    #[test]
    fn finds_negations_whatever_the_apostrophe() {
        let rows = [
            ("Do not add a form", true),
            ("don't add a form", true),
            ("DON\u{2019}T add a form", true),
            ("dont add a form", true),
            ("Sem o formulário", true),
            ("NÃO mude nada", true),
            ("never", true),
            ("Add a form", false),
            ("Fix the notes of Don", false),
            ("nothing", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_negated(text), expected, "{text}");
        }
    }

    #[test]
    fn content_words_of_a_polite_request_keep_pode() {
        assert_eq!(
            words("Você pode corrigir o rodapé?"),
            ["pode", "corrigir", "rodape"]
        );
    }

    #[test]
    fn the_stop_list_is_folded_and_leaves_words_of_work_in() {
        let list = include_str!("../../data/stop_words.txt");
        let listed: Vec<&str> = list
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_whitespace)
            .collect();
        assert!(listed.len() > 100);
        for word in listed {
            assert_eq!(folded_words(word), [word]);
        }
        for negation in NEGATIONS {
            assert!(
                is_stop(negation),
                "{negation} must not weigh in vectors: the guard handles it"
            );
        }
        for word in [
            "pode", "why", "between", "all", "todo", "logo", "fix", "add", "corrija",
        ] {
            assert!(!is_stop(word), "{word}");
        }
    }
}
