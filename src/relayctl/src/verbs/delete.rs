//! `relayctl delete`: asks, deletes exactly the objects that were there when it asked, and waits until they are gone.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::wait;
use crate::call::{Call, DryRun, block_on};
use crate::error::CliError;
use crate::input;
use crate::kinds::{self, Kind, Targets};
use crate::output::Format;
use crate::refusal::ServerError;
use crate::server::{Form, Selection, Server, Write};
use crate::terminal;
use api::exit::Exit;

/// How long a deletion may take by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Objects that a question names one by one.
const MAX_NAMED: usize = 5;

/// Arguments of `relayctl delete`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  relayctl delete rp/old\n  relayctl delete -f policy.yaml --yes\n  relayctl delete rp -l team=core"
)]
pub(crate) struct DeleteArguments {
    /// KIND NAME… or KIND/NAME…; KIND alone with -l or --all
    #[arg(
        value_name = "KIND",
        required_unless_present = "files",
        conflicts_with = "files"
    )]
    targets: Vec<String>,
    /// The objects of a file, a folder, or `-`; repeatable
    #[arg(short, long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "files")]
    selector: Option<String>,
    /// Every object of the kind in the namespace
    #[arg(long, conflicts_with_all = ["selector", "files"])]
    all: bool,
    /// No error for what is not there
    #[arg(long)]
    ignore_not_found: bool,
}

struct Doomed {
    kind: &'static Kind,
    namespace: String,
    name: String,
    uid: String,
}

/// Deletes objects.
pub(crate) fn run(call: &Call, arguments: &DeleteArguments) -> Result<Exit, CliError> {
    if !matches!(call.format(), Format::Table | Format::Name) {
        return Err(CliError::usage(format!(
            "`delete` knows no `-o {}`",
            call.format().word()
        )));
    }
    let inputs = match arguments.files.is_empty() {
        true => None,
        false => Some(input::objects(&arguments.files)?),
    };
    let targets = match inputs {
        Some(_) => None,
        None => Some(kinds::targets(&arguments.targets)?),
    };
    let chosen = arguments.all || arguments.selector.is_some();
    match &targets {
        Some(Targets::All(_)) if !chosen => {
            return Err(CliError::usage("no names were given")
                .hint("name the objects, choose them with `-l`, or say `--all`"));
        }
        Some(Targets::Named(_)) if chosen => {
            return Err(CliError::usage(
                "objects are chosen by name, by labels or with `--all`, one of them",
            ));
        }
        _ => {}
    }
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        let mut wanted = Vec::new();
        for input in inputs.into_iter().flatten() {
            let asked = call.global.namespace.as_deref();
            let namespace = input.namespace(asked, &server.namespace)?;
            wanted.push((input.kind, namespace, input.name));
        }
        match targets {
            Some(Targets::Named(named)) => wanted.extend(
                named
                    .into_iter()
                    .map(|(kind, name)| (kind, server.namespace.clone(), name)),
            ),
            Some(Targets::All(kinds)) => wanted.extend(listed(&server, arguments, &kinds).await?),
            None => {}
        }
        let (doomed, missing) = look(&server, wanted, arguments).await?;
        remove(call, &server, &doomed).await?;
        match missing {
            Some(error) => Err(error),
            None => Ok(Exit::Done),
        }
    }))
}

async fn listed(
    server: &Server,
    arguments: &DeleteArguments,
    kinds: &[&'static Kind],
) -> Result<Vec<(&'static Kind, String, String)>, CliError> {
    let selection = Selection {
        labels: arguments.selector.clone(),
        ..Selection::within(&server.namespace)
    };
    let mut found = Vec::new();
    for kind in kinds {
        let list = server.list(kind, &selection, Form::Objects).await;
        let list = list.map_err(|error| server.failed(error))?;
        let names = list["items"].as_array().into_iter().flatten();
        found.extend(names.map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            (*kind, server.namespace.clone(), name.to_owned())
        }));
    }
    Ok(found)
}

/// What is there of what was named, and the error for the first that is not.
async fn look(
    server: &Server,
    wanted: Vec<(&'static Kind, String, String)>,
    arguments: &DeleteArguments,
) -> Result<(Vec<Doomed>, Option<CliError>), CliError> {
    let mut doomed = Vec::new();
    let mut missing: Option<CliError> = None;
    for (kind, namespace, name) in wanted {
        match server.get(kind, &namespace, &name, Form::Objects).await {
            Ok(object) => doomed.push(Doomed {
                kind,
                namespace,
                name,
                uid: object["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            }),
            Err(error) if error.is_not_found() => {
                if !arguments.ignore_not_found {
                    missing.get_or_insert(server.failed(error));
                }
            }
            Err(error) => return Err(server.failed(error)),
        }
    }
    Ok((doomed, missing))
}

async fn remove(call: &Call, server: &Server, doomed: &[Doomed]) -> Result<(), CliError> {
    if doomed.is_empty() {
        return Ok(());
    }
    if call.write() == Write::Commit {
        terminal::confirm(call.global.yes, &question(server, doomed))?;
    }
    for doomed in doomed {
        let full = doomed.kind.full(&doomed.name);
        let gone = match call.dry_run() {
            DryRun::Client => "deleted (client dry run)",
            DryRun::Server => "deleted (server dry run)",
            DryRun::None => "deleted",
        };
        if call.dry_run() != DryRun::Client {
            let uid = Some(doomed.uid.as_str()).filter(|uid| !uid.is_empty());
            let answer = server
                .delete(
                    doomed.kind,
                    &doomed.namespace,
                    &doomed.name,
                    uid,
                    call.write(),
                )
                .await;
            match answer {
                Ok(_) => {}
                // Somebody else was faster.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(failed(server, error, &full)),
            }
        }
        if call.format() == Format::Name {
            terminal::print(&format!("{full}\n"))?;
        } else {
            terminal::print(&format!("{full} {gone}\n"))?;
        }
    }
    if call.write() == Write::Commit && call.waits(true) {
        for doomed in doomed {
            wait::until_gone(
                server,
                doomed.kind,
                &doomed.namespace,
                &doomed.name,
                &Value::from(doomed.uid.as_str()),
                call.patience(PATIENCE),
            )
            .await?;
        }
    }
    Ok(())
}

fn failed(server: &Server, error: ServerError, full: &str) -> CliError {
    server
        .failed(error)
        .attempting(format!("cannot delete {full}"))
}

fn question(server: &Server, doomed: &[Doomed]) -> String {
    let names: Vec<_> = doomed
        .iter()
        .take(MAX_NAMED)
        .map(|doomed| doomed.kind.brief(&doomed.name))
        .collect();
    let more = match doomed.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "delete {}{more} of context {}",
        names.join(", "),
        server.context.name
    )
}
