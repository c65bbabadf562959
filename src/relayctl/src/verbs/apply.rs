//! `relayctl apply`: server-side apply of every object of the files, strict about fields, as manager `relayctl`. All are
//! read before the first is sent, and of several all are tried before the first is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{validate, wait};
use crate::call::{Call, DryRun, block_on};
use crate::error::CliError;
use crate::input::{self, Input};
use crate::output;
use crate::refusal::{Cause, ServerError, one_line};
use crate::router;
use crate::server::{Force, Server, Write};
use crate::terminal;
use api::exit::Exit;

/// How long `--wait` waits for an object.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `relayctl apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  relayctl apply -f policy.yaml\n  relayctl apply -f examples/ --dry-run=server\n  cat *.yaml | relayctl apply -f - --wait"
)]
pub(crate) struct ApplyArguments {
    /// A file of YAML or JSON, a folder, or `-`; repeatable
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take over fields that others own
    #[arg(long)]
    force_conflicts: bool,
}

/// An object and where it goes.
pub(crate) struct Placed {
    pub(crate) input: Input,
    pub(crate) namespace: String,
}

/// What came of an object.
struct Applied {
    verb: &'static str,
    object: Value,
}

/// Applies files.
pub(crate) fn run(call: &Call, arguments: &ApplyArguments) -> Result<Exit, CliError> {
    let inputs = input::objects(&arguments.files)?;
    if call.dry_run() == DryRun::Client {
        return client(call, inputs);
    }
    let force = if arguments.force_conflicts {
        Force::Yes
    } else {
        Force::No
    };
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        let placed = place(call, &server, inputs)?;
        // One bad object of several must not leave the others applied. What an object needs first cannot be tried.
        let ours = placed.iter().all(|placed| placed.input.kind.is_ours());
        if placed.len() > 1 && ours && call.write() == Write::Commit {
            try_all(call, &server, &placed, force).await?;
        }
        let mut objects = Vec::new();
        for placed in &placed {
            let applied = apply(&server, placed, call.write(), force).await?;
            if call.format().is_table() {
                say(call, placed, applied.verb)?;
            }
            objects.push(applied.object);
        }
        if call.waits(false) && call.write() == Write::Commit {
            for placed in &placed {
                let Placed { input, namespace } = placed;
                let shown = objects.iter().find(|object| {
                    object["metadata"]["name"] == input.name.as_str()
                        && object["kind"] == input.kind.kind
                });
                if shown.is_some_and(|object| input.kind.is_only_stored(object)) {
                    call.tell(&format!(
                        "{} is not waited for: nothing acts on this kind yet",
                        input.kind.brief(&input.name)
                    ));
                } else if input.kind.is_ours() {
                    let waited = wait::until_settled(
                        &server,
                        input.kind,
                        namespace,
                        &input.name,
                        call.patience(PATIENCE),
                    )
                    .await?;
                    if server.context.is_local()
                        && let Some(revision) = waited["status"]["acceptedRevision"].as_str()
                    {
                        router::until_in_force(&call.places()?, &input.name, revision).await;
                    }
                    if let Some(object) = objects
                        .iter_mut()
                        .find(|object| object["metadata"]["uid"] == waited["metadata"]["uid"])
                    {
                        *object = waited;
                    }
                }
            }
        }
        show(call, objects)?;
        Ok(Exit::Done)
    }))
}

/// Namespaces of objects; those of files win over the context's, and must not contradict `-n`.
pub(crate) fn place(
    call: &Call,
    server: &Server,
    inputs: Vec<Input>,
) -> Result<Vec<Placed>, CliError> {
    inputs
        .into_iter()
        .map(|input| {
            let asked = call.global.namespace.as_deref();
            let namespace = input.namespace(asked, &server.namespace)?;
            Ok(Placed {
                input: without_servers(call, input),
                namespace,
            })
        })
        .collect()
}

/// What a server writes into an object; an apply of a file that `get -o yaml` wrote leaves it out, so that the file can be
/// edited and applied again and again.
const SERVERS_METADATA: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

fn without_servers(call: &Call, mut input: Input) -> Input {
    let mut dropped = Vec::new();
    if let Some(metadata) = input.object["metadata"].as_object_mut() {
        for name in SERVERS_METADATA {
            if metadata.remove(name).is_some() {
                dropped.push(format!("metadata.{name}"));
            }
        }
    }
    let fields = input.object.as_object_mut();
    if input.kind.is_ours() && fields.is_some_and(|fields| fields.remove("status").is_some()) {
        dropped.push("status".to_owned());
    }
    if call.global.verbose && !dropped.is_empty() {
        call.tell(&format!(
            "{}: left out what servers write: {}",
            input.title(),
            dropped.join(", ")
        ));
    }
    input
}

