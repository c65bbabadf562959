//! How a command answers: for people or as JSON, and the few forms in which both show times, money and long texts.

use std::io::Write;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;

use crate::error::{CliError, Exit};
use crate::terminal::{ColorChoice, Styles, escape, written};

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Arguments of every command with an answer.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// The same as `-o json`
    #[arg(long, conflicts_with = "output")]
    json: bool,

    /// When to colour
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
}

impl OutputArguments {
    /// Prints an answer in the form that was asked for.
    pub(crate) fn print<T: Serialize>(
        &self,
        answer: &T,
        table: impl FnOnce(Styles) -> String,
    ) -> Result<(), CliError> {
        let text = if self.json || self.output == Format::Json {
            json(answer)? + "\n"
        } else {
            table(self.color.for_stdout())
        };
        print(&text)
    }
}

/// Writes the whole answer. A reader that left has what it wanted.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// One line of JSON.
pub(crate) fn json<T: Serialize>(answer: &T) -> Result<String, CliError> {
    serde_json::to_string(answer).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write the answer as JSON: {error}"),
        )
    })
}

/// For example `2026-11-30 10:41 UTC`.
pub(crate) fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// For example `2026-11-30`.
pub(crate) fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// US dollars: cents, and four decimals below one cent.
pub(crate) fn dollars(sum: f64) -> String {
    let sign = if sum < 0.0 { "-" } else { "" };
    let sum = sum.abs();
    if sum != 0.0 && sum < 0.01 {
        format!("{sign}${sum:.4}")
    } else {
        format!("{sign}${}", grouped(&format!("{sum:.2}")))
    }
}

/// A count with commas, for example `12,345`.
pub(crate) fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A count with its noun, for example `1 row` and `2 rows`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Commas between each three digits in front of the decimal point.
fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut out = String::with_capacity(number.len() + whole / 3);
    for (at, c) in number.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A name and what belongs to it, as in a decision.
pub(crate) fn field(name: &str, text: &str, styles: Styles) -> String {
    format!("{}{text}\n", styles.dim(&format!("{name:<12}")))
}

/// Text from outside on one line: white space collapsed, control characters visible, at most `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let text = escape(&words.join(" ")).into_owned();
    match text.char_indices().nth(limit) {
        Some(_) => text
            .chars()
            .take(limit.saturating_sub(1))
            .chain(['…'])
            .collect(),
        None => text,
    }
}

/// Text from outside with its line breaks, each line indented and its control characters visible.
pub(crate) fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {}\n", escape(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_counts_are_readable() {
        for (sum, expected) in [
            (0.0, "$0.00"),
            (0.00012, "$0.0001"),
            (0.01, "$0.01"),
            (-1234.567, "-$1,234.57"),
            (1_000_000.0, "$1,000,000.00"),
        ] {
            assert_eq!(dollars(sum), expected);
        }
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn text_from_outside_keeps_to_its_place() {
        assert_eq!(one_line(" a\n\u{1b}[2J  b ", 20), "a \\u{1b}[2J b");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(indented("a\u{7}\n\nb"), "  a\\u{7}\n  \n  b\n");
    }
}
