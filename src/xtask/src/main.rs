//! `cargo xtask`: every check of the workspace and the generators. Parses and dispatches, nothing else.

mod checks;
mod command;
mod deps;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks and generators of the Relay workspace.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Every check: format, clippy, tests, doc tests, dependency order.
    Test,
    /// Proves that no crate depends on one below it in design.md section 1.
    Deps,
}

fn main() -> ExitCode {
    let Arguments { task } = Arguments::parse();
    let result = match task {
        Task::Test => checks::run_all(),
        Task::Deps => deps::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
