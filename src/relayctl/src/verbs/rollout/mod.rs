//! `relayctl rollout`: how a new version takes over from an old one, and the hand of a person in it. Writes fields of
//! `spec.rollout` alone (but `undo`, which changes the wish).

mod change;
pub(crate) mod going;
mod history;
mod status;
mod undo;

use clap::{Args, Subcommand};

use self::change::Change;
pub(crate) use self::history::minute;
pub(crate) use self::status::{coming, head};
use super::{CHANGES, DOCUMENT};
use crate::call::{Call, Obeys, block_on};
use crate::error::CliError;
use crate::kinds;
use api::exit::Exit;

/// Arguments of `relayctl rollout`.
#[derive(Debug, Args)]
#[command(after_help = "\
`abort` and `undo` wait until it is so, the others with `--wait` until the rollout is over; exit code 10 when the new
version was taken back. Where Git or another program writes the same field, it wins, which is said beforehand.

Examples:
  relayctl rollout status main
  relayctl rollout pause main
  relayctl rollout undo main --timeout 5m")]
pub(crate) struct RolloutArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows where it stands, what was measured and what comes next
    Status(Of),
    /// Shows the last rollouts and what was taken back
    History(Of),
    /// Holds steps and their clocks; what fails is taken back all the same
    Pause(Of),
    /// Goes on, and says which kind of pause it is
    Resume(Of),
    /// Lets the candidate through that waits for a person
    Approve(Of),
    /// Takes the candidate back, as if it had failed
    Abort(Of),
    /// Forgets once what was taken back, and goes on after a failure
    Retry(Of),
    /// Goes back to the version before, without a gate
    Undo(Of),
}

#[derive(Debug, Args)]
struct Of {
    /// Which LayaServer
    #[arg(value_name = "SERVER")]
    server: String,
}

impl RolloutArguments {
    pub(crate) fn obeys(&self) -> (&'static str, Obeys) {
        match self.action {
            Action::Status(_) => ("rollout status", DOCUMENT),
            Action::History(_) => ("rollout history", DOCUMENT),
            Action::Pause(_) => ("rollout pause", CHANGES),
            Action::Resume(_) => ("rollout resume", CHANGES),
            Action::Approve(_) => ("rollout approve", CHANGES),
            Action::Abort(_) => ("rollout abort", CHANGES),
            Action::Retry(_) => ("rollout retry", CHANGES),
            Action::Undo(_) => ("rollout undo", CHANGES),
        }
    }
}

/// Runs one of them.
pub(crate) fn run(call: &Call, arguments: RolloutArguments) -> Result<Exit, CliError> {
    let (Of { server }, change) = match arguments.action {
        Action::Status(of) => {
            return with_name(of, |name| block_on(Box::pin(status::run(call, name))));
        }
        Action::History(of) => {
            return with_name(of, |name| block_on(Box::pin(history::run(call, name))));
        }
        Action::Undo(of) => return with_name(of, |name| block_on(Box::pin(undo::run(call, name)))),
        Action::Pause(of) => (of, Change::Pause),
        Action::Resume(of) => (of, Change::Resume),
        Action::Approve(of) => (of, Change::Approve),
        Action::Abort(of) => (of, Change::Abort),
        Action::Retry(of) => (of, Change::Retry),
    };
    let name = server_name(&server)?;
    block_on(Box::pin(change::run(call, name, change)))
}

fn with_name(of: Of, run: impl FnOnce(&str) -> Result<Exit, CliError>) -> Result<Exit, CliError> {
    let Of { server } = of;
    run(server_name(&server)?)
}

/// `main`, or `ls/main` as other verbs name it.
fn server_name(word: &str) -> Result<&str, CliError> {
    let name = match word.split_once('/') {
        Some((kind, name)) if matches!(kinds::resolve(kind)?[..], [kind] if kind == kinds::laya_server()) => {
            name
        }
        Some(_) => return Err(CliError::usage(format!("`{word}` is no LayaServer"))),
        None => word,
    };
    kinds::check_name(name)?;
    Ok(name)
}
