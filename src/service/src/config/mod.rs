//! Settings of a program in layers: flags over environment over a TOML file over defaults. Every value keeps where it
//! came from, unknown keys of the file are refused with a suggestion, and the result can be shown as a file again.
//! It knows no setting; a program asks for its own, one by one, and then calls [`Layers::finish`].

mod suggest;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use suggest::suggest;
pub use tables::Row;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The command line; the flag.
    Flag(String),
    /// The environment; the variable.
    Environment(String),
    /// The configuration file.
    File(PathBuf),
    /// Built in.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

/// A configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("configuration file {}: {message}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with the line.
        message: String,
    },
    /// The file has a key that the program does not know.
    #[error("configuration file {}: unknown key `{key}`{}", path.display(), did_you_mean(suggestion.as_deref()))]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// The key.
        key: String,
        /// A key that is close to it.
        suggestion: Option<String>,
    },
    /// The file has a value of the wrong type.
    #[error("configuration file {}: `{key}` must be {expected}, found {found}", path.display())]
    WrongType {
        /// Which file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A table lacks a field.
    #[error("{key} is missing ({from})")]
    Missing {
        /// The field.
        key: String,
        /// Where it should be.
        from: Source,
    },
    /// A value does not mean what the setting needs.
    #[error("{key} = `{value}` ({from}): {reason}")]
    Invalid {
        /// The setting.
        key: String,
        /// Its text.
        value: String,
        /// Where it came from.
        from: Source,
        /// What is wrong with it.
        reason: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|key| format!(", did you mean `{key}`?"))
        .unwrap_or_default()
}

/// The raw layers of one program.
#[derive(Debug)]
pub struct Layers {
    flags: BTreeMap<&'static str, Vec<String>>,
    environment: BTreeMap<String, String>,
    prefix: &'static str,
    file: Option<(PathBuf, toml::Table)>,
    asked: BTreeSet<&'static str>,
    /// Known variables beside those of the settings.
    variables: BTreeSet<String>,
    shown: Vec<(&'static str, Option<String>, Source)>,
}

impl Layers {
    /// Layers from flags by key (a repeated flag has several values, an absent one none), from the variables whose name
    /// begins with `prefix`, and from a file's path and text. A blank variable counts as unset.
    ///
    /// # Errors
    /// When the file's text is not TOML.
    pub fn new(
        flags: BTreeMap<&'static str, Vec<String>>,
        prefix: &'static str,
        environment: impl IntoIterator<Item = (String, String)>,
        file: Option<(&Path, &str)>,
    ) -> Result<Self, ConfigError> {
        let file = file
            .map(|(path, text)| parse_file(path, text))
            .transpose()?;
        let environment = environment
            .into_iter()
            .filter(|(name, value)| name.starts_with(prefix) && !value.trim().is_empty())
            .collect();
        Ok(Self {
            flags,
            environment,
            prefix,
            file,
            asked: BTreeSet::new(),
            variables: BTreeSet::new(),
            shown: Vec::new(),
        })
    }

    /// A single value, from the strongest layer that has it.
    ///
    /// # Errors
    /// When the value has the wrong type or is not a `T`.
    pub fn optional<T>(&mut self, key: &'static str) -> Result<Option<Setting<T>>, ConfigError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let Some((texts, source)) = self.lookup(key, Shape::One)? else {
            self.shown.push((key, None, Source::Default));
            return Ok(None);
        };
        // The last of a repeated flag counts, as with most programs.
        let text = texts.into_iter().next_back().unwrap_or_default();
        let value = parse(key, &text, &source)?;
        self.shown.push((key, Some(quoted(&text)), source.clone()));
        Ok(Some(Setting { value, source }))
    }

    /// A value that must not be shown: what is printed says only that it is set.
    ///
    /// # Errors
    /// When a layer has it in another form than one text.
    pub fn secret(&mut self, key: &'static str) -> Result<Option<Setting<String>>, ConfigError> {
        let found = self.optional(key)?;
        if found.is_some()
            && let Some((_, value, _)) = self.shown.last_mut()
        {
            *value = Some("\"(not shown)\"".to_owned());
        }
        Ok(found)
    }

    /// A single value or its default.
    ///
    /// # Errors
    /// Those of [`Layers::optional`].
    pub fn with_default<T>(
        &mut self,
        key: &'static str,
        default: T,
    ) -> Result<Setting<T>, ConfigError>
    where
        T: FromStr<Err: fmt::Display> + fmt::Display,
    {
        if let Some(setting) = self.optional(key)? {
            return Ok(setting);
        }
        self.shown.pop();
        self.shown
            .push((key, Some(quoted(&default.to_string())), Source::Default));
        Ok(Setting {
            value: default,
            source: Source::Default,
        })
    }

