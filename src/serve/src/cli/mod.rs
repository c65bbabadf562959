//! The command line of program `laya` (wire.md 18): a word and its arguments, or the form of 0.4.15, which routes or
//! answers a text. Data goes to stdout, talk to stderr.

mod ask;
mod error;
mod inspect;
mod parity;
mod probe;
mod query;
mod questions;
mod random;
mod serve;
mod volume;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{ArgMatches, Args, Command, FromArgMatches};

pub use error::CliError;

/// Arguments refused, or a request that could not run.
pub const EXIT_REFUSED: u8 = 2;

/// Words of the table that other parts of Relay bring, or later releases.
const NOT_HERE: [&str; 7] = [
    "mcp",
    "eval",
    "calibrate",
    "gpu-check",
    "evaluate",
    "train",
    "bench",
];

/// The environment of the process.
pub type Environment = BTreeMap<String, String>;

/// Runs the program with its arguments, its name first, and gives the exit code.
#[must_use]
pub fn run(mut arguments: Vec<OsString>, environment: &Environment) -> u8 {
    let name = arguments
        .first()
        .map(Path::new)
        .and_then(Path::file_stem)
        .and_then(OsStr::to_str);
    // One binary also answers to the names of 0.4.15's other programs.
    let word = match name {
        Some("laya-serve") => Some("serve"),
        Some("laya-mcp-server") => Some("mcp"),
        Some("laya-evals") => Some("eval"),
        _ => None,
    };
    if let Some(word) = word {
        arguments.insert(1, word.into());
    }
    match dispatch(&arguments, environment) {
        Ok(code) => code,
        Err(error) => {
            error.print();
            error.code
        }
    }
}

fn dispatch(arguments: &[OsString], environment: &Environment) -> Result<u8, CliError> {
    let word = arguments
        .get(1)
        .and_then(|word| word.to_str())
        .unwrap_or_default();
    if NOT_HERE.contains(&word) {
        return Err(CliError::refused(format!(
            "'{word}' is not part of this build"
        )));
    }
    let known = words()
        .into_iter()
        .find(|command| command.get_name() == word);
    let Some(command) = known else {
        let query: query::Query = parse(program(), arguments)?;
        return ask::run(query, ask::Mode::Asked, environment);
    };
    let command = command.bin_name(format!("laya {word}"));
    let arguments = &arguments[1..];
    match word {
        "serve" => serve::run(&matches(command, arguments)?, environment),
        "predict" => ask::run(parse(command, arguments)?, ask::Mode::Predict, environment),
        "route" => ask::run(parse(command, arguments)?, ask::Mode::Route, environment),
        "inspect" => inspect::run(&parse(command, arguments)?),
        "probe" => probe::run(&parse(command, arguments)?, environment),
        "fetch" | "verify" | "prune" => {
            volume::run(word, &matches(command, arguments)?, environment)
        }
        "parity" => parity::run(&parse(command, arguments)?),
        _ => random::run(&parse(command, arguments)?),
    }
}

fn matches(command: Command, arguments: &[OsString]) -> Result<ArgMatches, CliError> {
    command
        .try_get_matches_from(arguments)
        .map_err(CliError::from)
}

fn parse<T: FromArgMatches>(command: Command, arguments: &[OsString]) -> Result<T, CliError> {
    Ok(T::from_arg_matches(&matches(command, arguments)?)?)
}

/// The program without its words: the form of 0.4.15.
fn program() -> Command {
    query::Query::augment_args(Command::new("laya"))
        .version(env!("CARGO_PKG_VERSION"))
        .about("Typed decisions about a text")
        .after_help(
            "Without a word the text is routed, or answered with --predict. Words: serve, predict, route, inspect, probe, \
             parity, fetch, verify, prune, random-checkpoint; `laya WORD --help` explains one.",
        )
        .disable_help_subcommand(true)
}

fn words() -> Vec<Command> {
    let own = [
        serve::command(),
        query::Query::augment_args(Command::new("predict").about("Answer questions about a text")),
        query::Query::augment_args(
            Command::new("route").about("Say which checkpoint would answer a text"),
        ),
        inspect::Inspect::augment_args(
            Command::new("inspect").about("Show what a checkpoint folder holds"),
        ),
        probe::Probe::augment_args(
            Command::new("probe").about("Ask a server whether it is ready, or probe questions"),
        ),
        parity::Parity::augment_args(
            Command::new("parity").about("Compare a reduced precision with f32 and write a report"),
        ),
        random::Random::augment_args(
            Command::new("random-checkpoint")
                .about("Write a random checkpoint for tests and benchmarks"),
        ),
    ];
    own.into_iter().chain(volume::commands()).collect()
}

/// The whole definition, for completions and the manual page.
#[must_use]
pub fn command() -> Command {
    program().subcommands(words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn words_and_those_of_other_builds_are_apart() {
        for command in words() {
            assert!(!NOT_HERE.contains(&command.get_name()));
        }
    }

    #[test]
    fn the_form_of_the_original_takes_any_text() {
        let arguments = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let query: query::Query = parse(
            program(),
            &arguments("laya please serve me --lang de --json now"),
        )
        .unwrap();
        assert_eq!(query.text, ["please", "serve", "me", "now"]);
        assert_eq!((query.lang.as_deref(), query.json), (Some("de"), true));
    }
}
