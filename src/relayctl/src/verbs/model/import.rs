//! `relayctl model import`: a folder of this machine is published into the models volume; a version that lies in a volume is
//! registered; or the contract of one whose folder names none is set, with its wording stored (training 12).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use decision::contract::{Contract, Digest, MAX_FILE_BYTES};
use serde_json::{Value, json};

use super::{MODELS, find, say};
use crate::call::{Call, DryRun, block_on};
use crate::conditions::{self, Settled};
use crate::daemon::calls;
use crate::error::CliError;
use crate::facts::{self, Model, short};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::manifest::SHIPPED_WORD;
use crate::server::{Force, Server, Write};
use api::exit::Exit;
use api::field_manager::{RELAYCTL, RELAYCTL_USE};
use api::label;

/// Hashing 10 GB from a slow disk.
const PATIENCE: Duration = Duration::from_secs(900);
/// Where in a stored wording its text is; the data of a document must be an object.
const TEXT: &str = "decisions.json";
/// Folder of a version on a volume of ours, before its 64 hex digits.
const FOLDER: &str = "sha256-";

/// Arguments of `relayctl model import`.
#[derive(Debug, Args)]
#[command(after_help = "\
--dir publishes a folder of this machine into the models volume; the folder itself is only read. --volume registers a version
where it lies: it is used in place, read-only, and never deleted. --decisions alone sets the contract of a version that is
there: once, for good.

Examples:
  laya random-checkpoint --contract relay ./tiny && relayctl model import tiny --dir ./tiny   # a first try, offline
  relayctl model import local-3 --volume relay-laya-models --path local-3 --digest sha256:…
  relayctl model import v1 --decisions decisions.json")]
pub(crate) struct ImportArguments {
    /// Name of the LayaModel
    #[arg(value_name = "NAME")]
    name: String,
    /// The decisions.json that the version was trained with
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,
    /// Folder of a checkpoint on this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["volume", "path", "digest"])]
    dir: Option<PathBuf>,
    /// Docker volume, or claim of the cluster, that a checkpoint lies in
    #[arg(long, value_name = "NAME", requires = "path")]
    volume: Option<String>,
    /// Its folder in the volume
    #[arg(long, value_name = "PATH", requires = "volume")]
    path: Option<String>,
    /// Its checkpoint digest; a folder named sha256-… says it itself
    #[arg(long, value_name = "DIGEST", requires = "volume")]
    digest: Option<String>,
}

/// A wording that was read. Its text goes on as it is: the order of its keys is part of the contract, and trees lose it.
struct Wording {
    contract: Contract,
    text: String,
}

/// Imports it.
pub(super) fn run(call: &Call, arguments: &ImportArguments) -> Result<Exit, CliError> {
    let ImportArguments {
        name,
        decisions,
        dir,
        volume,
        path,
        digest,
    } = arguments;
    check_name(name)?;
    let wording = decisions.as_deref().map(read_wording).transpose()?;
    match (dir, volume, path) {
        (Some(dir), ..) => {
            let folder = folder(dir)?;
            block_on(Box::pin(publish(call, name, &folder, wording.as_ref())))
        }
        (None, Some(volume), Some(path)) => {
            let digest = place_digest(path, digest.as_deref())?;
            let source = json!({"name": volume, "path": path});
            block_on(Box::pin(register(call, name, source, &digest, wording.as_ref())))
        }
        _ => match wording {
            Some(wording) => block_on(Box::pin(set_contract(call, name, &wording))),
            None => Err(CliError::usage("nothing was named that could be imported")
                .hint("`--dir DIR`, `--volume NAME --path PATH`, or `--decisions FILE` of a version that is there")),
        },
    }
}

fn check_name(name: &str) -> Result<(), CliError> {
    if name == SHIPPED_WORD {
        return Err(CliError::usage(format!(
            "`{name}` always means the version that Relay ships"
        ))
        .hint("choose another name"));
    }
    match kinds::own_name_fault(name) {
        None => Ok(()),
        Some(why) => Err(CliError::usage(format!(
            "`{name}` is no name of a LayaModel: {why}"
        ))),
    }
}

fn read_wording(path: &Path) -> Result<Wording, CliError> {
    let shown = path.display();
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let file = files::read_text(path, limit).map_err(|error| {
        let exit = if error.is_not_found() {
            Exit::NotFound
        } else {
            Exit::Refused
        };
        CliError::new(exit, format!("cannot read {shown}: {error}"))
    })?;
    let contract = Contract::import(file.text.as_bytes()).map_err(|error| {
        CliError::refused(format!("{shown} is no decisions.json: {error}"))
            .hint("`/laya decisions` of the agent writes one")
    })?;
    Ok(Wording {
        contract,
        text: file.text,
    })
}