    /// A list, whole from the strongest layer that has it; separated by commas in the environment; empty by default.
    ///
    /// # Errors
    /// When the value has the wrong type or an item is not a `T`.
    pub fn list<T>(&mut self, key: &'static str) -> Result<Setting<Vec<T>>, ConfigError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let (texts, source) = self
            .lookup(key, Shape::Many)?
            .unwrap_or((Vec::new(), Source::Default));
        let value = texts
            .iter()
            .map(|text| parse(key, text, &source))
            .collect::<Result<_, _>>()?;
        let items: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
        self.shown
            .push((key, Some(format!("[{}]", items.join(", "))), source.clone()));
        Ok(Setting { value, source })
    }

    /// Says that a variable exists which the program reads itself.
    pub fn know_variable(&mut self, key: &'static str) {
        self.variables.insert(variable(self.prefix, key));
    }

    /// Ends the reading: what the file says beyond the settings asked for is refused, and variables nobody asked for
    /// are reported when they look like a mistyped setting.
    ///
    /// # Errors
    /// When the file has a key that was not asked for.
    pub fn finish(self) -> Result<Effective, ConfigError> {
        if let Some((path, table)) = &self.file
            && let Some(key) = table.keys().find(|key| !self.asked.contains(key.as_str()))
        {
            let suggestion = suggest(key, self.asked.iter().copied()).map(str::to_owned);
            return Err(ConfigError::UnknownKey {
                path: path.clone(),
                key: key.clone(),
                suggestion,
            });
        }
        let known: BTreeSet<_> = self
            .asked
            .iter()
            .map(|key| variable(self.prefix, key))
            .chain(self.variables)
            .collect();
        let suspicious = self
            .environment
            .keys()
            .filter(|name| !known.contains(*name))
            .filter_map(|name| {
                let meant = suggest(name, known.iter().map(String::as_str))?;
                Some(format!(
                    "environment variable {name} is not known, did you mean {meant}?"
                ))
            })
            .collect();
        Ok(Effective {
            settings: self.shown,
            warnings: suspicious,
        })
    }

    fn lookup(
        &mut self,
        key: &'static str,
        shape: Shape,
    ) -> Result<Option<(Vec<String>, Source)>, ConfigError> {
        self.asked.insert(key);
        if let Some(texts) = self.flags.get(key).filter(|texts| !texts.is_empty()) {
            return Ok(Some((
                texts.clone(),
                Source::Flag(format!("--{}", key.replace('_', "-"))),
            )));
        }
        let name = variable(self.prefix, key);
        if let Some(text) = self.environment.get(&name) {
            let texts = match shape {
                Shape::One => vec![text.clone()],
                Shape::Many => text
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned)
                    .collect(),
            };
            return Ok(Some((texts, Source::Environment(name))));
        }
        let Some((path, value)) = self
            .file
            .as_ref()
            .and_then(|(path, table)| Some((path, table.get(key)?)))
        else {
            return Ok(None);
        };
        let wrong = |expected, found: &toml::Value| ConfigError::WrongType {
            path: path.clone(),
            key: key.to_owned(),
            expected,
            found: found.type_str(),
        };
        let texts = match (shape, value) {
            (Shape::One, value) => {
                vec![scalar(value).ok_or_else(|| wrong("a single value", value))?]
            }
            (Shape::Many, toml::Value::Array(items)) => items
                .iter()
                .map(|item| scalar(item).ok_or_else(|| wrong("a list of single values", item)))
                .collect::<Result<_, _>>()?,
            (Shape::Many, other) => return Err(wrong("a list", other)),
        };
        Ok(Some((texts, Source::File(path.clone()))))
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    One,
    Many,
}

fn parse_file(path: &Path, text: &str) -> Result<(PathBuf, toml::Table), ConfigError> {
    let table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        ConfigError::Syntax {
            path: path.to_owned(),
            message: format!("line {line}: {}", error.message()),
        }
    })?;
    Ok((path.to_owned(), table))
}

/// Text of a value that stands alone.
fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

fn variable(prefix: &str, key: &str) -> String {
    format!("{prefix}{}", key.to_ascii_uppercase())
}

fn parse<T>(key: &str, text: &str, source: &Source) -> Result<T, ConfigError>
where
    T: FromStr<Err: fmt::Display>,
{
    text.parse().map_err(|error: T::Err| ConfigError::Invalid {
        key: key.to_owned(),
        // An address may hold a password.
        value: if text.contains("://") && text.contains('@') {
            "(an address with a name or a password)".to_owned()
        } else {
            text.to_owned()
        },
        from: source.clone(),
        reason: error.to_string(),
    })
}

/// A TOML basic string; JSON's escapes are a subset of TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What is in force, for `--print-config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    settings: Vec<(&'static str, Option<String>, Source)>,
    /// Things that were ignored but look like mistakes.
    pub warnings: Vec<String>,
}

impl fmt::Display for Effective {
    /// A TOML file, each value with its source behind it; what is unset is a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value, source) in &self.settings {
            match value {
                Some(value) => writeln!(f, "{key} = {value}  # {source}")?,
                None => writeln!(f, "# {key} is unset")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
