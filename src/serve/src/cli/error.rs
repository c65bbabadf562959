//! How a command ends when it cannot do what it was asked: one line, a hint where there is one, and an exit code.

use super::EXIT_REFUSED;

/// The end of a command.
#[derive(Debug)]
pub struct CliError {
    /// Exit code.
    pub code: u8,
    say: Say,
}

#[derive(Debug)]
enum Say {
    Line { line: String, hint: Option<String> },
    Usage(clap::Error),
}

impl CliError {
    /// Arguments that are refused, or a request that could not run.
    pub fn refused(line: impl Into<String>) -> Self {
        Self::new(EXIT_REFUSED, line)
    }

    /// One line and an exit code.
    pub fn new(code: u8, line: impl Into<String>) -> Self {
        let line = line.into();
        Self {
            code,
            say: Say::Line { line, hint: None },
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Say::Line { hint, .. } = &mut self.say {
            *hint = Some(text.into());
        }
        self
    }

    /// Says it on stderr; help goes to stdout.
    pub fn print(&self) {
        match &self.say {
            Say::Line { line, hint } => {
                eprintln!("laya: {line}");
                if let Some(hint) = hint {
                    eprintln!("hint: {hint}");
                }
            }
            Say::Usage(error) => {
                // A closed pipe is nobody's mistake.
                let _ = error.print();
            }
        }
    }
}

impl From<clap::Error> for CliError {
    fn from(error: clap::Error) -> Self {
        Self {
            code: u8::try_from(error.exit_code()).unwrap_or(EXIT_REFUSED),
            say: Say::Usage(error),
        }
    }
}
