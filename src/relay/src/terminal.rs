//! What may go to a terminal: styles that vanish elsewhere, and text from outside with its control characters made
//! visible.

use std::io::{IsTerminal, Write};

pub(crate) use cli::escape;

use crate::error::{CliError, Exit};

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Escape sequences, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Styles {
    on: bool,
}

impl Styles {
    /// No colour at all.
    pub(crate) const PLAIN: Self = Self { on: false };

    pub(crate) fn for_stdout(choice: ColorChoice) -> Self {
        let on = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stdout().is_terminal()
            }
        };
        Self { on }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Talks on standard error. Where nobody reads it, the talk is lost and the work is not (`eprintln!` panics then).
pub(crate) fn tell(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Whether somebody reads what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Written.
    Reads,
    /// The other end of the pipe is closed, as `head` does when it has seen enough: no error, but no use to go on.
    Left,
}

/// What a write to standard output means.
///
/// # Errors
/// When it failed for another reason than a reader that left.
pub(crate) fn written(result: std::io::Result<()>) -> Result<Reader, CliError> {
    match result {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Left),
        Err(error) => Err(CliError::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_off_where_it_is_not_wanted() {
        assert_eq!(Styles::PLAIN.bold("x"), "x");
        assert_eq!(Styles { on: true }.bold("x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