/// The whole path of a folder that there is.
fn folder(dir: &Path) -> Result<String, CliError> {
    let shown = dir.display();
    let whole = dir.canonicalize().map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            std::io::ErrorKind::PermissionDenied => Exit::Forbidden,
            _ => Exit::Refused,
        };
        CliError::new(exit, format!("cannot use folder {shown}: {error}"))
    })?;
    if !whole.is_dir() {
        return Err(CliError::refused(format!("{shown} is no folder"))
            .hint("a checkpoint is a folder with model.safetensors and encoder/config.json"));
    }
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| CliError::refused(format!("the path of {shown} is no UTF-8")))
}

/// The digest that was named, or that the folder's own name says.
fn place_digest(path: &str, named: Option<&str>) -> Result<String, CliError> {
    let of_folder = path
        .rsplit('/')
        .next()
        .and_then(|last| last.strip_prefix(FOLDER))
        .map(|hex| format!("sha256:{hex}"))
        .filter(|digest| digest.parse::<Digest>().is_ok());
    let Some(digest) = named.map(str::to_owned).or(of_folder) else {
        return Err(CliError::usage("a version in a volume needs its checkpoint digest")
            .hint("`--digest sha256:…`; `relayctl model manifest --dir DIR --version V` tells that of a folder"));
    };
    match digest.parse::<Digest>() {
        Ok(_) => Ok(digest),
        Err(error) => Err(CliError::usage(error.to_string())),
    }
}

/// Publishes a folder of this machine.
async fn publish(
    call: &Call,
    name: &str,
    folder: &str,
    wording: Option<&Wording>,
) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    if !server.context.is_local() {
        let line = format!(
            "`--dir` publishes a folder of this machine, and the context is `{}`",
            server.context.name
        );
        return Err(CliError::usage(line).hint(
            "put the folder into a claim and use `--volume NAME --path PATH --digest DIGEST`",
        ));
    }
    let kind = kinds::laya_model();
    let full = kind.full(name);
    match call.dry_run() {
        DryRun::None => {}
        DryRun::Client => {
            return say(
                call,
                &json!({}),
                &format!("{full} imported (client dry run)"),
            );
        }
        DryRun::Server => {
            return Err(
                CliError::usage("a folder cannot be imported as a dry run of the server")
                    .hint("`--dry-run=client` checks the arguments"),
            );
        }
    }
    call.tell(&format!("publishing {folder} into the models volume"));
    let text = wording.map(|wording| wording.text.as_str());
    let digest = calls::import(&server, name, folder, text, call.global.timeout).await?;
    finish(
        call,
        &server,
        name,
        &format!(
            "{name}: {} is here, `relayctl use {name}` lets it serve",
            short(&digest)
        ),
    )
    .await
}

async fn find_any(server: &Server, name: &str) -> Result<Option<Value>, CliError> {
    let found = server
        .find(kinds::laya_model(), &server.namespace, name)
        .await;
    found.map_err(|error| server.failed(error))
}

/// Makes the object of a version that lies in a volume.
async fn register(
    call: &Call,
    name: &str,
    source: Value,
    digest: &str,
    wording: Option<&Wording>,
) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let kind = kinds::laya_model();
    let full = kind.full(name);
    if source["name"] == MODELS && server.context.is_local() {
        call.tell(&format!("note: volume `{MODELS}` is that of this machine's versions, whatever its engine calls it"));
    }
    if find_any(&server, name).await?.is_some() {
        return Err(
            CliError::new(Exit::Conflict, format!("{full} is there already"))
                .hint("a version keeps its source; choose another name"),
        );
    }
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"source": {"volume": source}, "manifestDigest": digest},
    });
    if let Some(wording) = wording {
        object["spec"]["contract"] = json!(wording.contract.digest().to_string());
    }
    if call.dry_run() == DryRun::Client {
        return say(call, &object, &format!("{full} imported (client dry run)"));
    }
    if let Some(wording) = wording {
        store(&server, wording, call.write()).await?;
    }
    let made = server
        .apply(
            kind,
            &server.namespace,
            name,
            &object,
            call.write(),
            Force::No,
        )
        .await
        .map_err(|error| {
            server
                .failed(error)
                .attempting(format!("cannot import {full}"))
        })?;
    if call.write() == Write::DryRun {
        return say(
            call,
            &made.object,
            &format!("{full} imported (server dry run)"),
        );
    }
    finish(
        call,
        &server,
        name,
        &format!(
            "{name}: {} is registered, `relayctl use {name}` lets it serve",
            short(digest)
        ),
    )
    .await
}

