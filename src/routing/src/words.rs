//! Text → words (routing.md 4.1): lower case, marks removed, split on everything that is no Unicode letter or digit, as
//! two streams of spans over one folded buffer: the plain stream, and one that also splits at lower→Upper boundaries.
//! It knows nothing of terms and groups.
//!
//! Ours, beyond the page: letters that Unicode does not decompose but people type without (`ß ł ı ø đ æ œ`) fold to
//! their plain form; the voicing marks of Kana stay, as デスト and テスト are other letters, not other accents; and each
//! letter of a Han, Kana or Thai run is a word of its own, which is how a term matches anywhere in such a run.

use unicode_normalization::char::{compose, decompose_canonical, is_combining_mark};

use crate::stop_words;

/// Where a word lies in the folded buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
    /// A letter of a script without word breaks.
    unbroken: bool,
    /// Nothing lay between this word and the one before it.
    joined: bool,
    /// It stands in quotation marks.
    quoted: bool,
}

impl Span {
    const fn new(start: u32, end: u32, joined: bool) -> Self {
        Self {
            start,
            end,
            unbroken: false,
            joined,
            quoted: false,
        }
    }
}

/// Longest quotation, in bytes: longer ones are texts that somebody pasted.
const MAX_QUOTE: usize = 120;

/// One of the two readings of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// As it is written: `resetPassword` is one word.
    Plain,
    /// Split at lower→Upper boundaries as well: `resetPassword` is two words.
    Camel,
}

/// The folded words of a text.
#[derive(Debug, Clone, Default)]
pub struct Words {
    folded: String,
    plain: Vec<Span>,
    /// `None` when it would equal `plain`.
    camel: Option<Vec<Span>>,
    /// A letter of another script than Latin was read.
    beyond_latin: bool,
}

impl Words {
    /// Folds and splits a text. Linear in its length; any text is fine, control characters and NUL separate words.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut words = Self {
            folded: String::with_capacity(text.len()),
            plain: Vec::with_capacity(text.len() / 6 + 1),
            camel: None,
            beyond_latin: false,
        };
        words.read(text);
        words
    }

    /// Reads another text in place of the one before, in the same memory.
    pub(crate) fn read(&mut self, text: &str) {
        self.folded.clear();
        self.plain.clear();
        self.camel = None;
        self.beyond_latin = false;
        let mut splitter = Splitter::new(std::mem::take(self));
        let mut colour = Colour::None;
        for c in text.chars() {
            if colour.leaves(c) && !is_invisible(c) {
                splitter.push(c);
            }
        }
        *self = splitter.finish();
    }

    /// Whether there is a letter of another script than Latin.
    #[must_use]
    pub fn beyond_latin(&self) -> bool {
        self.beyond_latin
    }

    /// Whether the camel stream differs from the plain one.
    #[must_use]
    pub fn has_camel(&self) -> bool {
        self.camel.is_some()
    }

    /// Number of words in a stream.
    #[must_use]
    pub fn len(&self, stream: Stream) -> usize {
        self.spans(stream).len()
    }

    /// Whether there is no word at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    /// The folded word at a position, if there is one.
    #[must_use]
    pub fn get(&self, stream: Stream, position: usize) -> Option<&str> {
        self.spans(stream)
            .get(position)
            .map(|span| self.text_of(*span))
    }

    /// Whether the word of the plain stream at a position is one letter of a script without word breaks.
    #[must_use]
    pub fn is_unbroken(&self, position: usize) -> bool {
        self.plain.get(position).is_some_and(|span| span.unbroken)
    }

    /// Whether a word stands in quotation marks, on one line with them and close to both.
    #[must_use]
    pub fn is_quoted(&self, stream: Stream, position: usize) -> bool {
        self.spans(stream)
            .get(position)
            .is_some_and(|span| span.quoted)
    }

    /// The folded words of a stream, in order.
    #[must_use]
    pub fn iter(&self, stream: Stream) -> impl ExactSizeIterator<Item = &str> {
        self.spans(stream).iter().map(|span| self.text_of(*span))
    }

    /// The folded words from one position to another, both included, as they would be read.
    #[must_use]
    pub fn phrase(&self, stream: Stream, first: usize, last: usize) -> String {
        let mut phrase = String::new();
        for span in self
            .spans(stream)
            .iter()
            .skip(first)
            .take(last.saturating_sub(first) + 1)
        {
            let goes_on = span.unbroken && span.joined;
            if !phrase.is_empty() && !goes_on {
                phrase.push(' ');
            }
            phrase.push_str(self.text_of(*span));
        }
        phrase
    }

    /// Content words of the plain stream: at least two characters and not in the stop list. In a run without word
    /// breaks each overlapping pair of letters counts as one, as in routing.md 14.
    #[must_use]
    pub fn content_words(&self) -> usize {
        let mut count = 0;
        let mut previous_unbroken = false;
        for span in &self.plain {
            let word = self.text_of(*span);
            count += usize::from(if span.unbroken {
                previous_unbroken && span.joined
            } else {
                word.chars().nth(1).is_some() && !stop_words::is_stop(word)
            });
            previous_unbroken = span.unbroken;
        }
        count
    }

    /// How long the text is to read, in words of the plain stream; two letters of a script without word breaks count
    /// as one word.
    #[must_use]
    pub fn reading_length(&self) -> usize {
        let letters = self.plain.iter().filter(|span| span.unbroken).count();
        self.plain.len() - letters + letters / 2
    }

    fn spans(&self, stream: Stream) -> &[Span] {
        match (stream, &self.camel) {
            (Stream::Camel, Some(camel)) => camel,
            _ => &self.plain,
        }
    }

    fn text_of(&self, span: Span) -> &str {
        self.folded
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }
}

