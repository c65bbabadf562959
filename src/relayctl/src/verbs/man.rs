//! `relayctl man`: manual pages in roff, from the definition the parser uses.

use clap::Args;
use clap_mangen::Man;

use crate::call::Call;
use crate::error::CliError;
use crate::program::Program;
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl man`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  relayctl man | man -l -\n  relayctl man policy test > relayctl-policy-test.1"
)]
pub(crate) struct ManArguments {
    /// Page of a command instead of the whole program
    verb: Vec<String>,
}

/// Writes a manual page.
pub(crate) fn run(_call: &Call, arguments: &ManArguments) -> Result<Exit, CliError> {
    let mut command = crate::command(Program::Relayctl);
    command.build();
    let mut found = &command;
    let mut name = "relayctl".to_owned();
    for word in &arguments.verb {
        found = found.find_subcommand(word).ok_or_else(|| {
            CliError::usage(format!("`{name}` has no command `{word}`"))
                .hint("`relayctl --help` lists the commands")
        })?;
        name = format!("{name}-{word}");
    }
    let mut text = Vec::new();
    Man::new(found.clone()).render(&mut text).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write the manual page: {error}"),
        )
    })?;
    terminal::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
