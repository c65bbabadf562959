//! What may go to a terminal: styles that vanish elsewhere, and text from outside with its control characters made
//! visible.

pub(crate) use cli::{Reader, Styles, escape, tell};

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

impl ColorChoice {
    /// For what goes to standard output.
    pub(crate) fn for_stdout(self) -> Styles {
        Styles::new(match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => cli::stdout_takes_colour(),
        })
    }
}

/// What a write to standard output means.
///
/// # Errors
/// When it failed for another reason than a reader that left.
pub(crate) fn written(result: std::io::Result<()>) -> Result<Reader, CliError> {
    cli::written(result).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )
    })
}
