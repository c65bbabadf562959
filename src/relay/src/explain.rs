//! `relay explain` (routing.md 17, 21): a stored decision with its grounds, the moves within its task and what came of it.

mod text;

use api::exchange::DecisionWithOutcomes;
use clap::Args;
use uuid::Uuid;

use crate::client::Question;
use crate::contact::Contact;
use crate::error::{CliError, Exit};
use crate::output::OutputArguments;

/// Arguments of `relay explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExplainArguments {
    /// Id of the decision, as `relay route` prints it
    #[arg(value_name = "DECISION ID")]
    id: Uuid,

    #[command(flatten)]
    output: OutputArguments,
}

const AFTER_HELP: &str = "\
Examples:
  relay explain 0193d2b1-7c4e-7a10-8f00-000000000001
  relay explain -o json 0193d2b1-7c4e-7a10-8f00-000000000001

Exit codes: 0 shown, 1 other error (also: the router knows no such decision), 2 bad arguments,
4 no router answers";

/// What may help where the router does not know it.
const UNKNOWN: &str = "a router keeps what it decides; a `--dry-run` and what `relay route` decides in its own process are kept nowhere";

/// Runs the command.
pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, CliError> {
    let contact = Contact::open()?;
    let path = format!("/v1/decisions/{}", arguments.id);
    let known: DecisionWithOutcomes =
        contact
            .client
            .find(Question::get(&path), "decision", UNKNOWN)?;
    arguments
        .output
        .print(&known, |styles| text::render(&known, styles))?;
    contact.finish();
    Ok(Exit::Done)
}
