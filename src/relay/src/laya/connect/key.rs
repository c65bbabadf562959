//! The key of a router as a file gives it. The key itself is in no error.

use std::io::Read;
use std::path::Path;

use crate::error::{CliError, Exit};
use crate::home::sendable;

/// Longest key, in bytes; no router has a longer one.
const MAX_KEY: u64 = 4096;

/// Reads a key; white space around it is no part of it.
pub(super) fn read(path: &Path) -> Result<String, CliError> {
    let text = if path == Path::new("-") {
        standard_input()?
    } else {
        files::read_text(path, MAX_KEY)
            .map_err(|error| CliError::file(path, error))?
            .text
    };
    checked(&text).map_err(|rule| CliError::usage(format!("the key in {} {rule}", path.display())))
}

fn standard_input() -> Result<String, CliError> {
    let wrong = |why: String| CliError::new(Exit::Failed, format!("cannot read the key: {why}"));
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_KEY + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_KEY {
        return Err(wrong(format!("it has more than {MAX_KEY} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not valid UTF-8".to_owned()))
}

fn checked(text: &str) -> Result<String, &'static str> {
    let key = text.trim();
    if key.is_empty() {
        Err("is blank")
    } else if !sendable(key) {
        Err(
            "must be one line of visible ASCII characters without spaces; name a file that holds the key and nothing else",
        )
    } else if key.starts_with('!') {
        // Stored keys that begin so are commands (agent.md 9.3).
        Err("must not begin with `!`: stored, it would be taken for a command")
    } else {
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_that_is_no_command() {
        for (text, expected) in [
            ("abc-123\n", Some("abc-123")),
            (" abc \r\n", Some("abc")),
            ("", None),
            ("\n", None),
            ("team abc", None),
            ("abc\ndef", None),
            ("é", None),
            ("!pass show team", None),
            ("!cmd", None),
        ] {
            assert_eq!(checked(text).ok().as_deref(), expected, "{text:?}");
        }
    }
}
