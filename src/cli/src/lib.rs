//! What every command line of ours says alike: text from outside with its control characters made visible, and a wrong
//! use as one line with a hint. Which commands there are is the programs' own.

mod escape;
mod usage;

use std::io::{self, Write};

pub use escape::escape;
pub use usage::{Misuse, Said, said};

/// Writes help or another whole answer to standard output. A reader that left has seen enough and is no error.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
