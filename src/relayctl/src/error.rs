//! What a person sees when a command fails: one line, a hint, an exit code; the chain of causes with `-v`, and a `Status`
//! for programs that asked for JSON.

use std::error::Error;
use std::fmt::{self, Display};
use std::path::Path;

use serde_json::{Value, json};

use crate::program::Program;
use crate::terminal::escape;
use api::exit::Exit;

/// Deepest chain of causes that is told.
const MAX_CAUSES: usize = 16;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    line: String,
    hint: Option<String>,
    causes: Vec<String>,
    status: Option<Box<Value>>,
}

/// What else an error tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The chain of causes (`-v`).
    pub(crate) causes: bool,
    /// A `Status` object as JSON (`-o json`).
    pub(crate) status: bool,
}

impl CliError {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            line: line.into(),
            hint: None,
            causes: Vec::new(),
            status: None,
        }
    }

    /// Arguments that cannot be.
    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// An object or input that is refused.
    pub(crate) fn refused(line: impl Into<String>) -> Self {
        Self::new(Exit::Refused, line)
    }

    /// A file of ours that cannot be used.
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

    /// What was attempted, in front of why it failed.
    pub(crate) fn attempting(mut self, what: impl Display) -> Self {
        self.line = format!("{what}: {}", self.line);
        self
    }

    /// Another line, with the same code, hint and causes.
    pub(crate) fn saying(mut self, line: impl Into<String>) -> Self {
        self.line = line.into();
        self
    }

    /// With the causes of an error, each once.
    pub(crate) fn caused_by(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next.filter(|_| self.causes.len() < MAX_CAUSES) {
            let text = error.to_string();
            // What was said already, also behind the name of a variant, is said once.
            let repeats = |said: &String| said.ends_with(&text) || text.ends_with(said.as_str());
            let is_known = repeats(&self.line) || self.causes.iter().any(repeats);
            if !is_known {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// With the server's own answer.
    pub(crate) fn with_status(mut self, status: Value) -> Self {
        self.status = Some(Box::new(status));
        self
    }

    /// The line, as it stands in the middle of other talk.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// As it goes to standard error.
    pub(crate) fn render(&self, program: Program, detail: Detail) -> String {
        let mut text = format!(
            "{}: {}\n",
            program.name(),
            escape(&program.speak(&self.line))
        );
        if detail.causes {
            for cause in &self.causes {
                text.push_str(&format!("  caused by: {}\n", escape(cause)));
            }
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {}\n", escape(&program.speak(hint))));
        }
        if detail.status {
            text.push_str(&format!("{}\n", self.status()));
        }
        text
    }

    /// The `Status` of this error: the server's, else one made of the line.
    fn status(&self) -> Value {
        if let Some(status) = &self.status {
            return (**status).clone();
        }
        let (reason, code) = match self.exit {
            Exit::NotFound => ("NotFound", 404),
            Exit::Refused => ("Invalid", 422),
            Exit::Conflict => ("Conflict", 409),
            Exit::Unreachable => ("ServiceUnavailable", 503),
            Exit::TimedOut => ("Timeout", 504),
            Exit::Forbidden => ("Forbidden", 403),
            Exit::Usage | Exit::ConfirmationNeeded => ("BadRequest", 400),
            _ => ("Unknown", 500),
        };
        json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.line,
            "reason": reason,
            "code": code,
        })
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Detail = Detail {
        causes: false,
        status: false,
    };

    #[test]
    fn an_error_is_one_line_and_a_hint() {
        let inner = std::io::Error::other("no path");
        let error = CliError::new(Exit::Unreachable, "cannot reach `relayd local`: no\nroute")
            .hint("start it with `relayctl up`")
            .caused_by(&inner);
        assert_eq!(
            error.render(Program::Relayctl, PLAIN),
            "relayctl: cannot reach `relayd local`: no\\nroute\nhint: start it with `relayctl up`\n"
        );
        let chain = Detail {
            causes: true,
            status: false,
        };
        assert_eq!(
            error.render(Program::Plugin, chain),
            "kubectl relay: cannot reach `relayd local`: no\\nroute\n  caused by: no path\nhint: start it with `kubectl relay up`\n"
        );
    }

    #[test]
    fn programs_get_a_status() {
        let detail = Detail {
            causes: false,
            status: true,
        };
        let text = CliError::new(Exit::NotFound, "nothing there").render(Program::Relayctl, detail);
        let status: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(status["reason"], "NotFound");
        assert_eq!(status["message"], "nothing there");
        let text = CliError::new(Exit::NotFound, "nothing there")
            .with_status(json!({"kind": "Status", "message": "the server's"}))
            .render(Program::Relayctl, detail);
        assert!(text.contains("the server's"));
    }
}
