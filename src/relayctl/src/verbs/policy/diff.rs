//! `relayctl policy diff`: a file against the revision in force, both with every default, so that only what differs in
//! meaning is shown.

use std::path::PathBuf;

use clap::Args;

use super::source;
use crate::call::{Call, block_on};
use crate::error::CliError;
use crate::kinds;
use crate::terminal;
use crate::verbs::diff::unified;
use api::exit::Exit;

/// Arguments of `relayctl policy diff`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 15 when the policies differ.")]
pub(super) struct DiffArguments {
    /// File with one RoutingPolicy, or `-`
    file: PathBuf,
    /// The RoutingPolicy it is compared with [default: the one of the same name]
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
}

/// Compares.
pub(super) fn run(call: &Call, arguments: &DiffArguments) -> Result<Exit, CliError> {
    let file = source::of_file(&arguments.file)?;
    let name = arguments.against.as_ref().unwrap_or(&file.name);
    let (_, name) = kinds::object(&format!("rp/{name}"))?;
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let (live, _) = source::in_force(&server, &name).await.map_err(|error| {
            // A new policy has nothing of its own name to be compared with.
            if error.exit == Exit::NotFound && error.hint_text().is_none() {
                error.hint(format!(
                    "`--against NAME` compares with another one, `relayctl diff -f {}` shows what applying it makes",
                    arguments.file.display()
                ))
            } else {
                error
            }
        })?;
        let title = format!("routingpolicy/{name}");
        let text = unified(
            &title,
            Some(&live.spec.tree()),
            &file.spec.tree(),
            call.styles(),
        )?;
        terminal::print(&text)?;
        Ok(if text.is_empty() {
            Exit::Done
        } else {
            Exit::Differences
        })
    }))
}
