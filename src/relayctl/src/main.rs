//! Program `relayctl`: reads its arguments, runs one command, turns the result into an exit code. Nothing is read, started
//! or asked before the command is known.

mod call;
mod conditions;
mod connect;
mod context;
mod daemon;
mod duration;
mod error;
mod facts;
mod follow;
mod input;
mod kinds;
mod manifest;
mod output;
mod program;
mod refusal;
mod router;
mod server;
mod terminal;
mod verbs;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use cli::Said;

use api::exit::Exit;
use call::{Call, Global};
use error::{CliError, Detail};
use program::Program;
use verbs::Verb;

/// Says what should be true of Relay, and shows what is: on this machine or in a cluster.
#[derive(Debug, Parser)]
#[command(name = "relayctl", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: Global,
}

const EXAMPLES: &str = "\
Examples:
  relayctl up
  relayctl get rp
  relayctl apply -f policy.yaml
  relayctl explain rp/default

Exit codes:
";

fn main() -> ExitCode {
    let program = Program::called(std::env::args_os().next().as_deref());
    let arguments = match parse(program) {
        Ok(arguments) => arguments,
        Err(stopped) => return stop(program, stopped),
    };
    let Arguments { verb, global } = arguments;
    let call = Call { program, global };
    let result = verbs::run(&call, verb);
    end(program, call.detail(), result)
}

fn parse(program: Program) -> Result<Arguments, clap::Error> {
    let matches = command(program).try_get_matches()?;
    Arguments::from_arg_matches(&matches)
}

/// The definition of the command line, by the name it was called by.
fn command(program: Program) -> clap::Command {
    let codes = Exit::ALL
        .iter()
        .map(|exit| format!("  {:<5}{}\n", exit.code(), exit.meaning()));
    let help = EXAMPLES.to_owned() + &codes.collect::<String>();
    Arguments::command()
        .bin_name(program.name())
        .after_help(help.trim_end().to_owned())
}

/// Says what the parser has to say instead of running anything.
fn stop(program: Program, stopped: clap::Error) -> ExitCode {
    let none = Detail {
        causes: false,
        status: false,
    };
    match cli::said(stopped) {
        Said::Answer(text) => {
            let printed = terminal::print(&program.speak(&text)).map(|_| Exit::Done);
            end(program, none, printed)
        }
        Said::Misuse(misuse) => {
            terminal::tell(&program.speak(&misuse.render(program.name())));
            ExitCode::from(Exit::Usage.code())
        }
    }
}

fn end(program: Program, detail: Detail, result: Result<Exit, CliError>) -> ExitCode {
    let exit = match result {
        Ok(exit) => exit,
        Err(error) => {
            terminal::tell(&error.render(program, detail));
            error.exit
        }
    };
    ExitCode::from(exit.code())
}
