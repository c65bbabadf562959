//! What the keyword groups found in one text, and the forms of the text (routing.md 4.1, 4.3).

use unicode_normalization::char::is_combining_mark;

use super::Keywords;
use super::file_reference;
use super::group::Group;
use super::matcher::{Hit, List};
use crate::words::{Stream, Words};

/// Words that may lie before the first one that matters (`form.lead`).
const MAX_LEAD: usize = 8;

/// What may stand behind a "no" that answers what came before.
const STOPS: &[char] = &[
    ',', '.', '!', ';', ':', '-', '–', '—', '…', '\n', '，', '、', '。', '！',
];

/// One place where a term of a group matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The reading of the text it is in.
    pub stream: Stream,
    /// Its first word, counted in that stream from 0.
    pub first: usize,
    /// Its last word.
    pub last: usize,
    /// Position of the term in the group's list.
    term: u32,
}

/// A term that matched, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedTerm {
    /// The term as it is written in the list.
    pub term: String,
    /// The words of the text it matched, folded.
    pub words: String,
}

/// Hits by group while a text is read.
#[derive(Debug)]
pub(super) struct Hits {
    any: Vec<Vec<Match>>,
    unless: Vec<Vec<Match>>,
}

impl Hits {
    pub(super) fn new(groups: usize) -> Self {
        Self {
            any: vec![Vec::new(); groups],
            unless: vec![Vec::new(); groups],
        }
    }

    pub(super) fn push(&mut self, stream: Stream, hit: Hit) {
        let lists = if hit.list == List::Any {
            &mut self.any
        } else {
            &mut self.unless
        };
        if let Some(list) = lists.get_mut(usize::from(hit.group)) {
            list.push(Match {
                stream,
                first: hit.first as usize,
                last: hit.last as usize,
                term: hit.term,
            });
        }
    }

    /// Takes away each match whose first word lies inside a match of an `unless` term of its group and stream, and the
    /// verbs that stand in quotation marks.
    pub(super) fn finish(self, words: &Words) -> Vec<Vec<Match>> {
        let mut groups = self.any;
        for group in QUOTABLE {
            groups[group.index()].retain(|found| !words.is_quoted(found.stream, found.first));
        }
        for (matches, unless) in groups.iter_mut().zip(&self.unless) {
            if !unless.is_empty() && !matches.is_empty() {
                let mut shadows = Shadows {
                    unless,
                    next: 0,
                    covered: None,
                };
                matches.retain(|found| !shadows.cover(found));
            }
        }
        groups
    }
}

/// Walks matches and `unless` matches side by side; both are in the order of stream and first word.
struct Shadows<'a> {
    unless: &'a [Match],
    next: usize,
    covered: Option<(Stream, usize)>,
}

impl Shadows<'_> {
    fn cover(&mut self, found: &Match) -> bool {
        while let Some(shadow) = self.unless.get(self.next) {
            if (shadow.stream, shadow.first) > (found.stream, found.first) {
                break;
            }
            let end = (shadow.stream, shadow.last);
            self.covered = self.covered.max(Some(end));
            self.next += 1;
        }
        self.covered
            .is_some_and(|(stream, last)| stream == found.stream && found.first <= last)
    }
}

