//! What every command line of ours says alike: text from outside with its control characters made visible, a wrong use as
//! one line with a hint, styles, talk and questions. Which commands there are is the programs' own.

mod escape;
mod styles;
mod talk;
mod usage;

use std::io::{self, Write};

pub use escape::escape;
pub use styles::{Styles, stdout_takes_colour};
pub use talk::{Reader, ask, can_ask, tell, written};
pub use usage::{Misuse, Said, said};

/// Writes help or another whole answer to standard output. A reader that left has seen enough and is no error.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}
