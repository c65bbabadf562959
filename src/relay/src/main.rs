//! Program `relay`: reads its arguments, runs one command, turns the result into an exit code.

mod client;
mod confirm;
mod contact;
mod error;
mod explain;
mod home;
mod json_splice;
mod laya;
mod local;
mod output;
mod recent;
mod refused;
mod report;
mod route;
mod spool;
mod summary;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use cli::Said;
use error::{CliError, Exit};

/// Picks the cheapest model, effort, role, tools and validation that are likely to get a coding task right.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decides which model should run a request
    Route(Box<route::RouteArguments>),
    /// Tells why a stored decision fell so, and what came of it
    Explain(explain::ExplainArguments),
    /// Tells what was decided, how that went, what it cost and what it saved
    Report(report::ReportArguments),
    /// The router this client asks, and what that learned
    Laya(Box<laya::LayaArguments>),
}

const AFTER_HELP: &str = "\
Examples:
  relay route \"Fix the login token expiry\"
  relay route --explain \"Fix the login token expiry\"
  relay report --since 30d
  relay laya connect https://router.team.example --token-file key.txt";

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(stopped) => return stop(stopped),
    };
    end(match arguments.command {
        Command::Route(arguments) => route::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Laya(arguments) => laya::run(&arguments),
    })
}

/// Says what the parser has to say instead of running anything.
fn stop(stopped: clap::Error) -> ExitCode {
    match cli::said(stopped) {
        Said::Answer(text) => end(terminal::written(cli::print(&text)).map(|_| Exit::Done)),
        Said::Misuse(misuse) => {
            terminal::tell(&misuse.render("relay"));
            ExitCode::from(Exit::Usage as u8)
        }
    }
}

fn end(result: Result<Exit, CliError>) -> ExitCode {
    match result {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            terminal::tell(&error.render());
            ExitCode::from(error.exit as u8)
        }
    }
}
