//! The words of `relayctl`, one module each.

mod adopt;
mod apply;
mod completion;
mod context;
mod delete;
mod describe;
mod diff;
mod doctor;
mod down;
mod events;
mod explain;
mod get;
mod logs;
mod man;
pub(crate) mod model;
mod policy;
pub(crate) mod rollout;
mod status;
mod up;
mod validate;
mod version;
mod wait;

use clap::Subcommand;

pub(crate) use self::wait::too_long;

use crate::call::{Call, Flag, Forms, Obeys, block_on};
use crate::error::CliError;
use api::exit::Exit;

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Starts Relay on this machine, or finds it running
    Up(up::UpArguments),
    /// Stops Relay on this machine, with its servers; everything that is stored stays
    Down(down::DownArguments),
    /// Shows on one screen what runs, what is missing and what is wrong
    Status,
    /// Checks what Relay needs, each with what to do when it is not there
    Doctor,
    /// Shows objects
    Get(get::GetArguments),
    /// Shows one object with its children and events
    Describe(describe::DescribeArguments),
    /// Tells why an object is in its state, and what to do
    Explain(explain::ExplainArguments),
    /// Makes objects of files true
    Apply(apply::ApplyArguments),
    /// Shows what `apply` would change
    Diff(diff::DiffArguments),
    /// Deletes objects
    Delete(delete::DeleteArguments),
    /// Checks files without a server
    Validate(validate::ValidateArguments),
    /// Waits until something is true of an object
    Wait(wait::WaitArguments),
    /// Versions of the decision model
    Model(model::ModelArguments),
    /// Shows the versions there are (`model ls`)
    Models(model::ListArguments),
    /// Lets a version serve (`model use`)
    Use(model::UseArguments),
    /// Uses the Laya server that has the router's port already, or takes the port over
    Adopt(adopt::AdoptArguments),
    /// How a new version takes over
    Rollout(rollout::RolloutArguments),
    /// Shows what happened
    Events(events::EventsArguments),
    /// Shows what an object's processes write
    Logs(logs::LogsArguments),
    /// Which control plane is talked to
    Context(context::ContextArguments),
    /// Shows and tries out routing policies
    Policy(policy::PolicyArguments),
    /// Writes the completions of a shell
    Completion(completion::CompletionArguments),
    /// Writes the manual page
    Man(man::ManArguments),
    /// Shows the versions of this program and of what it talks to
    Version(version::VersionArguments),
}

/// What most commands that change nothing obey.
const SHOWS: Obeys = Obeys {
    forms: Forms::Objects,
    wait: Flag::Refused,
    dry_run: Flag::Refused,
};
const DOCUMENT: Obeys = Obeys {
    forms: Forms::Document,
    ..SHOWS
};
const TEXT: Obeys = Obeys {
    forms: Forms::Text,
    ..SHOWS
};
/// What commands that change objects obey.
const CHANGES: Obeys = Obeys {
    forms: Forms::Objects,
    wait: Flag::Obeyed,
    dry_run: Flag::Obeyed,
};

impl Verb {
    fn obeys(&self) -> (&'static str, Obeys) {
        match self {
            Self::Up(_) => (
                "up",
                Obeys {
                    wait: Flag::Obeyed,
                    ..TEXT
                },
            ),
            Self::Down(_) => (
                "down",
                Obeys {
                    wait: Flag::Obeyed,
                    ..TEXT
                },
            ),
            Self::Status => ("status", DOCUMENT),
            Self::Doctor => ("doctor", DOCUMENT),
            Self::Get(_) => ("get", SHOWS),
            Self::Describe(_) => ("describe", TEXT),
            Self::Explain(_) => ("explain", DOCUMENT),
            Self::Apply(_) => ("apply", CHANGES),
            Self::Diff(_) => ("diff", TEXT),
            Self::Delete(_) => (
                "delete",
                Obeys {
                    wait: Flag::Obeyed,
                    dry_run: Flag::Obeyed,
                    ..SHOWS
                },
            ),
            Self::Validate(_) => ("validate", DOCUMENT),
            Self::Wait(_) => ("wait", SHOWS),
            Self::Model(arguments) => arguments.obeys(),
            Self::Models(_) => ("models", SHOWS),
            Self::Use(_) => ("use", CHANGES),
            Self::Adopt(_) => ("adopt", CHANGES),
            Self::Rollout(arguments) => arguments.obeys(),
            Self::Events(_) => ("events", SHOWS),
            Self::Logs(_) => ("logs", TEXT),
            Self::Context(_) => ("context", DOCUMENT),
            Self::Policy(arguments) => arguments.obeys(),
            Self::Completion(_) => ("completion", TEXT),
            Self::Man(_) => ("man", TEXT),
            Self::Version(_) => ("version", DOCUMENT),
        }
    }
}

/// Runs a command.
///
/// # Errors
/// Its own.
pub(crate) fn run(call: &Call, verb: Verb) -> Result<Exit, CliError> {
    let (word, obeys) = verb.obeys();
    call.check(word, obeys)?;
    match verb {
        Verb::Up(arguments) => up::run(call, &arguments),
        Verb::Down(arguments) => down::run(call, &arguments),
        Verb::Status => block_on(Box::pin(status::run(call))),
        Verb::Doctor => block_on(Box::pin(doctor::run(call))),
        Verb::Get(arguments) => get::run(call, &arguments),
        Verb::Describe(arguments) => describe::run(call, &arguments),
        Verb::Explain(arguments) => explain::run(call, &arguments),
        Verb::Apply(arguments) => apply::run(call, &arguments),
        Verb::Diff(arguments) => diff::run(call, &arguments),
        Verb::Delete(arguments) => delete::run(call, &arguments),
        Verb::Validate(arguments) => validate::run(call, &arguments),
        Verb::Wait(arguments) => wait::run(call, &arguments),
        Verb::Model(arguments) => model::run(call, arguments),
        Verb::Models(arguments) => model::list(call, &arguments),
        Verb::Use(arguments) => model::use_model(call, &arguments),
        Verb::Adopt(arguments) => adopt::run(call, &arguments),
        Verb::Rollout(arguments) => rollout::run(call, arguments),
        Verb::Events(arguments) => events::run(call, &arguments),
        Verb::Logs(arguments) => logs::run(call, &arguments),
        Verb::Context(arguments) => context::run(call, arguments),
        Verb::Policy(arguments) => policy::run(call, arguments),
        Verb::Completion(arguments) => completion::run(call, &arguments),
        Verb::Man(arguments) => man::run(call, &arguments),
        Verb::Version(arguments) => block_on(Box::pin(version::run(call, &arguments))),
    }
}