/// A text, read. Borrowed from the keywords it was read with.
#[derive(Debug)]
pub struct Scan<'a> {
    keywords: &'a Keywords,
    text: &'a str,
    words: Words,
    groups: Vec<Vec<Match>>,
    content_words: usize,
    /// The first word that matters.
    start: usize,
    /// The first word of what is ordered: `start`, or what follows `can you`.
    order: usize,
    file_reference: bool,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        keywords: &'a Keywords,
        text: &'a str,
        words: Words,
        groups: Vec<Vec<Match>>,
    ) -> Self {
        let content_words = words.content_words();
        let file_reference = file_reference::find(text).is_some();
        let mut scan = Self {
            keywords,
            text,
            words,
            groups,
            content_words,
            start: 0,
            order: 0,
            file_reference,
        };
        scan.start = scan.skip_leads(0);
        let polite = scan
            .at(Group::FormPolite, scan.start)
            .map(|found| found.last + 1)
            .max();
        scan.order = polite.map_or(scan.start, |after| scan.skip_leads(after));
        scan
    }

    /// The text that was read.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The folded words of the text.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Number of content words (routing.md 4.4, step 7).
    #[must_use]
    pub fn content_words(&self) -> usize {
        self.content_words
    }

    /// Whether any term of a group matched in either stream, or a verb that counts for it at the start.
    #[must_use]
    pub fn matches(&self, group: Group) -> bool {
        !self.all(group).is_empty()
            || group
                .first_verbs()
                .is_some_and(|first| self.starts_with(first))
    }

    /// Every match of a group, by stream and first word.
    #[must_use]
    pub fn all(&self, group: Group) -> &[Match] {
        self.groups.get(group.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether the added rule with this id matched.
    #[must_use]
    pub fn rule_matches(&self, id: &str) -> bool {
        self.keywords
            .rule_index(id)
            .is_some_and(|group| !self.groups[group].is_empty())
    }

    /// Whether a term of the group stands at the first word that matters: greetings, `please` and `can you` may come
    /// before it.
    #[must_use]
    pub fn starts_with(&self, group: Group) -> bool {
        self.at(group, self.start)
            .chain(self.at(group, self.order))
            .next()
            .is_some()
    }

    /// Matches of a group in the plain stream that begin at a word.
    fn at(&self, group: Group, position: usize) -> impl Iterator<Item = &Match> {
        self.all(group)
            .iter()
            .filter(move |found| found.stream == Stream::Plain && found.first == position)
    }

    /// Whether the message says that what came before was wrong: a mark anywhere, or a "no" as its first word with a
    /// comma, a stop or a line end right behind it.
    #[must_use]
    pub fn corrects(&self) -> bool {
        let first = self.text.trim_start();
        let behind =
            first.trim_start_matches(|c: char| c.is_alphanumeric() || is_combining_mark(c));
        let stands_alone = behind.is_empty() || behind.starts_with(STOPS);
        self.matches(Group::FollowWrong)
            || (stands_alone && self.at(Group::FollowNo, 0).next().is_some())
    }

    /// Whether every word of the text belongs to a match of the group, or is a stop word where those are allowed.
    #[must_use]
    pub fn whole_text_is(&self, group: Group, also_stop_words: bool) -> bool {
        let count = self.words.len(Stream::Plain);
        let mut covered = vec![false; count];
        for found in self
            .all(group)
            .iter()
            .filter(|found| found.stream == Stream::Plain)
        {
            covered[found.first..=found.last.min(count.saturating_sub(1))].fill(true);
        }
        covered.contains(&true)
            && self
                .words
                .iter(Stream::Plain)
                .zip(&covered)
                .all(|(word, covered)| {
                    *covered || (also_stop_words && crate::stop_words::is_stop(word))
                })
    }

    /// Whether the trimmed text ends with a question mark, of any script, perhaps followed by closing quotes.
    #[must_use]
    pub fn ends_with_question_mark(&self) -> bool {
        let end = self.text.trim_end_matches(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    '"' | '\'' | ')' | '!' | '”' | '’' | '»' | '`' | '*' | '_' | '！'
                )
        });
        end.ends_with(['?', '？', '؟'])
    }

    /// Whether the text starts with an interrogative.
    #[must_use]
    pub fn starts_with_interrogative(&self) -> bool {
        self.starts_with(Group::FormQuestion)
    }

    /// Question form (routing.md 4.3). Ours: in languages whose interrogatives do not come first, one anywhere will do.
    #[must_use]
    pub fn question_form(&self) -> bool {
        self.ends_with_question_mark()
            && (self.starts_with_interrogative() || self.matches(Group::FormQuestionAnywhere))
    }

    /// An order in the form of a question (routing.md 4.3): starts politely and matches a type that changes something.
    #[must_use]
    pub fn polite(&self) -> bool {
        (self.starts_with(Group::FormPolite) || self.matches(Group::FormPoliteAnywhere))
            && CHANGING_TYPES.iter().any(|group| self.matches(*group))
    }

    /// Only an explanation is wanted (routing.md 4.3).
    #[must_use]
    pub fn explanatory(&self) -> bool {
        (self.question_form()
            || self.starts_with(Group::FormExplain)
            || self.matches(Group::FormExplainAnywhere))
            && !NOT_EXPLANATORY.iter().any(|group| self.matches(*group))
    }

    /// Whether a source or data file is named.
    #[must_use]
    pub fn file_reference(&self) -> bool {
        self.file_reference
    }

    /// What matched in a group, each term once, for people; at most `limit` terms.
    #[must_use]
    pub fn matched_terms(&self, group: Group, limit: usize) -> Vec<MatchedTerm> {
        // A verb that counts at the start stands for its type.
        let shown = if self.all(group).is_empty() {
            group.first_verbs().unwrap_or(group)
        } else {
            group
        };
        let here = |found: &&Match| {
            shown == group || found.first == self.start || found.first == self.order
        };
        let mut seen: Vec<MatchedTerm> = Vec::new();
        for found in self.all(shown).iter().filter(here) {
            let term = self.keywords.term(shown.index(), found.term);
            // Several languages may have the same term.
            if seen.len() < limit && !seen.iter().any(|before| before.term == term) {
                let words = self.words.phrase(found.stream, found.first, found.last);
                seen.push(MatchedTerm {
                    term: term.to_owned(),
                    words,
                });
            }
        }
        seen
    }

    /// The first word from a position on that is no greeting and no `please`.
    fn skip_leads(&self, from: usize) -> usize {
        let mut start = from;
        for lead in self
            .all(Group::FormLead)
            .iter()
            .take_while(|lead| lead.stream == Stream::Plain)
        {
            if lead.first > start || start >= from + MAX_LEAD {
                break;
            }
            if lead.first >= from {
                start = start.max(lead.last + 1);
            }
        }
        // A text of nothing but greetings starts with them.
        if start >= self.words.len(Stream::Plain) {
            from
        } else {
            start
        }
    }
}

/// Ours: verbs of these groups do not count in quotation marks, where they are labels: renaming the button "Send" sends
/// nothing. What fails, and what floors rest on, counts everywhere.
const QUOTABLE: &[Group] = &[
    Group::TypeRefactor,
    Group::TypeDocumentation,
    Group::TypeResearch,
    Group::TypeFeature,
    Group::TypeCodeEdit,
    Group::FormFeature,
    Group::FormEdit,
    Group::FormRun,
];

/// Types that change something: a polite question with one of them is an order.
const CHANGING_TYPES: &[Group] = &[
    Group::TypeSecurity,
    Group::TypeDebugging,
    Group::TypeTest,
    Group::TypeBugFix,
    Group::TypeRefactor,
    Group::TypeDocumentation,
    Group::TypeFeature,
    Group::TypeCodeEdit,
];

/// A match here means that more than an explanation is wanted, or that something fails.
const NOT_EXPLANATORY: &[Group] = &[
    Group::TypeBugFix,
    Group::TypeRefactor,
    Group::TypeFeature,
    Group::TypeCodeEdit,
    Group::MarkFail,
];
