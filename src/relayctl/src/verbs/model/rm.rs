//! `relayctl model rm`: deletes a LayaModel that no LayaServer has. One that is in use is refused before anything is asked of
//! the server: a deletion that began cannot be taken back.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{MODELS, find};
use crate::call::{Call, DryRun, block_on};
use crate::error::CliError;
use crate::facts::{self, Laya, Model, is_deleting};
use crate::kinds;
use crate::output::Format;
use crate::server::{Form, Selection, Server, Write};
use crate::terminal;
use crate::verbs::wait;
use api::exit::Exit;

/// The bound of cleaning is ten minutes (control-plane 2).
const PATIENCE: Duration = Duration::from_secs(660);

/// Arguments of `relayctl model rm`.
#[derive(Debug, Args)]
#[command(after_help = "\
The champion, a candidate and the previous version of a LayaServer are in use: give the server another one first.
`storage.onDelete: Retain` keeps the files, and so does a source in a volume; those of `model import --dir` lie in the models
volume until `relayctl model prune` deletes what no object names.")]
pub(crate) struct RmArguments {
    /// Which LayaModels
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Deletes them.
pub(super) fn run(call: &Call, arguments: &RmArguments) -> Result<Exit, CliError> {
    if !matches!(call.format(), Format::Table | Format::Name) {
        let word = call.format().word();
        return Err(CliError::usage(format!("`model rm` knows no `-o {word}`")));
    }
    for name in &arguments.names {
        kinds::check_name(name)?;
    }
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        let mut models = Vec::new();
        for name in &arguments.names {
            models.push(find(&server, name).await?);
        }
        let selection = Selection::within(&server.namespace);
        let list = server
            .list(kinds::laya_server(), &selection, Form::Objects)
            .await;
        let list = list.map_err(|error| server.failed(error))?;
        let servers = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        for model in &models {
            if let Some(refusal) = in_use(Model(model), servers) {
                return Err(refusal);
            }
        }
        if call.write() == Write::Commit {
            terminal::confirm(call.global.yes, &question(&models, &server))?;
        }
        for model in &models {
            remove(call, &server, model).await?;
        }
        if let Some(note) = left_here(&models) {
            call.tell(&note);
        }
        Ok(Exit::Done)
    }))
}

/// The error of one that a server has, or is told to have.
fn in_use(model: Model<'_>, servers: &[Value]) -> Option<CliError> {
    let name = model.name();
    let living = servers.iter().filter(|object| !is_deleting(object));
    let uses = living.filter_map(|object| {
        let laya = Laya(object);
        let role = laya.role_of(name);
        let wished = (laya.wished() == Some(name)).then_some("wish");
        Some((laya, role.or(wished)?))
    });
    let uses: Vec<_> = uses.collect();
    let (laya, role) = uses.first()?;
    let all: Vec<_> = uses
        .iter()
        .map(|(laya, role)| format!("{role} of {}", kinds::laya_server().brief(laya.name())))
        .collect();
    let hint = match *role {
        "previous" => format!(
            "another rollout of {} makes another version the previous one",
            laya.name()
        ),
        "candidate" => format!("`relayctl rollout abort {}` takes it back", laya.name()),
        _ => format!(
            "`relayctl use NAME --server {}` gives it another one",
            laya.name()
        ),
    };
    let brief = kinds::laya_model().brief(name);
    let line = format!("{brief} is in use (StillInUse): it is {}", all.join(", "));
    Some(CliError::new(Exit::Conflict, line).hint(hint))
}

fn question(models: &[Value], server: &Server) -> String {
    let names: Vec<_> = models
        .iter()
        .map(|object| {
            let model = Model(object);
            let kept =
                volume(object).is_some() || object["spec"]["storage"]["onDelete"] == "Retain";
            let size = model
                .size()
                .map_or(String::new(), |size| format!(" ({})", facts::bytes(size)));
            let files = if kept {
                ", its files stay"
            } else {
                size.as_str()
            };
            format!("{}{files}", kinds::laya_model().brief(model.name()))
        })
        .collect();
    format!(
        "delete {} of context {}",
        names.join(", "),
        server.context.name
    )
}

