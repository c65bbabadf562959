//! What a person sees when a command fails: one line, a hint, an exit code (routing.md 21). Codes are API.

use std::fmt::{self, Display};
use std::path::Path;

/// Exit codes of `relay route`, `explain`, `report` and `laya` (routing.md 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Decided, shown or done.
    Done = 0,
    /// Anything not listed below.
    Failed = 1,
    /// Arguments or input that cannot be.
    Usage = 2,
    /// No model can run the request.
    NoCandidate = 3,
    /// No router answered, and there is nothing to do without one.
    Unreachable = 4,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    line: String,
    hint: Option<String>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            line: line.into(),
            hint: None,
        }
    }

    /// Arguments or input that cannot be.
    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, why: impl Display) -> Self {
        Self::new(
            Exit::Failed,
            format!("cannot use {}: {why}", path.display()),
        )
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With something more to say of it.
    pub(crate) fn also(mut self, more: &str) -> Self {
        self.line.push_str("; ");
        self.line.push_str(more);
        self
    }

    /// A hint for an error that has none.
    pub(crate) fn or_hint(self, hint: impl FnOnce() -> String) -> Self {
        match self.hint {
            Some(_) => self,
            None => self.hint(hint()),
        }
    }

    /// No model can run the request.
    pub(crate) fn no_candidate(line: impl Into<String>) -> Self {
        Self::new(Exit::NoCandidate, line).hint(
            "name providers with `--providers`, or models of a tier in `laya.models` of settings.json",
        )
    }

    /// The line and the hint, as they go to standard error.
    pub(crate) fn render(&self) -> String {
        let line = crate::terminal::escape(&self.line);
        match &self.hint {
            Some(hint) => format!("relay: {line}\nhint: {}\n", crate::terminal::escape(hint)),
            None => format!("relay: {line}\n"),
        }
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for CliError {}
