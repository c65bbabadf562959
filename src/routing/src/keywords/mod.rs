//! Keyword groups as data: the built-in lists, a user's or a policy's changes to them, and the compiled form that finds
//! their terms in a text (routing.md 4.1, 4.2). What a match means is decided elsewhere (`derive`, `rules`).

mod builtin;
pub mod file;
mod file_reference;
pub mod group;
mod matcher;
pub mod scan;
pub mod term;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{LazyLock, OnceLock};

use decision::contract::Digest;

pub use file::{GroupEdit, GroupFile, KeywordFileError};
pub use group::Group;
pub use scan::Scan;

use crate::words::{Stream, Words, is_beyond_latin};
use matcher::{Compiler, List, Matcher};

/// One term, from the program's data or from a user.
type Term = Cow<'static, str>;

/// The two lists of a group.
#[derive(Debug, Clone, Default)]
struct Lists {
    any: Vec<Term>,
    unless: Vec<Term>,
}

/// A rule that a policy adds (routing.md 5): matched as a group of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedRule {
    /// Its id; the group is `rule.<id>`.
    pub id: String,
    /// Terms of which one must match.
    pub patterns: Vec<String>,
    /// Negative context.
    pub unless: Vec<String>,
}

/// What a problem is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A term that cannot be read, or a rule that has none.
    Term,
    /// What is to be done with terms: an unknown group, a term to remove that is not there, an id that is taken.
    Edit,
}

/// Something in a set of edits or rules that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {message}")]
pub struct Problem {
    /// Where, relative to the list that was passed in: `[3].any[0]`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What it is about.
    pub cause: Cause,
}

/// A merged and compiled set of keyword groups.
#[derive(Debug)]
pub struct Keywords {
    /// One entry per [`Group`], by its index.
    groups: Vec<Lists>,
    rules: Vec<(String, Lists)>,
    /// Terms in Latin letters.
    latin: Matcher,
    /// Terms with a letter of another script. Compiled when the first text with such a letter comes: a command that
    /// reads one English sentence should not pay for them.
    other: OnceLock<Matcher>,
    digest: OnceLock<String>,
}

impl Keywords {
    /// The lists that come with the program.
    ///
    /// # Panics
    /// Never for a program whose tests passed: they compile this data.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Keywords> = LazyLock::new(|| {
            let groups = builtin::groups().expect("the built-in keyword files are read in tests");
            Keywords::new(groups, Vec::new())
        });
        &BUILTIN
    }

    /// This set with groups changed: first `remove`, then `any` and `unless` are added. A term that is there already
    /// is not added twice.
    ///
    /// # Errors
    /// Every id, term or removal that cannot be carried out, all at once.
    pub fn with_edits(&self, edits: &[GroupEdit]) -> Result<Self, Vec<Problem>> {
        let mut groups = self.groups.clone();
        let mut problems = Vec::new();
        for (index, edit) in edits.iter().enumerate() {
            match edit.id.parse::<Group>() {
                Ok(group) => {
                    groups[group.index()].apply(edit, &format!("[{index}]"), &mut problems)
                }
                Err(error) => problems.push(Problem {
                    path: format!("[{index}].id"),
                    message: error.to_string(),
                    cause: Cause::Edit,
                }),
            }
        }
        Self::checked(groups, self.rules.clone(), problems)
    }

    /// This set with the rules of a policy, which replace those it had. The digest covers the groups only: rules are
    /// part of the policy's own digest.
    ///
    /// # Errors
    /// Every rule with a bad or repeated id, without patterns, or with a term that cannot be read.
    pub fn with_rules(&self, rules: &[AddedRule]) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut lists: Vec<(String, Lists)> = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let mut problem = |cause: Cause, field: &str, message: &str| {
                problems.push(Problem {
                    path: format!("[{index}].{field}"),
                    message: message.to_owned(),
                    cause,
                });
            };
            if rule.id.trim().is_empty() {
                problem(Cause::Edit, "id", "a rule needs an id");
            }
            if lists.iter().any(|(id, _)| *id == rule.id) {
                problem(Cause::Edit, "id", "another rule has this id");
            }
            if rule.patterns.is_empty() {
                problem(Cause::Term, "patterns", "a rule needs at least one pattern");
            }
            let mut own = Lists::default();
            add_terms(
                &mut own.any,
                &rule.patterns,
                &format!("[{index}].patterns"),
                &mut problems,
            );
            add_terms(
                &mut own.unless,
                &rule.unless,
                &format!("[{index}].unless"),
                &mut problems,
            );
            lists.push((rule.id.clone(), own));
        }
        Self::checked(self.groups.clone(), lists, problems)
    }

    fn checked(
        groups: Vec<Lists>,
        rules: Vec<(String, Lists)>,
        problems: Vec<Problem>,
    ) -> Result<Self, Vec<Problem>> {
        if problems.is_empty() {
            Ok(Self::new(groups, rules))
        } else {
            Err(problems)
        }
    }

    fn new(groups: Vec<Lists>, rules: Vec<(String, Lists)>) -> Self {
        let latin = compile(&groups, &rules, |term| !needs_other(term));
        Self {
            groups,
            rules,
            latin,
            other: OnceLock::new(),
            digest: OnceLock::new(),
        }
    }

    /// Every term of every group and rule.
    #[cfg(test)]
    fn terms(&self) -> impl Iterator<Item = &str> {
        let lists = self
            .groups
            .iter()
            .chain(self.rules.iter().map(|(_, lists)| lists));
        lists
            .flat_map(|lists| lists.any.iter().chain(&lists.unless))
            .map(AsRef::as_ref)
    }

    fn other(&self) -> &Matcher {
        self.other
            .get_or_init(|| compile(&self.groups, &self.rules, needs_other))
    }

    /// `sha256:` and the hex digest of the merged groups in canonical form: a compact JSON array with
    /// `[id,[any…],[unless…]]` per group in the order of [`Group::ALL`], terms as written and in merge order.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut form = Vec::new();
            for (group, lists) in Group::ALL.iter().zip(&self.groups) {
                form.push(if group.index() == 0 { b'[' } else { b',' });
                let row = (group.as_str(), &lists.any, &lists.unless);
                // Strings and lists of strings always have a JSON form.
                form.extend(serde_json::to_vec(&row).unwrap_or_default());
            }
            form.push(b']');
            Digest::of(&form).to_string()
        })
    }

    /// Looks for all terms in a text, in both streams. Linear in the length of the text; any text is fine.
    #[must_use]
    pub fn scan<'a>(&'a self, text: &'a str) -> Scan<'a> {
        let words = Words::new(text);
        let mut hits = scan::Hits::new(self.groups.len() + self.rules.len());
        let streams = if words.has_camel() {
            &[Stream::Plain, Stream::Camel] as &[Stream]
        } else {
            &[Stream::Plain]
        };
        let other = words.beyond_latin().then(|| self.other());
        for stream in streams {
            for matcher in std::iter::once(&self.latin).chain(other) {
                matcher.hits(&words, *stream, |hit| hits.push(*stream, hit));
            }
        }
        let groups = hits.finish(&words);
        Scan::new(self, text, words, groups)
    }

    /// The term at a position of a group's `any` list, as it is written.
    fn term(&self, group: usize, position: u32) -> &str {
        let lists = self.groups.get(group).or_else(|| {
            let rule = group.checked_sub(self.groups.len())?;
            self.rules.get(rule).map(|(_, lists)| lists)
        });
        lists
            .and_then(|lists| lists.any.get(position as usize))
            .map_or("", |term| term.as_ref())
    }

    /// Index of the group of an added rule.
    fn rule_index(&self, id: &str) -> Option<usize> {
        let position = self.rules.iter().position(|(rule, _)| rule == id)?;
        Some(self.groups.len() + position)
    }
}

