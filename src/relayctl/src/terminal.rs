//! What goes to people: talk on standard error, whole answers on standard output, styles that vanish off a terminal, and
//! questions where somebody can answer.

use std::io::{self, BufRead, IsTerminal, Read, Write};

pub(crate) use cli::escape;

use crate::error::CliError;
use api::exit::Exit;

/// Longest answer to a question, in bytes.
const MAX_ANSWER: u64 = 1000;

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

/// Escape sequences, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Styles {
    on: bool,
}

impl Styles {
    /// No colour at all.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { on: false };

    pub(crate) fn for_stdout(choice: ColorChoice) -> Self {
        let on = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && obeys_sequences()
                    && io::stdout().is_terminal()
            }
        };
        Self { on }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Talks on standard error. Where nobody reads it, the talk is lost and the work is not.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes to standard output at once. A reader that left has seen enough: the process ends as if done.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub(crate) fn print(text: &str) -> Result<Reader, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Left),
        Err(error) => Err(CliError::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )),
    }
}

/// Whether somebody reads what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Written.
    Reads,
    /// The other end of the pipe is closed, as `head` does.
    Left,
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

/// Whether a person can be asked: both ends of the talk are a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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
    tell(&format!("{}? [y/N] ", escape(question)));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .take(MAX_ANSWER)
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
            ("n\n", false),
            ("yep\n", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn colour_is_off_where_it_is_not_wanted() {
        assert_eq!(Styles::PLAIN.red("x"), "x");
        assert_eq!(Styles { on: true }.red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
