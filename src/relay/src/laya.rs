//! `relay laya`: which router this client asks, what it learned, and rows of older questions.

mod connect;
mod memory;
mod migrate;

use clap::{Args, Subcommand};

use crate::error::{CliError, Exit};

/// Arguments of `relay laya`.
#[derive(Debug, Args)]
pub(crate) struct LayaArguments {
    #[command(subcommand)]
    command: LayaCommand,
}

#[derive(Debug, Subcommand)]
enum LayaCommand {
    /// Points this client at a router and tests it; without an address: shows and tests the one in force
    Connect(connect::ConnectArguments),
    /// Learned tasks: lists, shows, searches, edits and forgets them
    Memory(memory::MemoryArguments),
    /// Maps stale rows of the dataset to the questions in force
    Migrate(migrate::MigrateArguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &LayaArguments) -> Result<Exit, CliError> {
    match &arguments.command {
        LayaCommand::Connect(arguments) => connect::run(arguments),
        LayaCommand::Memory(arguments) => memory::run(arguments),
        LayaCommand::Migrate(arguments) => migrate::run(arguments),
    }
}
