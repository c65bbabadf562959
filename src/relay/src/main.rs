//! Program `relay`: reads its arguments, runs one command, turns the result into an exit code.

mod client;
mod error;
mod home;
mod local;
mod route;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Exit;

/// Picks the cheapest model, effort, role, tools and validation that are likely to get a coding task right.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decides which model should run a request.
    Route(Box<route::RouteArguments>),
}

const AFTER_HELP: &str = "\
Examples:
  relay route \"Fix the login token expiry\"
  relay route --explain \"Fix the login token expiry\"";

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers, everything else is a wrong use.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            let _ = error.print();
            return ExitCode::from(exit as u8);
        }
    };
    let result = match arguments.command {
        Command::Route(arguments) => route::run(&arguments),
    };
    match result {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            eprint!("{}", error.render());
            ExitCode::from(error.exit as u8)
        }
    }
}