/// Sets the contract of a version that is there.
async fn set_contract(call: &Call, name: &str, wording: &Wording) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let object = find(&server, name).await?;
    let kind = kinds::laya_model();
    let full = kind.full(name);
    let digest = wording.contract.digest().to_string();
    let set = facts::text(&object["spec"]["contract"]);
    let said = facts::text(&object["status"]["contract"]);
    if set == Some(digest.as_str()) {
        if call.dry_run() == DryRun::None {
            store(&server, wording, Write::Commit).await?;
        }
        return say(call, &object, &format!("{full} unchanged"));
    }
    if let Some(other) = set.or(said.filter(|said| *said != digest)) {
        let line = format!(
            "{full} has contract {}, and the file makes {}",
            short(other),
            short(&digest)
        );
        return Err(CliError::refused(line)
            .hint("a contract is set once; import the version under another name"));
    }
    if call.dry_run() == DryRun::Client {
        return say(
            call,
            &object,
            &format!("{full} configured (client dry run)"),
        );
    }
    // First the wording: whoever sees the contract finds it.
    store(&server, wording, call.write()).await?;
    let patch = json!({"spec": {"contract": digest}});
    let changed = server
        .change(kind, name, RELAYCTL_USE, &patch, call.write())
        .await?;
    if call.write() == Write::DryRun {
        return say(
            call,
            &changed,
            &format!("{full} configured (server dry run)"),
        );
    }
    say(
        call,
        &changed,
        &format!(
            "{name}: contract {} of {} questions",
            short(&digest),
            wording.contract.questions().len()
        ),
    )
}

/// Stores the wording as an immutable document where routers look for it (control-plane 2). One that is there is the same:
/// its name is its digest.
async fn store(server: &Server, wording: &Wording, write: Write) -> Result<(), CliError> {
    let digest = wording.contract.digest().to_string();
    let kind = kinds::controller_revision();
    let name = format!("contract-{}", short(&digest));
    let found = server.find(kind, &server.namespace, &name).await;
    if found.map_err(|error| server.failed(error))?.is_some() || write == Write::DryRun {
        return Ok(());
    }
    let document = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": server.namespace,
            "labels": {label::PART_OF: label::RELAY, label::MANAGED_BY: RELAYCTL},
        },
        "revision": 1,
        "data": {TEXT: wording.text},
    });
    let path = Server::collection(kind, Some(&server.namespace));
    match server.create(&path, &document).await {
        Ok(_) => Ok(()),
        // Somebody else stored the same.
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(server.failed(error).attempting("cannot store the wording")),
    }
}

/// Waits until the version can be used.
async fn finish(call: &Call, server: &Server, name: &str, line: &str) -> Result<Exit, CliError> {
    if !call.waits(true) {
        let object = find(server, name).await?;
        return say(call, &object, line);
    }
    let patience = call.patience(PATIENCE);
    let here = follow(
        call,
        server,
        kinds::laya_model(),
        name,
        patience,
        |object| match conditions::settled(object) {
            Settled::Ready => Step::Done(object.clone()),
            Settled::Stalled(why) => Step::Failed(super::fetch::refused(Model(object), &why)),
            Settled::Waiting(seen) => match Model(object).given_up() {
                Some(why) => Step::Failed(super::fetch::refused(Model(object), &why)),
                None => Step::Waits(Line::Stays(format!("{name}: {seen}"))),
            },
        },
    )
    .await?;
    say(call, &here, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_named_or_said_by_the_folder() {
        let hex = "ab".repeat(32);
        let digest = format!("sha256:{hex}");
        for (path, named, expected) in [
            ("local-3", Some(digest.as_str()), Some(digest.as_str())),
            (&format!("x/sha256-{hex}"), None, Some(digest.as_str())),
            ("local-3", None, None),
            ("sha256-abc", None, None),
            ("local-3", Some("sha256:x"), None),
        ] {
            assert_eq!(
                place_digest(path, named).ok().as_deref(),
                expected,
                "{path} {named:?}"
            );
        }
    }

    #[test]
    fn names_are_those_of_layamodels() {
        for (name, good) in [
            ("tiny", true),
            ("local-3", true),
            ("shipped", false),
            ("../x", false),
            ("3x", false),
            ("a.b", false),
            ("\u{1b}", false),
            (&"a".repeat(41), false),
        ] {
            assert_eq!(check_name(name).is_ok(), good, "{name}");
        }
    }
}
