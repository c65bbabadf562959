//! `relayctl model`: versions of the decision model, from a folder or a source to what serves.

mod fetch;
mod import;
mod ls;
mod manifest;
mod prune;
mod rm;
mod serve;
mod verify;

use clap::{Args, Subcommand};

pub(crate) use self::fetch::{line as fetch_line, refused as model_refused, unsuspend};
pub(crate) use self::ls::ListArguments;
use self::serve::not_there as missing;
pub(crate) use self::serve::{MAIN, UseArguments, change, find_server, not_there, say};
use super::{CHANGES, SHOWS, TEXT};
use crate::call::{Call, Flag, Forms, Obeys, block_on};
use crate::error::CliError;
use crate::kinds;
use crate::server::Server;
use api::exit::Exit;
use serde_json::Value;

/// Volume of this machine's versions, whatever its engine calls it.
const MODELS: &str = "models";

/// Arguments of `relayctl model`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  relayctl model ls
  relayctl model import tiny --dir ./tiny && relayctl use tiny
  relayctl model import v1 --decisions decisions.json
  relayctl model verify v1")]
pub(crate) struct ModelArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows the versions there are (short: `relayctl models`)
    Ls(ListArguments),
    /// Fetches a version, also one that was suspended or given up, and waits until it is here
    Fetch(Named),
    /// Hashes every file of a version again and waits for the result
    Verify(Named),
    /// Deletes a version that no LayaServer has; asks
    Rm(rm::RmArguments),
    /// Deletes files that no object names from this machine's models volume; shows them and asks
    Prune(prune::PruneArguments),
    /// Lets a version serve (short: `relayctl use`)
    Use(UseArguments),
    /// Makes a version of a folder of this machine or of a volume, or sets the contract of one
    Import(import::ImportArguments),
    /// Writes the manifest file of a folder: what a LayaModel needs to fetch it
    Manifest(manifest::ManifestArguments),
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Which LayaModel
    #[arg(value_name = "NAME")]
    name: String,
}

impl ModelArguments {
    pub(crate) fn obeys(&self) -> (&'static str, Obeys) {
        match self.action {
            Action::Ls(_) => ("model ls", SHOWS),
            Action::Fetch(_) => ("model fetch", CHANGES),
            Action::Verify(_) => ("model verify", CHANGES),
            Action::Rm(_) => (
                "model rm",
                Obeys {
                    forms: Forms::Objects,
                    wait: Flag::Obeyed,
                    dry_run: Flag::Obeyed,
                },
            ),
            Action::Prune(_) => (
                "model prune",
                Obeys {
                    forms: Forms::Document,
                    wait: Flag::Refused,
                    dry_run: Flag::Obeyed,
                },
            ),
            Action::Use(_) => ("model use", CHANGES),
            Action::Import(_) => ("model import", CHANGES),
            Action::Manifest(_) => ("model manifest", TEXT),
        }
    }
}

/// Runs one of them.
pub(crate) fn run(call: &Call, arguments: ModelArguments) -> Result<Exit, CliError> {
    match arguments.action {
        Action::Ls(arguments) => list(call, &arguments),
        Action::Fetch(Named { name }) => {
            kinds::check_name(&name)?;
            block_on(Box::pin(fetch::run(call, &name)))
        }
        Action::Verify(Named { name }) => {
            kinds::check_name(&name)?;
            block_on(Box::pin(verify::run(call, &name)))
        }
        Action::Rm(arguments) => rm::run(call, &arguments),
        Action::Prune(arguments) => prune::run(call, &arguments),
        Action::Use(arguments) => use_model(call, &arguments),
        Action::Import(arguments) => import::run(call, &arguments),
        Action::Manifest(arguments) => manifest::run(call, &arguments),
    }
}

/// `relayctl models`, `relayctl model ls`.
pub(crate) fn list(call: &Call, arguments: &ListArguments) -> Result<Exit, CliError> {
    block_on(Box::pin(ls::run(call, arguments)))
}

/// `relayctl use`, `relayctl model use`.
pub(crate) fn use_model(call: &Call, arguments: &UseArguments) -> Result<Exit, CliError> {
    serve::run(call, arguments)
}

/// A LayaModel by its very name.
pub(crate) async fn find(server: &Server, name: &str) -> Result<Value, CliError> {
    let kind = kinds::laya_model();
    let found = server.find(kind, &server.namespace, name).await;
    found.map_err(|error| server.failed(error))?.ok_or_else(|| {
        missing(kind, name, server).hint("`relayctl model ls` lists those that are there")
    })
}
