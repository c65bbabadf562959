//! A question before destruction: asked where a person can answer, demanded as a flag where nobody can.

pub(crate) use cli::can_ask;

use crate::error::CliError;

/// Whether the person says yes; anything but `y` or `yes` is a no.
pub(crate) fn ask(question: &str) -> Result<bool, CliError> {
    cli::ask(question).map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))
}
