//! What goes to people: talk on standard error, whole answers on standard output, styles that vanish off a terminal, and
//! questions where somebody can answer.

use std::io::{self, IsTerminal, Write};

pub(crate) use cli::{Reader, Styles, can_ask, escape, tell};

use crate::error::CliError;
use api::exit::Exit;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorChoice {
    /// For what goes to standard output.
    pub(crate) fn for_stdout(self) -> Styles {
        Styles::new(match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => obeys_sequences() && cli::stdout_takes_colour(),
        })
    }
}

/// Writes to standard output at once. A reader that left has seen enough: the process ends as if done.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub(crate) fn print(text: &str) -> Result<Reader, CliError> {
    let mut out = io::stdout().lock();
    let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    cli::written(result).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )
    })
}

/// A terminal without a cursor, as that of an editor, shows sequences instead of obeying them.
fn obeys_sequences() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Lines of the terminal that standard output is, if it is one that can be drawn on.
pub(crate) fn height() -> Option<usize> {
    if !io::stdout().is_terminal() || !obeys_sequences() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Columns of the terminal that the talk goes to, if it is one that can be drawn on.
fn talk_width() -> Option<usize> {
    if !io::stderr().is_terminal() || !obeys_sequences() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 1)
}

/// What happens while somebody waits: on a terminal one line that is drawn anew, elsewhere one line per change.
#[derive(Debug)]
pub(crate) struct Progress {
    width: Option<usize>,
    /// What stands in the line that is drawn anew.
    drawn: bool,
    last: String,
}

impl Progress {
    /// Of standard error.
    pub(crate) fn new() -> Self {
        Self {
            width: talk_width(),
            drawn: false,
            last: String::new(),
        }
    }

    /// A line that stays. The same twice is said once.
    pub(crate) fn say(&mut self, line: &str) {
        if self.last == line {
            return;
        }
        self.clear();
        tell(&format!("{}\n", escape(line)));
        self.last = line.to_owned();
    }

    /// A line that the next one replaces; off a terminal it stays like the others.
    pub(crate) fn show(&mut self, line: &str) {
        let Some(width) = self.width else {
            self.say(line);
            return;
        };
        if self.last == line {
            return;
        }
        let shown: String = escape(line).chars().take(width - 1).collect();
        tell(&format!("\r{shown}\u{1b}[K"));
        self.drawn = true;
        self.last = line.to_owned();
    }

    fn clear(&mut self) {
        if self.drawn {
            tell("\r\u{1b}[K");
            self.drawn = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Asks before something is destroyed, unless the answer was given with `--yes`.
///
/// # Errors
/// [`Exit::ConfirmationNeeded`] where nobody can answer; [`Exit::Failed`] for a no.
pub(crate) fn confirm(yes: bool, question: &str) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(CliError::new(
            Exit::ConfirmationNeeded,
            format!("{question} needs a yes, and there is no terminal to ask on"),
        )
        .hint("say it with `--yes`"));
    }
    if ask(question)? {
        Ok(())
    } else {
        Err(CliError::new(
            Exit::Failed,
            format!("{question}: not done, the answer was no"),
        ))
    }
}

/// Asks a person who is there.
///
/// # Errors
/// The answer cannot be read.
pub(crate) fn ask(question: &str) -> Result<bool, CliError> {
    cli::ask(&format!("{question}?"))
        .map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))
}
