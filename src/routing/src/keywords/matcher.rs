//! Compiled terms and how they are found in a text: a table of all words and stems of all terms, and per word the
//! patterns that start with it. The work is linear in the text, whatever the number of terms.

use super::term::{self, MAX_SPAN, TermError};
use crate::words::{Stream, Words};

/// Which list of its group a pattern is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// A match makes the group match.
    Any,
    /// A match takes matches that start inside it away.
    Unless,
}

/// A compiled term.
#[derive(Debug, Clone, Copy)]
struct Pattern {
    group: u16,
    list: List,
    /// Position in its list.
    term: u32,
    start: u32,
    len: u32,
}

/// A word or stem that a pattern wants, and how many words may lie before it.
#[derive(Debug, Clone, Copy)]
struct Element {
    code: u32,
    gap: u8,
}

/// A term found in a text; positions count words of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// Index of the group.
    pub group: u16,
    /// Which list of the group.
    pub list: List,
    /// Position of the term in that list.
    pub term: u32,
    /// The first word.
    pub first: u32,
    /// The last word; the nearest possible one for [`List::Any`], the farthest for [`List::Unless`].
    pub last: u32,
}

/// Terms on their way into a [`Matcher`].
#[derive(Debug, Default)]
pub(super) struct Compiler {
    lexicon: Lexicon,
    elements: Vec<Element>,
    patterns: Vec<Pattern>,
}

impl Compiler {
    /// Room for about so many terms.
    #[must_use]
    pub(super) fn with_capacity(terms: usize) -> Self {
        Self {
            lexicon: Lexicon::with_capacity(terms),
            elements: Vec::with_capacity(terms * 2),
            patterns: Vec::with_capacity(terms),
        }
    }

    /// Adds a term, the `index`-th of its list.
    ///
    /// # Errors
    /// When the term breaks the syntax; nothing is added then.
    pub(super) fn add(
        &mut self,
        group: u16,
        list: List,
        index: u32,
        text: &str,
    ) -> Result<(), TermError> {
        let start = self.elements.len();
        let read = term::read(text, |piece| {
            let code = self.lexicon.intern(piece.word, piece.stem);
            self.elements.push(Element {
                code,
                gap: piece.gap,
            });
        });
        if read.is_err() {
            self.elements.truncate(start);
            return read;
        }
        let len = count(self.elements.len() - start);
        self.patterns.push(Pattern {
            group,
            list,
            term: index,
            start: count(start),
            len,
        });
        Ok(())
    }

    /// Sorts the patterns by their first word.
    #[must_use]
    pub(super) fn finish(self) -> Matcher {
        let Self {
            lexicon,
            elements,
            patterns,
        } = self;
        let codes = lexicon.codes();
        let mut starts = vec![0_u32; codes + 1];
        let first_code = |pattern: &Pattern| elements[pattern.start as usize].code as usize;
        for pattern in &patterns {
            starts[first_code(pattern) + 1] += 1;
        }
        for code in 0..codes {
            starts[code + 1] += starts[code];
        }
        let mut next = starts.clone();
        let mut by_first = patterns.clone();
        for pattern in &patterns {
            let slot = &mut next[first_code(pattern)];
            by_first[*slot as usize] = *pattern;
            *slot += 1;
        }
        Matcher {
            lexicon,
            elements,
            starts,
            patterns: by_first,
        }
    }
}

/// All terms, ready to be looked for.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    lexicon: Lexicon,
    elements: Vec<Element>,
    /// Patterns whose first element has code `c` are `patterns[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
    patterns: Vec<Pattern>,
}

impl Matcher {
    /// Hands out every hit in one stream of a text, in the order of its first word.
    pub(super) fn hits(&self, words: &Words, stream: Stream, mut hit: impl FnMut(Hit)) {
        let codes = Codes::new(&self.lexicon, words, stream);
        for position in 0..codes.len() {
            for &code in codes.at(position) {
                let from = self.starts[code as usize] as usize;
                let to = self.starts[code as usize + 1] as usize;
                for pattern in &self.patterns[from..to] {
                    if let Some((nearest, farthest)) = self.ends(pattern, &codes, position) {
                        let last = if pattern.list == List::Any {
                            nearest
                        } else {
                            farthest
                        };
                        let Pattern {
                            group, list, term, ..
                        } = *pattern;
                        hit(Hit {
                            group,
                            list,
                            term,
                            first: count(position),
                            last: count(last),
                        });
                    }
                }
            }
        }
    }

