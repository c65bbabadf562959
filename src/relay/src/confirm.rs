//! A question before destruction: asked where a person can answer, demanded as a flag where nobody can.

use std::io::{BufRead, IsTerminal};

use crate::error::CliError;
use crate::terminal::{escape, tell};

/// Longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 1000;

/// Whether a person can be asked: both ends of the talk are a terminal.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether the person says yes; anything but `y` or `yes` is a no.
pub(crate) fn ask(question: &str) -> Result<bool, CliError> {
    tell(&format!("{} [y/N] ", escape(question)));
    let mut answer = String::new();
    let mut stdin = std::io::Read::take(std::io::stdin().lock(), MAX_ANSWER);
    stdin
        .read_line(&mut answer)
        .map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    let answer = answer.trim();
    answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (answer, expected) in [
            ("y\n", true),
            (" Yes \n", true),
            ("", false),
            ("\n", false),
            ("n\n", false),
            ("yep\n", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