/// Ours: pasted colours (`ESC [ … letter`) are not part of a word, or `login` in red would be `31mlogin` and fire nothing.
/// Only sequences that hold no text are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    None,
    Escape,
    Parameters,
}

impl Colour {
    /// Whether a character is part of the text.
    fn leaves(&mut self, c: char) -> bool {
        let (next, leaves) = match (*self, c) {
            (_, '\u{1b}') => (Self::Escape, true),
            (Self::None, _) => return true,
            (Self::Escape, '[') => (Self::Parameters, false),
            (Self::Parameters, ' '..='?') => (Self::Parameters, false),
            (Self::Parameters, '@'..='~') => (Self::None, false),
            (Self::Escape | Self::Parameters, _) => (Self::None, true),
        };
        *self = next;
        leaves
    }
}

/// Ours: soft hyphens, zero-width characters and marks of direction are not seen, and so do not split a word.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Builds [`Words`] one character at a time.
struct Splitter {
    words: Words,
    /// Start of the open word in each stream.
    plain_open: Option<u32>,
    camel_open: u32,
    /// The character before was a lower-case letter.
    after_lower: bool,
    /// A word ended right here, with nothing in between.
    touching: bool,
    quote: Option<Quote>,
    full: bool,
}

/// An open quotation: what ends it, and where it began.
struct Quote {
    end: char,
    plain: usize,
    camel: usize,
    bytes: usize,
}

/// The mark that ends a quotation which this one opens.
const fn closing(open: char) -> Option<char> {
    match open {
        '"' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '«' => Some('»'),
        '「' => Some('」'),
        '『' => Some('』'),
        _ => None,
    }
}

impl Splitter {
    fn new(words: Words) -> Self {
        Self {
            words,
            plain_open: None,
            camel_open: 0,
            after_lower: false,
            touching: false,
            quote: None,
            full: false,
        }
    }

    fn here(&self) -> u32 {
        // `push` stops long before the buffer reaches 4 GiB.
        u32::try_from(self.words.folded.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, c: char) {
        if c.is_ascii() {
            self.push_ascii(c);
        } else if is_combining_mark(c) {
            self.push_mark(c);
        } else if is_unbroken(c) {
            self.close();
            let start = self.here();
            self.push_folded(c);
            let span = Span {
                unbroken: true,
                ..Span::new(start, self.here(), self.touching)
            };
            self.words.plain.push(span);
            if let Some(camel) = &mut self.words.camel {
                camel.push(span);
            }
            self.touching = true;
        } else if c.is_alphanumeric() {
            self.boundary(c.is_uppercase());
            self.after_lower = c.is_lowercase();
            decompose_canonical(c, |part| {
                if !is_combining_mark(part) {
                    fold(part, |folded| self.push_folded(folded));
                }
            });
        } else {
            self.separate(c);
        }
    }

    fn push_ascii(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            self.boundary(c.is_ascii_uppercase());
            self.after_lower = c.is_ascii_lowercase();
            self.push_folded(c.to_ascii_lowercase());
        } else {
            self.separate(c);
        }
    }