    /// Nearest and farthest word at which the pattern, begun at `start`, can end. One bit per word that the elements
    /// so far can end at: no backtracking, however often words repeat.
    fn ends(&self, pattern: &Pattern, codes: &Codes, start: usize) -> Option<(usize, usize)> {
        let from = pattern.start as usize;
        let rest = &self.elements[from + 1..from + pattern.len as usize];
        let mut reached = 1_u128;
        for element in rest {
            let mut candidates = 0;
            for step in 1..=u32::from(element.gap) + 1 {
                candidates |= reached << step;
            }
            reached = 0;
            while candidates != 0 {
                let offset = candidates.trailing_zeros();
                candidates &= candidates - 1;
                if codes.has(start + offset as usize, element.code) {
                    reached |= 1 << offset;
                }
            }
            if reached == 0 {
                return None;
            }
        }
        let farthest = u128::BITS - 1 - reached.leading_zeros();
        Some((
            start + reached.trailing_zeros() as usize,
            start + farthest as usize,
        ))
    }
}

// A pattern stretches over at most MAX_SPAN words, so its bits never leave the mask.
const _: () = assert!(MAX_SPAN < u128::BITS as usize);

/// Which words and stems of the lexicon each word of a text matches.
struct Codes {
    codes: Vec<u32>,
    ends: Vec<u32>,
}

