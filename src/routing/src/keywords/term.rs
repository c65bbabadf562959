//! Term syntax (routing.md 4.1): words separated by spaces match consecutive words, `stem*` a prefix of one word,
//! `a ... b` allows up to 8 words between, `a ..N b` up to N.

use crate::words::{Stream, Words};

/// Words that `...` allows in between.
const DEFAULT_GAP: u8 = 8;
/// Words a term may stretch over, gaps included. A match is found with one bit per word.
pub const MAX_SPAN: usize = 120;
/// Longest term, in bytes.
pub const MAX_BYTES: usize = 256;
/// Shortest stem, in characters: one letter would match a tenth of a dictionary.
const MIN_STEM: usize = 2;

/// Why a term cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// No letter and no digit in it.
    #[error("the term has no letter or digit")]
    Empty,
    /// A gap with nothing on one side.
    #[error("a gap (`...`) must stand between two words")]
    DanglingGap,
    /// `*` anywhere but at the end of a word.
    #[error("`*` may only end a word: `{0}`")]
    Star(String),
    /// A stem that matches nearly everything.
    #[error("the stem `{0}` needs at least {MIN_STEM} letters")]
    ShortStem(String),
    /// `..` followed by something that is no number of words.
    #[error("`{0}` is no gap: write `...` or `..N` with N from 1 to 99")]
    Gap(String),
    /// Too long to be a term.
    #[error(
        "the term is longer than {MAX_BYTES} bytes or stretches over more than {MAX_SPAN} words"
    )]
    Long,
}

/// One word of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The folded word, or the folded stem.
    pub word: &'a str,
    /// Matches any word that starts so.
    pub stem: bool,
    /// How many words may lie between the piece before and this one.
    pub gap: u8,
}

/// Reads a term and hands out its words in order.
///
/// # Errors
/// When the term breaks the syntax; some pieces may have been handed out by then.
pub fn read(term: &str, mut piece: impl FnMut(Piece<'_>)) -> Result<(), TermError> {
    if term.len() > MAX_BYTES {
        return Err(TermError::Long);
    }
    let mut span = 0;
    let mut gap = 0;
    for token in term.split_whitespace() {
        if token.starts_with("..") {
            if span == 0 || gap > 0 {
                return Err(TermError::DanglingGap);
            }
            gap = read_gap(token)?;
            continue;
        }
        let (body, stem) = token
            .strip_suffix('*')
            .map_or((token, false), |body| (body, true));
        if body.contains('*') {
            return Err(TermError::Star(token.to_owned()));
        }
        let mut emit = |word: &str, stem: bool| {
            span += 1 + usize::from(gap);
            piece(Piece { word, stem, gap });
            gap = 0;
        };
        if body
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && !body.is_empty()
        {
            check_stem(body, token, stem)?;
            emit(body, stem);
        } else {
            let words = Words::new(body);
            let last = words
                .len(Stream::Plain)
                .checked_sub(1)
                .ok_or(TermError::Empty)?;
            for (position, word) in words.iter(Stream::Plain).enumerate() {
                // A letter of Han, Kana or Thai is a whole word: there a stem means nothing more.
                let stem = stem && position == last && !words.is_unbroken(position);
                check_stem(word, token, stem)?;
                emit(word, stem);
            }
        }
        if span > MAX_SPAN {
            return Err(TermError::Long);
        }
    }
    match (span, gap) {
        (0, _) => Err(TermError::Empty),
        (_, 0) => Ok(()),
        _ => Err(TermError::DanglingGap),
    }
}

fn read_gap(token: &str) -> Result<u8, TermError> {
    if token == "..." {
        return Ok(DEFAULT_GAP);
    }
    let number = token.strip_prefix("..").unwrap_or_default();
    match number.parse() {
        Ok(words @ 1..=99) if number.bytes().all(|b| b.is_ascii_digit()) => Ok(words),
        _ => Err(TermError::Gap(token.to_owned())),
    }
}

fn check_stem(word: &str, token: &str, stem: bool) -> Result<(), TermError> {
    if stem && word.chars().count() < MIN_STEM {
        Err(TermError::ShortStem(token.to_owned()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(term: &str) -> Result<Vec<(String, bool, u8)>, TermError> {
        let mut all = Vec::new();
        read(term, |piece| {
            all.push((piece.word.to_owned(), piece.stem, piece.gap))
        })?;
        Ok(all)
    }

    fn row(word: &str, stem: bool, gap: u8) -> (String, bool, u8) {
        (word.to_owned(), stem, gap)
    }

    #[test]
    fn reads_words_stems_and_gaps() {
        assert_eq!(
            pieces("credit card"),
            Ok(vec![row("credit", false, 0), row("card", false, 0)])
        );
        assert_eq!(pieces("refund*"), Ok(vec![row("refund", true, 0)]));
        assert_eq!(
            pieces("checkout ..4 branch"),
            Ok(vec![row("checkout", false, 0), row("branch", false, 4)])
        );
        assert_eq!(
            pieces("why ... fail*"),
            Ok(vec![row("why", false, 0), row("fail", true, 8)])
        );
        assert_eq!(
            pieces("Migração*"),
            Ok(vec![row("migracao", true, 0)]),
            "terms are folded as texts are"
        );
        assert_eq!(
            pieces("don't"),
            Ok(vec![row("don", false, 0), row("t", false, 0)])
        );
        assert_eq!(
            pieces("登录*"),
            Ok(vec![row("登", false, 0), row("录", false, 0)])
        );
    }

    #[test]
    fn refuses_what_is_no_term() {
        for (term, error) in [
            ("", TermError::Empty),
            ("  ", TermError::Empty),
            ("?!", TermError::Empty),
            ("... x", TermError::DanglingGap),
            ("x ...", TermError::DanglingGap),
            ("x ... ... y", TermError::DanglingGap),
            ("a*b", TermError::Star("a*b".into())),
            ("*", TermError::Empty),
            ("f*", TermError::ShortStem("f*".into())),
            ("x ..0 y", TermError::Gap("..0".into())),
            ("x ..+4 y", TermError::Gap("..+4".into())),
            ("x ..many y", TermError::Gap("..many".into())),
            ("x ..99 y ..99 z", TermError::Long),
        ] {
            assert_eq!(pieces(term), Err(error), "{term:?}");
        }
        assert_eq!(pieces(&"x".repeat(MAX_BYTES + 1)), Err(TermError::Long));
    }
}