/// Without any server: the files are checked as far as that goes, and shown.
fn client(call: &Call, inputs: Vec<Input>) -> Result<Exit, CliError> {
    let mut objects = Vec::new();
    for input in inputs {
        let input = without_servers(call, input);
        validate::refuse_invalid(&input)?;
        if call.format().is_table() {
            terminal::print(&format!(
                "{} valid (client dry run)\n",
                input.kind.full(&input.name)
            ))?;
        }
        objects.push(input.object);
    }
    show(call, objects)?;
    Ok(Exit::Done)
}

/// Every object that would be refused is told, the last as the error.
async fn try_all(
    call: &Call,
    server: &Server,
    placed: &[Placed],
    force: Force,
) -> Result<(), CliError> {
    let mut errors = Vec::new();
    for placed in placed {
        let Placed { input, namespace } = placed;
        let tried = server
            .apply(
                input.kind,
                namespace,
                &input.name,
                &input.object,
                Write::DryRun,
                force,
            )
            .await;
        if let Err(error) = tried {
            let fatal = !error.is_about_input() && !error.is_conflict();
            let error = refused(server, input, error);
            if fatal {
                return Err(error);
            }
            errors.push(error);
        }
    }
    let Some(last) = errors.pop() else {
        return Ok(());
    };
    for error in &errors {
        terminal::tell(&error.render(call.program, call.detail()));
    }
    call.tell("nothing was applied");
    Err(last)
}

async fn apply(
    server: &Server,
    placed: &Placed,
    write: Write,
    force: Force,
) -> Result<Applied, CliError> {
    let Placed { input, namespace } = placed;
    let before = server.find(input.kind, namespace, &input.name).await;
    let before = before.map_err(|error| server.failed(error).attempting(input.title()))?;
    let written = server
        .apply(
            input.kind,
            namespace,
            &input.name,
            &input.object,
            write,
            force,
        )
        .await
        .map_err(|error| refused(server, input, error))?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let verb = match &before {
        _ if written.created => "created",
        // Somebody else made it since it was looked for.
        None => "configured",
        Some(before) if same(before, &written.object, write, version) => "unchanged",
        Some(_) => "configured",
    };
    Ok(Applied {
        verb,
        object: output::without_managers(written.object),
    })
}

/// A dry run does not count versions.
fn same(before: &Value, after: &Value, write: Write, version: impl Fn(&Value) -> Value) -> bool {
    match write {
        Write::Commit => version(before) == version(after),
        Write::DryRun => comparable(before) == comparable(after),
    }
}

/// An object without what each write may change by itself.
pub(crate) fn comparable(object: &Value) -> Value {
    let mut object = output::without_managers(object.clone());
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
            metadata.remove(name);
        }
    }
    object
}

/// What a server refused, at the lines of the file.
pub(crate) fn refused(server: &Server, input: &Input, error: ServerError) -> CliError {
    let causes = error.causes();
    let about_input = error.is_about_input();
    let failed = server.failed(error);
    if !about_input || causes.is_empty() {
        return failed.attempting(input.title());
    }
    failed.saying(one_line(&at_lines(input, &causes)))
}

/// `policy.yaml:12: routingpolicy/default: spec.profile: why; policy.yaml:14: spec.tiers: why`.
fn at_lines(input: &Input, causes: &[Cause]) -> String {
    let parts: Vec<_> = causes
        .iter()
        .enumerate()
        .map(|(at, cause)| {
            let field = cause.field.as_str();
            if at == 0 {
                format!("{}: {}", input.at(field), cause.message)
            } else {
                let place = input.place.of_field(field);
                format!("{place}: {field}: {}", cause.message)
            }
        })
        .collect();
    parts.join("; ")
}

fn say(call: &Call, placed: &Placed, verb: &str) -> Result<(), CliError> {
    let how = match call.write() {
        Write::Commit => "",
        Write::DryRun => " (server dry run)",
    };
    let full = placed.input.kind.full(&placed.input.name);
    terminal::print(&format!("{full} {verb}{how}\n")).map(|_| ())
}

fn show(call: &Call, mut objects: Vec<Value>) -> Result<(), CliError> {
    if call.format().is_table() {
        return Ok(());
    }
    let tree = match objects.len() {
        1 => objects.remove(0),
        _ => output::list(objects),
    };
    output::tree(&tree, &call.format()).map(|_| ())
}
