//! `relayctl policy`: the policy in force, what another one would be, and how requests fare under both.

mod diff;
mod show;
mod source;
mod test;

use clap::{Args, Subcommand};

use super::{DOCUMENT, TEXT};
use crate::call::{Call, Obeys};
use crate::error::CliError;
use api::exit::Exit;

/// Arguments of `relayctl policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows the revision in force, with every default
    Show(show::ShowArguments),
    /// Shows what a file would change of the revision in force
    Diff(diff::DiffArguments),
    /// Decides requests with expected tiers, under this policy and the one in force
    Test(test::TestArguments),
}

impl PolicyArguments {
    pub(crate) fn obeys(&self) -> (&'static str, Obeys) {
        match self.action {
            Action::Show(_) => ("policy show", DOCUMENT),
            Action::Diff(_) => ("policy diff", TEXT),
            Action::Test(_) => ("policy test", DOCUMENT),
        }
    }
}

/// Runs one of them.
pub(crate) fn run(call: &Call, arguments: PolicyArguments) -> Result<Exit, CliError> {
    match arguments.action {
        Action::Show(arguments) => show::run(call, &arguments),
        Action::Diff(arguments) => diff::run(call, &arguments),
        Action::Test(arguments) => test::run(call, &arguments),
    }
}
