//! Which checkpoints exist by name and where each comes from (wire.md 3). Finding the folder of a source is in
//! `source`; loading it is the host's.

use decision::json::{self, Value, python_repr, trim};
use decision::wire::ModelNames;

pub use crate::source::Source;

/// The published repository of the built-in checkpoints.
const REPOSITORY: &str = "convaiinnovations/laya";

/// Names of the built-in checkpoints.
const BUILT_IN: [&str; 3] = ["english", "multilingual", "typed-decisions"];

/// The name under which a server of one checkpoint knows it.
pub const ONLY: &str = "model";

/// One registered checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Registered name, lower case.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
}

/// Every checkpoint a server may load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    entries: Vec<Entry>,
    names: Option<ModelNames>,
}

impl Registry {
    /// The built-in checkpoints, re-pointed and followed by the additions.
    #[must_use]
    pub fn with_extra(extra: &[Entry]) -> Self {
        let mut entries: Vec<Entry> = BUILT_IN
            .into_iter()
            .map(|name| Entry {
                name: name.to_owned(),
                source: match name {
                    "english" => Source::One(REPOSITORY.to_owned()),
                    folder => Source::Folder(REPOSITORY.to_owned(), folder.to_owned()),
                },
            })
            .collect();
        for added in extra {
            match entries.iter_mut().find(|entry| entry.name == added.name) {
                Some(entry) => entry.source = added.source.clone(),
                None => entries.push(added.clone()),
            }
        }
        let names = ModelNames::built_in_and(entries.iter().map(|entry| entry.name.clone()));
        Self {
            entries,
            names: Some(names),
        }
    }

    /// One folder, which answers everything (`laya serve --model`).
    #[must_use]
    pub fn only(folder: &str) -> Self {
        Self {
            entries: vec![Entry {
                name: ONLY.to_owned(),
                source: Source::One(folder.to_owned()),
            }],
            names: None,
        }
    }

    /// Entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Names and aliases that requests may choose; none where one checkpoint answers everything.
    #[must_use]
    pub const fn names(&self) -> Option<&ModelNames> {
        self.names.as_ref()
    }

    /// The source of a registered name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&Source> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some(&entry.source)
    }

    /// Position of a name among the entries, for orders that follow the registry.
    #[must_use]
    pub fn position(&self, name: &str) -> usize {
        self.entries
            .iter()
            .position(|entry| entry.name == name)
            .unwrap_or(usize::MAX)
    }
}

/// Reads `LAYA_EXTRA_MODELS`: entries in order, and lines to warn with.
///
/// # Errors
/// One sentence about what is wrong with it.
pub fn read_extra_models(text: &str) -> Result<(Vec<Entry>, Vec<String>), String> {
    let value = json::read(text.as_bytes()).map_err(|error| format!("not valid JSON: {error}"))?;
    let Value::Object(object) = &value else {
        return Err(format!(
            "must be a JSON object of name -> source, got {}",
            value.type_name()
        ));
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut warnings = Vec::new();
    for (name, source) in object {
        let name = trim(&name.to_string_lossy()).to_lowercase();
        if !is_name(&name) {
            return Err(format!(
                "{} is no name: letters, digits, '.', '_' and '-', not 'auto'",
                python_repr(&Value::from(name))
            ));
        }
        let source = read_source(source).ok_or_else(|| {
            format!(
                "the source of '{name}' must be a repository or directory, or a list of repository and folder, got {}",
                python_repr(source)
            )
        })?;
        let close = BUILT_IN
            .into_iter()
            .find(|built_in| one_edit_apart(built_in, &name));
        if let Some(close) = close {
            warnings.push(format!(
                "LAYA_EXTRA_MODELS adds '{name}', which is one letter from the built-in '{close}'"
            ));
        }
        entries.retain(|entry| entry.name != name);
        entries.push(Entry { name, source });
    }
    Ok((entries, warnings))
}

fn read_source(value: &Value) -> Option<Source> {
    let text = |value: &Value| {
        let text = trim(value.as_str()?);
        (!text.is_empty()).then(|| text.to_owned())
    };
    match value {
        Value::String(_) => Some(Source::One(text(value)?)),
        Value::List(items) => match items.as_slice() {
            [repository] => Some(Source::One(text(repository)?)),
            [repository, Value::Null] => Some(Source::One(text(repository)?)),
            [repository, folder] => Some(Source::Folder(text(repository)?, text(folder)?)),
            _ => None,
        },
        _ => None,
    }
}

/// `^[a-z0-9][a-z0-9._-]*$`, and not `auto`, which means no name.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = name.bytes();
    name != "auto"
        && bytes.next().is_some_and(allowed)
        && bytes.all(|byte| allowed(byte) || b"._-".contains(&byte))
}

/// Whether one insertion, deletion or replacement turns one into the other.
fn one_edit_apart(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same_start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same_start..], &b[same_start..]);
    match (a, b) {
        ([], []) => false,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, rest @ ..], b) if rest == b => true,
        (a, [_, rest @ ..]) => rest == a,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_additions_in_order() {
        let text = r#"{" English ":"tiny-laya","Extra.1":["repo/x","sub"],"typed-decisions":["tiny-laya"]}"#;
        let (entries, warnings) = read_extra_models(text).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let registry = Registry::with_extra(&entries);
        let listed: Vec<(&str, String)> = registry
            .entries()
            .iter()
            .map(|entry| (entry.name.as_str(), entry.source.label()))
            .collect();
        assert_eq!(
            listed,
            [
                ("english", "tiny-laya".to_owned()),
                (
                    "multilingual",
                    "convaiinnovations/laya/multilingual".to_owned()
                ),
                ("typed-decisions", "tiny-laya".to_owned()),
                ("extra.1", "repo/x/sub".to_owned()),
            ]
        );
        assert_eq!(
            registry.names().unwrap().resolve("EXTRA.1"),
            Some("extra.1")
        );
    }

    #[test]
    fn refuses_what_is_no_registry() {
        for (text, expected) in [
            ("", "not valid JSON"),
            ("[]", "must be a JSON object of name -> source, got list"),
            (r#"{"auto":"x"}"#, "'auto' is no name"),
            (r#"{"-x":"x"}"#, "'-x' is no name"),
            (r#"{"a b":"x"}"#, "'a b' is no name"),
            (r#"{"":"x"}"#, "'' is no name"),
            (r#"{"a":1}"#, "the source of 'a'"),
            (r#"{"a":[]}"#, "the source of 'a'"),
            (r#"{"a":["r","s","t"]}"#, "the source of 'a'"),
            (r#"{"a":" "}"#, "the source of 'a'"),
        ] {
            let error = read_extra_models(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn warns_of_names_that_are_nearly_built_in() {
        for (name, warned) in [
            ("engish", true),
            ("englishh", true),
            ("anglish", true),
            ("english", false),
            ("french", false),
            ("nglish", true),
            ("enlgish", false),
        ] {
            let (_, warnings) = read_extra_models(&format!(r#"{{"{name}":"x"}}"#)).unwrap();
            assert_eq!(!warnings.is_empty(), warned, "{name}");
        }
    }
}
