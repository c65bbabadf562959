//! Talk on standard error, what a write to standard output means, and questions where somebody can answer.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use crate::escape;

/// Longest answer to a question, in bytes.
const MAX_ANSWER: u64 = 1000;

/// Talks on standard error. Where nobody reads it, the talk is lost and the work is not (`eprintln!` panics then).
pub fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether somebody reads what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Written.
    Reads,
    /// The other end of the pipe is closed, as `head` does when it has seen enough: no error, but no use to go on.
    Left,
}

/// What a write to standard output means.
///
/// # Errors
/// When it failed for another reason than a reader that left.
pub fn written(result: io::Result<()>) -> io::Result<Reader> {
    match result {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Left),
        Err(error) => Err(error),
    }
}

/// Whether a person can be asked: both ends of the talk are a terminal.
#[must_use]
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person who is there. Anything but `y` or `yes` is a no.
///
/// # Errors
/// The answer cannot be read.
pub fn ask(question: &str) -> io::Result<bool> {
    tell(&format!("{} [y/N] ", escape(question)));
    let mut answer = String::new();
    io::stdin().lock().take(MAX_ANSWER).read_line(&mut answer)?;
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

    #[test]
    fn a_reader_that_left_is_no_error() {
        let failed = |kind: io::ErrorKind| written(Err(kind.into())).map_err(|error| error.kind());
        assert_eq!(written(Ok(())).ok(), Some(Reader::Reads));
        assert_eq!(failed(io::ErrorKind::BrokenPipe), Ok(Reader::Left));
        let full = io::ErrorKind::StorageFull;
        assert_eq!(failed(full), Err(full));
    }
}