    /// Marks vanish, but for the voicing of a Kana letter that came decomposed.
    fn push_mark(&mut self, mark: char) {
        let Some(base) = self
            .words
            .folded
            .chars()
            .next_back()
            .filter(|base| self.touching && is_unbroken(*base))
        else {
            return;
        };
        if let Some(voiced) = compose(base, mark) {
            // Both forms take three bytes, so the span of the letter stays right.
            if voiced.len_utf8() == base.len_utf8() {
                self.words.folded.pop();
                self.words.folded.push(voiced);
            }
        }
    }

    fn push_folded(&mut self, c: char) {
        if self.words.folded.len() > (u32::MAX - 16) as usize {
            self.full = true;
        }
        if !self.full {
            self.words.folded.push(c);
            self.words.beyond_latin |= is_beyond_latin(c);
        }
    }

    /// Opens a word, or splits the camel stream before an upper-case letter.
    fn boundary(&mut self, upper: bool) {
        let here = self.here();
        match self.plain_open {
            None => {
                self.plain_open = Some(here);
                self.camel_open = here;
            }
            Some(_) if upper && self.after_lower => {
                let camel = self
                    .words
                    .camel
                    .get_or_insert_with(|| self.words.plain.clone());
                let joined = self.touching;
                camel.push(Span::new(self.camel_open, here, joined));
                self.camel_open = here;
            }
            Some(_) => {}
        }
    }

    /// Ends the open word.
    fn close(&mut self) {
        self.after_lower = false;
        if let Some(start) = self.plain_open.take() {
            let end = self.here();
            let joined = self.touching;
            if end > start {
                self.words.plain.push(Span::new(start, end, joined));
            }
            if let Some(camel) = &mut self.words.camel
                && end > self.camel_open
            {
                camel.push(Span::new(self.camel_open, end, joined));
            }
            self.touching = true;
        }
    }

    fn separate(&mut self, c: char) {
        self.close();
        self.touching = false;
        match &self.quote {
            // German ends with the mark that opens in English.
            Some(quote) if c == quote.end || (quote.end == '”' && c == '“') => self.end_quote(),
            Some(_) if c == '\n' => self.quote = None,
            Some(_) => {}
            None => {
                self.quote = closing(c).map(|end| Quote {
                    end,
                    plain: self.words.plain.len(),
                    camel: self
                        .words
                        .camel
                        .as_ref()
                        .map_or(self.words.plain.len(), Vec::len),
                    bytes: self.words.folded.len(),
                });
            }
        }
    }

    fn end_quote(&mut self) {
        let Some(quote) = self.quote.take() else {
            return;
        };
        if self.words.folded.len() - quote.bytes > MAX_QUOTE {
            return;
        }
        let camel = self
            .words
            .camel
            .iter_mut()
            .flat_map(|camel| camel.iter_mut().skip(quote.camel));
        for span in self.words.plain.iter_mut().skip(quote.plain).chain(camel) {
            span.quoted = true;
        }
    }

    fn finish(mut self) -> Words {
        self.close();
        self.words
    }
}

/// Lower case of a letter, and the plain form of letters that have no decomposition.
fn fold(c: char, mut push: impl FnMut(char)) {
    for lower in c.to_lowercase() {
        match lower {
            'ß' => {
                push('s');
                push('s');
            }
            'æ' => {
                push('a');
                push('e');
            }
            'œ' => {
                push('o');
                push('e');
            }
            'ł' => push('l'),
            'ı' => push('i'),
            'ø' => push('o'),
            'đ' => push('d'),
            'ς' => push('σ'),
            mark if is_combining_mark(mark) => {}
            other => push(other),
        }
    }
}

/// The first letters after Latin and its extensions and marks are Greek.
pub(crate) const fn is_beyond_latin(c: char) -> bool {
    c >= '\u{370}'
}