/// The volume that a version is used in where it lies; its files are never deleted with the object.
fn volume(object: &Value) -> Option<&str> {
    facts::text(&object["spec"]["source"]["volume"]["name"])
}

/// What to do about files that `model import --dir` put into the volume of ours, and that nothing names now.
fn left_here(models: &[Value]) -> Option<String> {
    let imported = models
        .iter()
        .filter(|object| volume(object) == Some(MODELS));
    let names: Vec<_> = imported
        .map(|object| kinds::laya_model().brief(facts::name(object)))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "the files of {} stay in the models volume; `relayctl model prune` deletes those that no object names",
            names.join(", ")
        )
    })
}

async fn remove(call: &Call, server: &Server, object: &Value) -> Result<(), CliError> {
    let kind = kinds::laya_model();
    let name = facts::name(object);
    let full = kind.full(name);
    let gone = match call.dry_run() {
        DryRun::Client => "deleted (client dry run)",
        DryRun::Server => "deleted (server dry run)",
        DryRun::None => "deleted",
    };
    if call.dry_run() != DryRun::Client {
        let uid = facts::text(&object["metadata"]["uid"]);
        match server
            .delete(kind, &server.namespace, name, uid, call.write())
            .await
        {
            Ok(_) => {}
            // Somebody else was faster.
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                return Err(server
                    .failed(error)
                    .attempting(format!("cannot delete {full}")));
            }
        }
    }
    if call.write() == Write::Commit && call.waits(true) {
        let uid = &object["metadata"]["uid"];
        wait::until_gone(
            server,
            kind,
            &server.namespace,
            name,
            uid,
            call.patience(PATIENCE),
        )
        .await?;
    }
    let line = match call.format() {
        Format::Name => format!("{full}\n"),
        _ => format!("{full} {gone}\n"),
    };
    terminal::print(&line).map(|_| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_an_import_stay_and_what_deletes_them_is_said() {
        let model = |name: &str, source: Value| json!({"metadata": {"name": name}, "spec": {"source": source}});
        let models = [
            model(
                "tiny",
                json!({"volume": {"name": "models", "path": "sha256-a"}}),
            ),
            model(
                "old",
                json!({"volume": {"name": "relay-laya-models", "path": "local-3"}}),
            ),
            model("v1", json!({"http": {}})),
        ];
        let note = left_here(&models).unwrap();
        assert!(
            note.starts_with("the files of layamodel/tiny stay"),
            "{note}"
        );
        assert!(note.contains("relayctl model prune"), "{note}");
        assert_eq!(left_here(&models[1..]), None);
    }

    #[test]
    fn each_use_is_named_with_what_ends_it() {
        let model = json!({"metadata": {"name": "m"}});
        let server = |name: &str, status: Value, wished: &str| json!({"metadata": {"name": name}, "spec": {"modelRef": {"name": wished}}, "status": status});
        for (name, servers, line, hint) in [
            (
                "champion",
                vec![server("main", json!({"champion": {"model": "m"}}), "m")],
                "layamodel/m is in use (StillInUse): it is champion of layaserver/main",
                "`relayctl use NAME --server main` gives it another one",
            ),
            (
                "wish",
                vec![
                    server("main", json!({}), "m"),
                    server("b", json!({"previous": {"model": "m"}}), "x"),
                ],
                "layamodel/m is in use (StillInUse): it is wish of layaserver/main, previous of layaserver/b",
                "`relayctl use NAME --server main` gives it another one",
            ),
            (
                "candidate",
                vec![server("main", json!({"candidate": {"model": "m"}}), "x")],
                "layamodel/m is in use (StillInUse): it is candidate of layaserver/main",
                "`relayctl rollout abort main` takes it back",
            ),
        ] {
            let error = in_use(Model(&model), &servers).unwrap();
            assert_eq!(
                (error.exit, error.line(), error.hint_text()),
                (Exit::Conflict, line, Some(hint)),
                "{name}"
            );
        }
        let mut gone = server("main", json!({"champion": {"model": "m"}}), "m");
        gone["metadata"]["deletionTimestamp"] = json!("2026-11-30T10:00:00Z");
        assert!(in_use(Model(&model), &[gone]).is_none());
    }
}
