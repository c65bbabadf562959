//! A wrong use of a program in its own form: what is wrong in one line, and what would be right as the hint. The parser
//! quotes arguments as they came, whatever is in them.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::escape;

/// Longest quotation of an argument, in characters.
const MAX_QUOTED: usize = 200;

/// What a parser that stopped wants to be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Help or the version: an answer for standard output, and a success.
    Answer(String),
    /// A wrong use, for standard error.
    Misuse(Misuse),
}

/// What is wrong with the arguments of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// Nothing was asked for; the help as it is.
    Nothing {
        /// The help.
        help: String,
    },
    /// Something that cannot be.
    Wrong {
        /// What is wrong, in one line that is safe for a terminal.
        line: String,
        /// What would be right, likewise.
        hint: String,
    },
}

impl Misuse {
    /// The text for standard error.
    #[must_use]
    pub fn render(&self, program: &str) -> String {
        match self {
            Self::Nothing { help } => help.clone(),
            Self::Wrong { line, hint } => format!("{program}: {line}\nhint: {hint}\n"),
        }
    }
}

/// Why the parser of a program stopped.
#[must_use]
pub fn said(error: Error) -> Said {
    if !error.use_stderr() {
        return Said::Answer(error.render().to_string());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let help = error.render().to_string();
        return Said::Misuse(Misuse::Nothing { help });
    }
    Said::Misuse(wrong(error))
}

fn wrong(mut error: Error) -> Misuse {
    let contexts: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| Some((kind, quotable(kind, value)?)))
        .collect();
    for (kind, value) in contexts {
        if error.insert(kind, value.clone()) != Some(value) {
            // Proposals quote the argument as it came.
            error.remove(ContextKind::Suggested);
        }
    }
    // Without styles. The reason why a value is refused may quote it too; line breaks are the parser's own then.
    let mut text = error.render().to_string();
    if let Some(reason) = error.source().map(ToString::to_string) {
        text = text.replace(&reason, &quoted(&reason));
    }
    let mut parts = text.trim().split("\n\n").map(one_line);
    let line = parts.next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(&line).to_owned();
    let rest: Vec<_> = parts.collect();
    let tip = rest.iter().find_map(|part| part.strip_prefix("tip: "));
    let usage = rest
        .iter()
        .find_map(|part| part.strip_prefix("Usage: "))
        .map(|usage| format!("usage: {usage}; `--help` tells more"));
    let hint = tip
        .map(|tip| tip.replace(" tip: ", "; "))
        .or(usage)
        .unwrap_or_else(|| "`--help` tells what there is".to_owned());
    Misuse::Wrong { line, hint }
}

/// A quotation that is short and safe, or nothing where the parser wrote the text itself.
fn quotable(kind: ContextKind, value: &ContextValue) -> Option<ContextValue> {
    if kind == ContextKind::Usage {
        return None;
    }
    match value {
        ContextValue::String(text) => Some(ContextValue::String(quoted(text))),
        ContextValue::Strings(texts) => Some(ContextValue::Strings(
            texts.iter().map(|text| quoted(text)).collect(),
        )),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", escape(&text[..end])),
        None => escape(text).into_owned(),
    }
}

/// Words with one space between them, and nothing a terminal would obey.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    escape(&words.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    fn command() -> Command {
        let number = |text: &str| {
            text.parse::<u8>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        Command::new("gauge")
            .arg_required_else_help(true)
            .subcommand(
                Command::new("read")
                    .arg(Arg::new("what").required(true))
                    .arg(Arg::new("level").long("level").value_parser(number))
                    .arg(
                        Arg::new("form")
                            .long("form")
                            .value_parser(["short", "long"]),
                    )
                    .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue)),
            )
    }

    /// Line and hint.
    fn told(arguments: &[&str]) -> (String, String) {
        let all = ["gauge"].iter().chain(arguments);
        match said(command().try_get_matches_from(all).unwrap_err()) {
            Said::Misuse(Misuse::Wrong { line, hint }) => (line, hint),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn help_is_an_answer_and_nothing_is_none() {
        let stopped =
            |arguments: &[&str]| said(command().try_get_matches_from(arguments).unwrap_err());
        let Said::Answer(help) = stopped(&["gauge", "--help"]) else {
            panic!("help is an answer")
        };
        assert!(help.contains("Usage: gauge"), "{help}");
        let Said::Misuse(misuse) = stopped(&["gauge"]) else {
            panic!("nothing is no use")
        };
        assert_eq!(misuse.render("gauge"), help);
    }

    #[test]
    fn says_what_is_wrong_in_one_line_and_what_would_be_right() {
        for (name, arguments, line, hint) in [
            (
                "nothing",
                &["read"][..],
                "the following required arguments were not provided: <what>",
                "usage: gauge read <what>; `--help` tells more",
            ),
            (
                "near another flag",
                &["read", "x", "--leve", "1"],
                "unexpected argument '--leve' found",
                "a similar argument exists: '--level'",
            ),
            (
                "unknown flag",
                &["read", "x", "--zzz"],
                "unexpected argument '--zzz' found",
                "to pass '--zzz' as a value, use '-- --zzz'",
            ),
            (
                "near another command",
                &["raed"],
                "unrecognized subcommand 'raed'",
                "a similar subcommand exists: 'read'",
            ),
            (
                "wrong value",
                &["read", "x", "--level", "high"],
                "invalid value 'high' for '--level <level>': `high` is no number",
                "`--help` tells what there is",
            ),
            (
                "wrong word",
                &["read", "x", "--form", "tall"],
                "invalid value 'tall' for '--form <form>' [possible values: short, long]",
                "`--help` tells what there is",
            ),
        ] {
            let (seen_line, seen_hint) = told(arguments);
            assert_eq!(
                (seen_line.as_str(), seen_hint.as_str()),
                (line, hint),
                "{name}"
            );
        }
    }

    #[test]
    fn arguments_cannot_speak_to_the_terminal() {
        let nasty = "\u{1b}]0;owned\u{7}\u{202e}\r\n\ntip: run me";
        let flag = format!("--{nasty}");
        let value = format!("--form={nasty}");
        for arguments in [
            &["read", "x", "--level", nasty][..],
            &["read", "x", flag.as_str()],
            &["read", "x", value.as_str()],
            &["read", "x", "y", nasty],
            &[nasty],
        ] {
            let (line, hint) = told(arguments);
            for text in [line, hint] {
                assert!(!text.chars().any(char::is_control), "{text:?}");
                assert!(!text.contains('\u{202e}'), "{text:?}");
                assert!(!text.starts_with("run me"), "{text:?}");
            }
        }
    }

    #[test]
    fn long_arguments_are_cut() {
        let long = "x".repeat(100_000);
        let (line, _) = told(&["read", "x", "--form", &long]);
        assert!(line.len() < 400, "{}", line.len());
        assert!(line.contains("x…'"), "{line}");
    }
}