/// Letters of scripts that are written without word breaks: Han, Kana and Thai.
fn is_unbroken(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2FD5}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303B}'
        | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}' | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9D}' | '\u{1B000}'..='\u{1B16F}' | '\u{20000}'..='\u{323AF}'
        | '\u{0E01}'..='\u{0E30}' | '\u{0E32}'..='\u{0E33}' | '\u{0E40}'..='\u{0E46}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<String> {
        Words::new(text)
            .iter(Stream::Plain)
            .map(str::to_owned)
            .collect()
    }

    fn camel(text: &str) -> Vec<String> {
        Words::new(text)
            .iter(Stream::Camel)
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn folds_and_splits() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("plain words", "Fix the parser", &["fix", "the", "parser"]),
            ("accents", "migração às três", &["migracao", "as", "tres"]),
            (
                "decomposed accents",
                "migrac\u{327}a\u{303}o",
                &["migracao"],
            ),
            ("snake case", "snake_case_name", &["snake", "case", "name"]),
            ("apostrophe", "doesn't", &["doesn", "t"]),
            ("digits stay", "node22 v2.1", &["node22", "v2", "1"]),
            ("line breaks, NUL", "a\nb\0c\u{1b}[0m", &["a", "b", "c"]),
            (
                "letters without decomposition",
                "Straße łódź ısı",
                &["strasse", "lodz", "isi"],
            ),
            ("dotted capital", "İptal IŞIK", &["iptal", "isik"]),
            ("cyrillic", "Ёлка Йод", &["елка", "иод"]),
            ("han", "修复login错误", &["修", "复", "login", "错", "误"]),
            ("kana keeps its voicing", "デスト", &["デ", "ス", "ト"]),
            ("decomposed kana", "テ\u{3099}ス", &["デ", "ス"]),
            ("nothing", " \t…!?", &[]),
        ];
        for (name, text, expected) in rows {
            assert_eq!(plain(text), *expected, "{name}");
        }
    }

    #[test]
    fn splits_camel_case_in_the_second_stream_only() {
        assert_eq!(plain("resetPassword now"), ["resetpassword", "now"]);
        assert_eq!(camel("resetPassword now"), ["reset", "password", "now"]);
        assert_eq!(
            camel("x HTTPServer parseDateISO8601"),
            ["x", "httpserver", "parse", "date", "iso8601"]
        );
        assert_eq!(
            camel("após açãoNova"),
            ["apos", "acao", "nova"],
            "marks do not hide a boundary"
        );
        assert!(!Words::new("no boundary HERE").has_camel());
    }

    #[test]
    fn colours_and_invisible_characters_do_not_hide_a_word() {
        for text in [
            "Fix the \u{1b}[31mlogin\u{1b}[0m bug",
            "Fix the \u{1b}[1;38;5;200mlo\u{200b}gin bug",
            "Fix the lo\u{ad}gin\u{feff} bug",
            "Fix the \u{1b}login bug",
            "Fix the login bug\u{1b}[",
        ] {
            let words = Words::new(text);
            let plain: Vec<_> = words.iter(Stream::Plain).collect();
            assert_eq!(plain, ["fix", "the", "login", "bug"], "{text:?}");
        }
        let words = Words::new("\u{1b}[日本 x");
        assert_eq!(
            words.iter(Stream::Plain).collect::<Vec<_>>(),
            ["日", "本", "x"]
        );
    }

    #[test]
    fn counts_content_words() {
        for (text, count) in [
            ("Corrija o texto deste botão", 3),
            ("não é só isso", 0),
            ("修复登录错误", 5),
            ("fix it", 1),
            ("x y", 0),
            ("バグ 直す", 2),
        ] {
            assert_eq!(Words::new(text).content_words(), count, "{text}");
        }
    }

    #[test]
    fn knows_what_is_quoted() {
        let rows: &[(&str, &[usize])] = &[
            ("rename \"Add user\" to Save", &[1, 2]),
            ("„Neu laden“ weg, «ouvrir» aussi", &[0, 1, 3]),
            ("run `npm run build` now", &[1, 2, 3]),
            ("「追加」を", &[0, 1]),
            ("5\" disk, next\nline \" end", &[]),
            ("call \"addUser\"", &[1]),
        ];
        for (text, quoted) in rows {
            let words = Words::new(text);
            let found: Vec<usize> = (0..words.len(Stream::Plain))
                .filter(|i| words.is_quoted(Stream::Plain, *i))
                .collect();
            assert_eq!(found, *quoted, "{text}");
        }
        let words = Words::new("the \"addUser\" call");
        assert!(words.is_quoted(Stream::Camel, 1) && words.is_quoted(Stream::Camel, 2));
        assert!(!words.is_quoted(Stream::Camel, 3));
    }

    #[test]
    fn reads_phrases_back() {
        let words = Words::new("Please 修复错误 in resetPassword");
        assert_eq!(words.phrase(Stream::Plain, 0, 2), "please 修复");
        assert_eq!(words.phrase(Stream::Plain, 5, 99), "in resetpassword");
    }
}
