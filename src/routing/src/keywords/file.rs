//! The keyword file (routing.md 4.1): TOML with `version = 1` and `[[group]]` tables of `id`, `any`, `unless` and, in a
//! user's file, `remove`. Parses at the border: ids are known groups and terms can be read, or the file is refused with
//! the line and the path of what is wrong.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::group::Group;
use super::term;

/// The only version there is.
const VERSION: i64 = 1;
/// Largest file, in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// What a user's file or a policy changes in one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEdit {
    /// Which group, for example `topic.payment`.
    pub id: String,
    /// Terms that are added.
    pub any: Vec<String>,
    /// Terms of negative context that are added.
    pub unless: Vec<String>,
    /// Terms that are taken out of both lists.
    pub remove: Vec<String>,
}

/// Why a keyword file is refused: one clear place and reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("keyword file, line {line}: {}{message}", path_prefix(path))]
pub struct KeywordFileError {
    /// Line in the file, from 1.
    pub line: usize,
    /// Where in the document, for example `group[2].any[0]`; empty when the file is no TOML.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

fn path_prefix(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("`{path}`: ")
    }
}

/// The keyword file format.
#[derive(Debug)]
pub struct GroupFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: Spanned<i64>,
    #[serde(default)]
    group: Vec<RawGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    id: Spanned<String>,
    #[serde(default)]
    any: Vec<Spanned<String>>,
    #[serde(default)]
    unless: Vec<Spanned<String>>,
    #[serde(default)]
    remove: Vec<Spanned<String>>,
}

impl GroupFile {
    /// Reads a keyword file.
    ///
    /// # Errors
    /// When it is larger than 1 MiB, no TOML, of another version, has an unknown key or group id, or a term that cannot
    /// be read.
    pub fn parse_toml(text: &str) -> Result<Vec<GroupEdit>, KeywordFileError> {
        let at = |span: Range<usize>, path: String, message: String| KeywordFileError {
            line: line_of(text, span.start),
            path,
            message,
        };
        if text.len() > MAX_FILE_BYTES {
            let message = format!("the file has {} bytes, limit {MAX_FILE_BYTES}", text.len());
            return Err(at(0..0, String::new(), message));
        }
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            at(
                error.span().unwrap_or(0..0),
                String::new(),
                error.message().to_owned(),
            )
        })?;
        if *raw.version.get_ref() != VERSION {
            let message = format!(
                "version {} is not known, this program reads {VERSION}",
                raw.version.get_ref()
            );
            return Err(at(raw.version.span(), "version".to_owned(), message));
        }
        let mut edits = Vec::with_capacity(raw.group.len());
        for (index, group) in raw.group.into_iter().enumerate() {
            let id = group.id.get_ref();
            if let Err(error) = id.parse::<Group>() {
                return Err(at(
                    group.id.span(),
                    format!("group[{index}].id"),
                    error.to_string(),
                ));
            }
            for (list, terms) in [
                ("any", &group.any),
                ("unless", &group.unless),
                ("remove", &group.remove),
            ] {
                for (position, term) in terms.iter().enumerate() {
                    if let Err(error) = term::read(term.get_ref(), |_| ()) {
                        return Err(at(
                            term.span(),
                            format!("group[{index}].{list}[{position}]"),
                            error.to_string(),
                        ));
                    }
                }
            }
            edits.push(GroupEdit {
                id: group.id.into_inner(),
                any: values(group.any),
                unless: values(group.unless),
                remove: values(group.remove),
            });
        }
        Ok(edits)
    }
}

fn values(terms: Vec<Spanned<String>>) -> Vec<String> {
    terms.into_iter().map(Spanned::into_inner).collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_users_file() {
        let edits = GroupFile::parse_toml(
            "version = 1\n[[group]]\nid = \"topic.payment\"\nany = [\"dunning\"]\nremove = [\"checkout\"]\n",
        );
        assert_eq!(
            edits,
            Ok(vec![GroupEdit {
                id: "topic.payment".into(),
                any: vec!["dunning".into()],
                unless: vec![],
                remove: vec!["checkout".into()],
            }])
        );
    }

    #[test]
    fn refuses_with_line_and_path() {
        let rows: &[(&str, &str, usize, &str, &str)] = &[
            ("no toml", "version = 1\nwhat is this", 2, "", "key"),
            (
                "no version",
                "[[group]]\nid = \"type.test\"\n",
                1,
                "",
                "version",
            ),
            (
                "other version",
                "# x\nversion = 2\n",
                2,
                "version",
                "version 2 is not known",
            ),
            (
                "unknown key",
                "version = 1\n[[group]]\nid = \"type.test\"\nall = []\n",
                4,
                "",
                "all",
            ),
            (
                "unknown top key",
                "version = 1\nname = \"x\"\n",
                2,
                "",
                "name",
            ),
            (
                "unknown group",
                "version = 1\n[[group]]\nid = \"topic.pay\"\n",
                3,
                "group[0].id",
                "topic.pay",
            ),
            ("no id", "version = 1\n[[group]]\nany = []\n", 2, "", "id"),
            (
                "wrong type",
                "version = 1\n[[group]]\nid = \"type.test\"\nany = \"x\"\n",
                4,
                "",
                "sequence",
            ),
            (
                "bad term",
                "version = 1\n[[group]]\nid = \"type.test\"\nany = [\n\"ok\",\n\"a*b\"]\n",
                6,
                "group[0].any[1]",
                "`*` may only end a word",
            ),
        ];
        for (name, text, line, path, message) in rows {
            let error = GroupFile::parse_toml(text).expect_err(name);
            assert_eq!(
                (error.line, error.path.as_str()),
                (*line, *path),
                "{name}: {error}"
            );
            assert!(error.message.contains(message), "{name}: {error}");
        }
        let error = GroupFile::parse_toml(&" ".repeat(MAX_FILE_BYTES + 1)).expect_err("too large");
        assert!(error.to_string().contains("limit 1048576"), "{error}");
    }
}
