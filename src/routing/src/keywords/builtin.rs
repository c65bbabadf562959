//! The keyword files that come with the program, one per language, merged group by group in this order.

use std::borrow::Cow;

use super::Lists;
use super::group::Group;

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
    let mut rest = text;
    let mut group: Option<&mut Lists> = None;
    loop {
        rest = skip_blank(rest);
        if rest.is_empty() {
            return Ok(());
        }
        if let Some(after) = rest.strip_prefix("[[group]]") {
            rest = after;
            continue;
        }
        let (key, value) = rest
            .split_once('=')
            .ok_or_else(|| format!("expected a key at `{}`", line(rest)))?;
        let value = skip_blank(value);
        rest = match key.trim() {
            "version" => value.strip_prefix('1').ok_or("expected version = 1")?,
            "id" => {
                let (id, after) = string(value)?;
                let id: Group = id
                    .parse()
                    .map_err(|error: super::group::UnknownGroup| error.to_string())?;
                group = groups.get_mut(id.index());
                after
            }
            list @ ("any" | "unless") => {
                let lists = group.as_deref_mut().ok_or("a list before the first id")?;
                array(
                    value,
                    if list == "any" {
                        &mut lists.any
                    } else {
                        &mut lists.unless
                    },
                )?
            }
            other => return Err(format!("unexpected key `{other}`")),
        };
    }
}

fn array(text: &'static str, terms: &mut Vec<Cow<'static, str>>) -> Result<&'static str, String> {
    let mut rest = text
        .strip_prefix('[')
        .ok_or_else(|| format!("expected a list at `{}`", line(text)))?;
    loop {
        rest = skip_blank(rest);
        if let Some(after) = rest.strip_prefix(']') {
            return Ok(after);
        }
        let (term, after) = string(rest)?;
        terms.push(Cow::Borrowed(term));
        rest = skip_blank(after);
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn string(text: &'static str) -> Result<(&'static str, &'static str), String> {
    let (term, after) = text
        .strip_prefix('"')
        .and_then(|body| body.split_once('"'))
        .ok_or_else(|| format!("expected a string at `{}`", line(text)))?;
    if term.contains(['\\', '\n']) {
        Err(format!("escape or line break in `{}`", line(term)))
    } else {
        Ok((term, after))
    }
}

fn skip_blank(text: &'static str) -> &'static str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix('#') {
        rest = comment
            .split_once('\n')
            .map_or("", |(_, after)| after)
            .trim_start();
    }
    rest
}

fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
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
            "version = 1\n[[group]]\nid = \"type.test\"\nany = [\"a\\n\"]",
            "what",
        ] {
            assert!(read(text, &mut groups).is_err(), "{text}");
        }
    }
}