impl Codes {
    fn new(lexicon: &Lexicon, words: &Words, stream: Stream) -> Self {
        let mut codes = Vec::with_capacity(words.len(stream));
        let mut ends = Vec::with_capacity(words.len(stream));
        for word in words.iter(stream) {
            lexicon.matches(word, |code| codes.push(code));
            ends.push(count(codes.len()));
        }
        Self { codes, ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn at(&self, position: usize) -> &[u32] {
        let Some(end) = self.ends.get(position) else {
            return &[];
        };
        let start = if position == 0 {
            0
        } else {
            self.ends[position - 1]
        };
        &self.codes[start as usize..*end as usize]
    }

    fn has(&self, position: usize, code: u32) -> bool {
        self.at(position).contains(&code)
    }
}

/// The words and stems of all terms. A code is twice the number of the entry, plus one for the stem reading.
///
/// An open-addressing table over a hash that grows with each byte (FNV-1a), so that one walk over a word of the text
/// asks for every prefix of it. The table is filled from lists of terms only; a text cannot make it slow.
#[derive(Debug, Clone, Default)]
struct Lexicon {
    /// Entry number plus one; 0 is free. The length is a power of two, at most half full.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    longest_stem: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    start: u32,
    end: u32,
    word: bool,
    stem: bool,
}

const FNV_START: u32 = 0x811c_9dc5;

fn grow(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

impl Lexicon {
    fn with_capacity(words: usize) -> Self {
        let slots = vec![0; (words * 2).next_power_of_two().max(64)];
        Self {
            slots,
            entries: Vec::with_capacity(words),
            bytes: Vec::with_capacity(words * 8),
            longest_stem: 0,
        }
    }

    fn codes(&self) -> usize {
        self.entries.len() * 2
    }

    fn slot_of(&self, hash: u32) -> usize {
        (hash ^ (hash >> 15)) as usize & (self.slots.len() - 1)
    }

    /// The entry of a word, or the free slot where it belongs.
    fn find(&self, hash: u32, word: &[u8]) -> Result<usize, usize> {
        let mut slot = self.slot_of(hash);
        loop {
            match self.slots[slot].checked_sub(1) {
                None => return Err(slot),
                Some(number) => {
                    let entry = &self.entries[number as usize];
                    if entry.hash == hash
                        && &self.bytes[entry.start as usize..entry.end as usize] == word
                    {
                        return Ok(number as usize);
                    }
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn intern(&mut self, word: &str, stem: bool) -> u32 {
        if self.entries.len() * 2 >= self.slots.len() {
            self.enlarge();
        }
        let hash = word.bytes().fold(FNV_START, grow);
        let number = self.find(hash, word.as_bytes()).unwrap_or_else(|slot| {
            let start = count(self.bytes.len());
            self.bytes.extend_from_slice(word.as_bytes());
            self.entries.push(Entry {
                hash,
                start,
                end: count(self.bytes.len()),
                word: false,
                stem: false,
            });
            self.slots[slot] = count(self.entries.len());
            self.entries.len() - 1
        });
        let entry = &mut self.entries[number];
        if stem {
            entry.stem = true;
            self.longest_stem = self.longest_stem.max(word.len());
        } else {
            entry.word = true;
        }
        count(number) * 2 + u32::from(stem)
    }

    fn enlarge(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots = vec![0; size];
        for number in 0..self.entries.len() {
            let mut slot = self.slot_of(self.entries[number].hash);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = count(number + 1);
        }
    }

    /// Hands out the code of every stem that the word starts with, and of the word itself.
    fn matches(&self, word: &str, mut found: impl FnMut(u32)) {
        if self.slots.is_empty() {
            return;
        }
        let bytes = word.as_bytes();
        let mut hash = FNV_START;
        for (at, byte) in bytes.iter().enumerate() {
            hash = grow(hash, *byte);
            let end = at + 1;
            let whole = end == bytes.len();
            if !whole && (end > self.longest_stem || !word.is_char_boundary(end)) {
                continue;
            }
            if let Ok(number) = self.find(hash, &bytes[..end]) {
                let entry = &self.entries[number];
                if entry.stem {
                    found(count(number) * 2 + 1);
                }
                if whole && entry.word {
                    found(count(number) * 2);
                }
            }
        }
    }
}

/// Counts of words, terms and bytes of lists; a text is cut long before it reaches 4 GiB (`words`).
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(terms: &[&str], text: &str) -> Vec<(u32, u32, u32)> {
        let mut compiler = Compiler::default();
        for (index, term) in terms.iter().enumerate() {
            compiler
                .add(0, List::Any, count(index), term)
                .expect("a good term");
        }
        let matcher = compiler.finish();
        let words = Words::new(text);
        let mut hits = Vec::new();
        matcher.hits(&words, Stream::Plain, |hit| {
            hits.push((hit.term, hit.first, hit.last))
        });
        hits
    }

    #[test]
    fn finds_words_stems_phrases_and_gaps() {
        assert_eq!(found(&["bug"], "a bug, debug, bugs"), [(0, 1, 1)]);
        assert_eq!(
            found(&["bug*"], "a bug, debug, bugs"),
            [(0, 1, 1), (0, 3, 3)]
        );
        assert_eq!(
            found(&["credit card"], "credit the card; credit-card"),
            [(0, 3, 4)]
        );
        assert_eq!(
            found(&["why ... fail*"], "why 1 2 3 4 5 6 7 8 fails"),
            [(0, 0, 9)]
        );
        assert_eq!(found(&["why ... fail*"], "why 1 2 3 4 5 6 7 8 9 fails"), []);
        assert_eq!(
            found(&["a ..1 b"], "a b x a x b a x x b"),
            [(0, 0, 1), (0, 3, 5)]
        );
        assert_eq!(
            found(&["登录", "测试"], "修复登录测试"),
            [(0, 2, 3), (1, 4, 5)]
        );
        assert_eq!(found(&["fix", "fix*", "fi*"], "fix").len(), 3);
    }

    #[test]
    fn a_later_gap_can_use_a_later_word() {
        assert_eq!(
            found(&["a ..2 b ..1 c"], "a b x b c"),
            [(0, 0, 4)],
            "the first b is too far from c"
        );
    }

    #[test]
    fn repeated_words_stay_cheap() {
        let text = "write ".repeat(50_000);
        let terms: Vec<String> = (0..20)
            .map(|n| format!("write ..20 x{n} ..20 y ..20 z"))
            .collect();
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        assert!(found(&terms, &text).is_empty());
    }

    #[test]
    fn an_empty_matcher_finds_nothing() {
        assert!(found(&[], "any text").is_empty());
    }
}