/// Whether a term has a letter of another script than Latin, so that it can match only in a text with such a letter.
fn needs_other(term: &str) -> bool {
    !term.is_ascii() && term.chars().any(is_beyond_latin)
}

/// Compiles the terms that `wanted` picks. Every term was read before: at the border for those of users, in tests for
/// those of the program.
fn compile(groups: &[Lists], rules: &[(String, Lists)], wanted: impl Fn(&str) -> bool) -> Matcher {
    let lists = || groups.iter().chain(rules.iter().map(|(_, lists)| lists));
    let mut compiler = Compiler::with_capacity(lists().map(|l| l.any.len() + l.unless.len()).sum());
    for (index, group) in (0_u16..).zip(lists()) {
        for (list, terms) in [(List::Any, &group.any), (List::Unless, &group.unless)] {
            for (position, term) in (0_u32..).zip(terms).filter(|(_, term)| wanted(term)) {
                let read = compiler.add(index, list, position, term);
                debug_assert!(read.is_ok(), "{term}: {read:?}");
            }
        }
    }
    compiler.finish()
}

impl Lists {
    fn apply(&mut self, edit: &GroupEdit, path: &str, problems: &mut Vec<Problem>) {
        for (position, term) in edit.remove.iter().enumerate() {
            let before = self.any.len() + self.unless.len();
            let wanted = normal(term);
            self.any.retain(|own| normal(own) != wanted);
            self.unless.retain(|own| normal(own) != wanted);
            if self.any.len() + self.unless.len() == before {
                problems.push(Problem {
                    path: format!("{path}.remove[{position}]"),
                    message: format!("group {} has no term `{term}`", edit.id),
                    cause: Cause::Edit,
                });
            }
        }
        add_terms(&mut self.any, &edit.any, &format!("{path}.any"), problems);
        add_terms(
            &mut self.unless,
            &edit.unless,
            &format!("{path}.unless"),
            problems,
        );
    }
}

fn add_terms(list: &mut Vec<Term>, terms: &[String], path: &str, problems: &mut Vec<Problem>) {
    if terms.is_empty() {
        return;
    }
    let mut known: HashSet<String> = list.iter().map(|own| normal(own)).collect();
    for (position, term) in terms.iter().enumerate() {
        if let Err(error) = term::read(term, |_| ()) {
            problems.push(Problem {
                path: format!("{path}[{position}]"),
                message: format!("`{term}`: {error}"),
                cause: Cause::Term,
            });
        } else if known.insert(normal(term)) {
            list.push(Cow::Owned(term.clone()));
        }
    }
}

/// What makes two terms the same: their folded words, stems and gaps. A term that cannot be read equals only itself.
fn normal(term: &str) -> String {
    let mut form = String::with_capacity(term.len());
    let read = term::read(term, |piece| {
        // Writing to a string cannot fail.
        let _ = write!(
            form,
            "{} {}{} ",
            piece.gap,
            piece.word,
            if piece.stem { "*" } else { "" }
        );
    });
    if read.is_ok() { form } else { term.to_owned() }
}

#[cfg(test)]
mod tests;
