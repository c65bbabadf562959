//! The keyword files that come with the program, one per language, merged group by group in this order.

use std::borrow::Cow;

use super::Lists;
use super::group::{Group, UnknownGroup};

/// Name and text of every file. What holds in every language (names of products, error words of programs) is `common`.
pub(super) const FILES: &[(&str, &str)] = &[
    ("common", include_str!("../../data/keywords/common.toml")),
    ("en", include_str!("../../data/keywords/en.toml")),
    ("pt", include_str!("../../data/keywords/pt.toml")),
    ("de", include_str!("../../data/keywords/de.toml")),
    ("es", include_str!("../../data/keywords/es.toml")),
    ("fr", include_str!("../../data/keywords/fr.toml")),
    ("it", include_str!("../../data/keywords/it.toml")),
    ("zh", include_str!("../../data/keywords/zh.toml")),
    ("ja", include_str!("../../data/keywords/ja.toml")),
    ("ru", include_str!("../../data/keywords/ru.toml")),
    ("ko", include_str!("../../data/keywords/ko.toml")),
    ("pl", include_str!("../../data/keywords/pl.toml")),
    ("cs", include_str!("../../data/keywords/cs.toml")),
    ("tr", include_str!("../../data/keywords/tr.toml")),
];

pub(super) fn groups() -> Result<Vec<Lists>, String> {
    let mut groups = vec![Lists::default(); Group::ALL.len()];
    for (name, text) in FILES {
        read(text, &mut groups).map_err(|message| format!("{name}.toml: {message}"))?;
    }
    Ok(groups)
}

/// Reads a file of this program into the groups, borrowing every term.
///
/// A command starts cold in a few milliseconds, and a TOML parser would take most of them. So the files that come with
/// the program keep to a subset, `key = "text"` and `key = ["text", …]` without escapes, and this reader takes nothing
/// else. A test reads them as TOML too and compares.
fn read(text: &'static str, groups: &mut [Lists]) -> Result<(), String> {
    let mut reader = Reader { text, at: 0 };
    let mut group: Option<&mut Lists> = None;
    while reader.peek().is_some() {
        match reader.key() {
            "[[group]]" => {}
            "version =" => reader.expect(b'1')?,
            "id =" => {
                let id: Group = reader
                    .string()?
                    .parse()
                    .map_err(|error: UnknownGroup| error.to_string())?;
                group = groups.get_mut(id.index());
            }
            list @ ("any =" | "unless =") => {
                let lists = group.as_deref_mut().ok_or("a list before the first id")?;
                let terms = if list == "any =" {
                    &mut lists.any
                } else {
                    &mut lists.unless
                };
                reader.expect(b'[')?;
                while reader.peek() != Some(b']') {
                    terms.push(Cow::Borrowed(reader.string()?));
                    if reader.peek() == Some(b',') {
                        reader.at += 1;
                    }
                }
                reader.expect(b']')?;
            }
            other => return Err(format!("unexpected `{other}`")),
        }
    }
    Ok(())
}

/// A place in a file. Works on bytes: every byte it looks for is ASCII.
struct Reader {
    text: &'static str,
    at: usize,
}

impl Reader {
    /// The next byte after blanks and comments.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    self.at += bytes[self.at..]
                        .iter()
                        .take_while(|byte| **byte != b'\n')
                        .count()
                }
                byte => return Some(*byte),
            }
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), String> {
        if self.peek() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        let line = self
            .text
            .get(self.at..)
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        Err(format!("expected `{}` at `{line}`", char::from(wanted)))
    }

    /// `[[group]]`, or a key with its equals sign, or what stands there instead.
    fn key(&mut self) -> &'static str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.find(['=', '\n']).map_or(rest.len(), |end| {
            end + usize::from(rest.as_bytes()[end] == b'=')
        });
        self.at += end;
        rest.get(..end).unwrap_or_default().trim_end()
    }

    fn string(&mut self) -> Result<&'static str, String> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .bytes()
            .position(|byte| byte == b'"' || byte == b'\n')
            .filter(|end| rest.as_bytes()[*end] == b'"');
        let string = rest.get(
            ..end.ok_or_else(|| {
                format!("no end of `{}`", rest.lines().next().unwrap_or_default())
            })?,
        );
        let string = string.unwrap_or_default();
        self.at += string.len() + 1;
        Ok(string)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::keywords::{GroupFile, normal};

    #[test]
    fn the_files_say_the_same_as_toml() {
        let mut merged: HashMap<Group, (Vec<String>, Vec<String>)> = HashMap::new();
        for (name, text) in FILES {
            for edit in
                GroupFile::parse_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"))
            {
                assert!(
                    edit.remove.is_empty(),
                    "{name}: `remove` is for users' files"
                );
                let lists = merged
                    .entry(edit.id.parse().expect("checked by the parser"))
                    .or_default();
                lists.0.extend(edit.any);
                lists.1.extend(edit.unless);
            }
        }
        let groups = groups().expect("readable");
        for (group, lists) in Group::ALL.iter().zip(groups) {
            let (any, unless) = merged.remove(group).unwrap_or_default();
            assert_eq!(
                (lists.any, lists.unless),
                (owned(any), owned(unless)),
                "{group}"
            );
        }
    }

    fn owned(terms: Vec<String>) -> Vec<Cow<'static, str>> {
        terms.into_iter().map(Cow::Owned).collect()
    }

    #[test]
    fn no_file_says_a_term_twice() {
        let mut twice = Vec::new();
        for (name, text) in FILES {
            let mut groups = vec![Lists::default(); Group::ALL.len()];
            read(text, &mut groups).expect("readable");
            for (group, lists) in Group::ALL.iter().zip(&groups) {
                for (list, terms) in [("any", &lists.any), ("unless", &lists.unless)] {
                    let mut seen = std::collections::HashSet::new();
                    let again = terms.iter().filter(|term| !seen.insert(normal(term)));
                    twice.extend(again.map(|term| format!("{name}: {group}.{list}: {term}")));
                }
            }
        }
        assert!(twice.is_empty(), "{}", twice.join("\n"));
    }

    #[test]
    fn every_group_has_terms() {
        for (group, lists) in Group::ALL.iter().zip(groups().expect("readable")) {
            assert!(!lists.any.is_empty(), "{group}");
        }
    }

    #[test]
    fn refuses_what_is_not_in_the_subset() {
        let mut groups = vec![Lists::default(); Group::ALL.len()];
        for text in [
            "version = 2",
            "any = [\"x\"]",
            "[[group]]\nid = \"nope\"",
            "version = 1\n[[group]]\nid = \"type.test\"\nany = [\"a\n\"]",
            "what",
        ] {
            assert!(read(text, &mut groups).is_err(), "{text}");
        }
    }
}
