//! The field `model` of a request, and names of checkpoints in general (wire.md 4.7, 8).

use super::refusal::Refusal;
use crate::json::{Value, python_repr, python_str, trim};

/// What `model` chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The router between checkpoints decides.
    Automatic,
    /// A checkpoint by its registered name.
    Checkpoint(String),
}

/// Registered names of checkpoints and their aliases, all in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelNames {
    names: Vec<String>,
    aliases: Vec<(String, String)>,
}

/// Published repositories whose id means a checkpoint; nothing stands for automatic.
const PUBLISHED: [(&str, Option<&str>); 3] = [
    ("convaiinnovations/laya-multilingual", Some("multilingual")),
    (
        "convaiinnovations/laya-typed-decisions",
        Some("typed-decisions"),
    ),
    ("convaiinnovations/laya", None),
];

impl ModelNames {
    /// Names in the order of the registry, aliases as (alias, name).
    #[must_use]
    pub fn new<N, A>(names: N, aliases: A) -> Self
    where
        N: IntoIterator<Item: Into<String>>,
        A: IntoIterator<Item = (&'static str, &'static str)>,
    {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            aliases: aliases
                .into_iter()
                .map(|(alias, name)| (alias.to_owned(), name.to_owned()))
                .collect(),
        }
    }

    /// The built-in names and aliases, followed by the names that a configuration adds (wire.md 3).
    #[must_use]
    pub fn built_in_and<N: IntoIterator<Item: Into<String>>>(added: N) -> Self {
        let mut names = Self::new(
            ["english", "multilingual", "typed-decisions"],
            [
                ("en", "english"),
                ("laya", "english"),
                ("default", "english"),
                ("multi", "multilingual"),
                ("ml", "multilingual"),
                ("laya-multilingual", "multilingual"),
                ("typed", "typed-decisions"),
                ("typed_decisions", "typed-decisions"),
                ("laya-typed-decisions", "typed-decisions"),
                ("decisions", "typed-decisions"),
            ],
        );
        for name in added.into_iter().map(Into::into) {
            if !names.names.contains(&name) {
                names.names.push(name);
            }
        }
        names
    }

    /// Registered names in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The registered name that a name or alias means, in any case and with white space around it.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&str> {
        let name = trim(name).to_lowercase();
        let alias = self
            .aliases
            .iter()
            .find(|(alias, _)| *alias == name)
            .map(|(_, name)| name.as_str());
        alias.or_else(|| {
            self.names
                .iter()
                .find(|known| **known == name)
                .map(String::as_str)
        })
    }

    /// What the field `model` chooses.
    ///
    /// # Errors
    /// A value that reads like a path or repository nobody knows, as a refusal of status 422.
    pub fn choose(&self, value: &Value) -> Result<ModelChoice, Refusal> {
        if value.is_falsy() {
            return Ok(ModelChoice::Automatic);
        }
        let text = trim(&python_str(value)).to_lowercase();
        if let Some((_, name)) = PUBLISHED.iter().find(|(repository, _)| *repository == text) {
            return Ok(name.map_or(ModelChoice::Automatic, |name| {
                ModelChoice::Checkpoint(name.to_owned())
            }));
        }
        match self.resolve(&text) {
            Some(name) => Ok(ModelChoice::Checkpoint(name.to_owned())),
            None if text.contains(['/', '\\']) || text.starts_with(['.', '~']) => {
                Err(Refusal::unprocessable(format!(
                    "{}, or omit model to let the router choose",
                    self.unknown(value)
                )))
            }
            None => Ok(ModelChoice::Automatic),
        }
    }

    /// The registered name that the field `task` means (wire.md 8).
    ///
    /// # Errors
    /// A value that names nothing, as a refusal of status 422.
    pub fn resolve_task(&self, value: &Value) -> Result<&str, Refusal> {
        let text = python_str(value);
        let typed_decisions = text.to_lowercase().replace('-', "_") == "typed_decisions";
        let resolved = if typed_decisions {
            self.resolve("typed-decisions")
        } else {
            self.resolve(&text)
        };
        resolved.ok_or_else(|| Refusal::unprocessable(self.unknown(value)))
    }

    /// Text of `unknown model …`, without an ending.
    #[must_use]
    pub fn unknown(&self, value: &Value) -> String {
        let list = |mut words: Vec<&str>| {
            words.sort_unstable();
            python_repr(&Value::List(words.into_iter().map(Value::from).collect()))
        };
        format!(
            "unknown model {}; choose one of {} (or an alias: {})",
            python_repr(value),
            list(self.names.iter().map(String::as_str).collect()),
            list(
                self.aliases
                    .iter()
                    .map(|(alias, _)| alias.as_str())
                    .collect()
            )
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    #[test]
    fn chooses_checkpoints() {
        let names = ModelNames::built_in_and(["tiny"]);
        let automatic = Some(ModelChoice::Automatic);
        let checkpoint = |name: &str| Some(ModelChoice::Checkpoint(name.to_owned()));
        for (json, choice) in [
            ("null", automatic.clone()),
            ("false", automatic.clone()),
            ("0", automatic.clone()),
            ("0.0", automatic.clone()),
            ("\"\"", automatic.clone()),
            ("[]", automatic.clone()),
            ("{}", automatic.clone()),
            ("7", automatic.clone()),
            ("true", automatic.clone()),
            ("\"jev-1\"", automatic.clone()),
            ("\"  \"", automatic.clone()),
            ("\" EN \"", checkpoint("english")),
            ("\"tiny\"", checkpoint("tiny")),
            ("\"Typed_Decisions\"", checkpoint("typed-decisions")),
            ("\"ConvaiInnovations/laya\"", automatic.clone()),
            (
                "\"convaiinnovations/laya-multilingual\"",
                checkpoint("multilingual"),
            ),
            (
                "\"convaiinnovations/laya-typed-decisions\"",
                checkpoint("typed-decisions"),
            ),
            ("\"someone/else\"", None),
            ("\"c:\\\\x\"", None),
            ("\" .hidden\"", None),
            ("\"~\"", None),
            ("[\"a/b\"]", None),
            ("1.5", automatic),
        ] {
            assert_eq!(
                names.choose(&read(json.as_bytes()).expect("reads")).ok(),
                choice,
                "{json}"
            );
        }
    }

    #[test]
    fn resolves_tasks_and_names_what_is_unknown() {
        let names = ModelNames::built_in_and(Vec::<String>::new());
        for (task, name) in [
            ("Typed-Decisions", "typed-decisions"),
            (" EN ", "english"),
            ("multi", "multilingual"),
        ] {
            assert_eq!(names.resolve_task(&task.into()), Ok(name), "{task}");
        }
        assert_eq!(
            names.resolve_task(&"x".into()).expect_err("unknown").detail,
            "unknown model 'x'; choose one of ['english', 'multilingual', 'typed-decisions'] (or an alias: ['decisions', \
             'default', 'en', 'laya', 'laya-multilingual', 'laya-typed-decisions', 'ml', 'multi', 'typed', \
             'typed_decisions'])"
        );
    }
}
