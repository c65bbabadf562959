//! Weight and colour for a terminal, which vanish elsewhere.

use std::io::IsTerminal;

/// Escape sequences, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Styles {
    on: bool,
}

impl Styles {
    /// No colour at all.
    pub const PLAIN: Self = Self { on: false };

    /// With sequences, or without.
    #[must_use]
    pub const fn new(on: bool) -> Self {
        Self { on }
    }

    /// Bold text.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Faint text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Red text.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Green text.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Yellow text.
    #[must_use]
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Whether standard output takes colour where nobody said: it is a terminal, and `NO_COLOR` is not set.
#[must_use]
pub fn stdout_takes_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_off_where_it_is_not_wanted() {
        assert_eq!(Styles::PLAIN.red("x"), "x");
        assert_eq!(Styles::new(false).bold("x"), "x");
        assert_eq!(Styles::new(true).red("x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Styles::new(true).bold("x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
