//! Calls of `relayd local` beside its object API: the engine, logs, and what only a machine can do. In a cluster nobody
//! answers them, which is said.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::facts;
use crate::kinds::Kind;
use crate::refusal::ServerError;
use crate::server::{Server, encode};
use api::exit::Exit;

/// Most bytes of a log that are given at once.
pub(crate) const MAX_LOG: usize = 64 << 10;
/// Copying and hashing 10 GB from a slow disk.
const IMPORT_PATIENCE: Duration = Duration::from_secs(3600);
/// Starting a container that lists files, or deletes 100 GB of them.
const PRUNE_PATIENCE: Duration = Duration::from_secs(1800);
/// A daemon that is told to stop answers at once or is in trouble.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);

/// What serves and trains on this machine.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Engine {
    /// `docker` or `embedded`.
    pub(crate) backend: String,
    /// Why that one: `flag`, `first up`, `meta`.
    pub(crate) chosen: String,
    pub(crate) reachable: bool,
    /// Why not, in a word.
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) room: Option<Room>,
    pub(crate) gpu: Option<Gpu>,
    /// What has a name or port that we need.
    pub(crate) strangers: Vec<Stranger>,
    /// What is ours and belongs to no object.
    pub(crate) unclaimed: Vec<Unclaimed>,
    pub(crate) models_volume: Option<ModelsVolume>,
    /// Versions that the volume holds.
    pub(crate) models: Vec<StoredModel>,
    /// Why what it holds is not known.
    pub(crate) models_unknown: Option<String>,
}

/// Memory for another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Room {
    pub(crate) engine_bytes: u64,
    pub(crate) ours_bytes: u64,
    pub(crate) available_bytes: Option<u64>,
}

/// A GPU that the engine can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Gpu {
    pub(crate) memory_bytes: u64,
}

/// Something in the way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stranger {
    /// The name, or the address.
    pub(crate) name: String,
    /// `NameTaken` or `PortInUse`.
    pub(crate) reason: String,
    pub(crate) holder: String,
}

/// Workloads of ours whose object is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Unclaimed {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) children: Vec<String>,
}

/// Where versions lie.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ModelsVolume {
    pub(crate) name: String,
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
    /// Folders that the layout does not know.
    pub(crate) unknown_folders: Vec<String>,
    /// When a task saw it so, where it cannot be looked at now.
    pub(crate) seen_at: Option<String>,
}

impl ModelsVolume {
    /// Its name and room, for people.
    pub(crate) fn room(&self) -> String {
        let then = self.seen_at.as_deref();
        format!(
            "{}: {} free of {}{}",
            self.name,
            facts::bytes(self.free_bytes),
            facts::bytes(self.total_bytes),
            then.map_or(String::new(), |at| format!(", as a task saw it at {at}"))
        )
    }
}

/// A version in the volume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StoredModel {
    pub(crate) digest: String,
    pub(crate) size_bytes: u64,
    pub(crate) keep: bool,
    /// What is wrong with it, in words.
    pub(crate) damage: Option<String>,
}

/// Asks for the engine.
///
/// # Errors
/// It does not answer, or is of an older release.
pub(crate) async fn engine(server: &Server) -> Result<Engine, CliError> {
    let answer = server.read("/api/engine").await;
    let tree = answer.map_err(|error| unanswered(server, error, "engine"))?;
    serde_json::from_value(tree).map_err(|error| {
        let line = format!("`relayd local` says of its engine what cannot be read: {error}");
        CliError::new(Exit::Failed, line).hint("install relayd and relayctl from one release")
    })
}

/// The end of a log.
///
/// # Errors
/// There is none, or nobody answers.
pub(crate) async fn logs(
    server: &Server,
    kind: &Kind,
    name: &str,
    revision: Option<&str>,
) -> Result<String, CliError> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(revision) = revision {
        query.append_pair("revision", revision);
    }
    query.append_pair("tail", &MAX_LOG.to_string());
    let path = format!(
        "/api/logs/{}/{}/{}?{}",
        encode(&server.namespace),
        kind.plural,
        encode(name),
        query.finish()
    );
    server
        .text(&path)
        .await
        .map_err(|error| server.failed(error))
}

/// What becomes of servers when the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Servers {
    /// They drain and stop.
    Stop,
    /// They go on.
    Keep,
}

/// Tells the daemon to end.
///
/// # Errors
/// It knows no such call, or does not answer.
pub(crate) async fn shutdown(server: &Server, servers: Servers) -> Result<(), ServerError> {
    let word = match servers {
        Servers::Stop => "stop",
        Servers::Keep => "keep",
    };
    let server = server.with_patience(server.timeout.min(SHUTDOWN_PATIENCE));
    server
        .create("/api/shutdown", &json!({"servers": word}))
        .await
        .map(|_| ())
}

/// Chooses the engine of the next start.
///
/// # Errors
/// It is not known, or nobody answers.
pub(crate) async fn choose_backend(server: &Server, backend: &str) -> Result<(), CliError> {
    let answer = server
        .create("/api/backend", &json!({"backend": backend}))
        .await;
    answer
        .map(|_| ())
        .map_err(|error| unanswered(server, error, "backend"))
}

/// Publishes a folder of this machine into the models volume and makes its LayaModel; the checkpoint digest. `decisions` is the
/// text of a decisions.json: the order of its keys is part of the contract, and trees lose it.
///
/// # Errors
/// The folder is refused, or nobody answers.
pub(crate) async fn import(
    server: &Server,
    name: &str,
    path: &str,
    decisions: Option<&str>,
    patience: Option<Duration>,
) -> Result<String, CliError> {
    let mut body = json!({"name": name, "namespace": server.namespace, "path": path});
    if let Some(decisions) = decisions {
        body["decisions"] = json!(decisions);
    }
    let patient = server.with_patience(patience.unwrap_or(IMPORT_PATIENCE));
    let answer = patient.create("/api/import", &body).await;
    let answer = answer.map_err(|error| unanswered(server, error, "import"))?;
    match answer["digest"].as_str() {
        Some(digest) => Ok(digest.to_owned()),
        None => Err(CliError::new(
            Exit::Failed,
            "`relayd local` imported the folder and names no digest",
        )),
    }
}

/// What a prune would do, or did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Prunable {
    /// What would go.
    pub(crate) delete: Vec<StoredModel>,
    /// What stays, and why.
    pub(crate) keep: Vec<Kept>,
    /// Names that the layout does not know, left alone.
    pub(crate) unknown: Vec<String>,
}

/// A version that stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Kept {
    pub(crate) digest: String,
    pub(crate) size_bytes: u64,
    pub(crate) why: String,
}

/// What a prune deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PruneDone {
    pub(crate) deleted: Vec<String>,
    pub(crate) freed_bytes: u64,
}

/// What nothing names in the models volume.
///
/// # Errors
/// It cannot be told, or nobody answers.
pub(crate) async fn prunable(
    server: &Server,
    patience: Option<Duration>,
) -> Result<Prunable, CliError> {
    let patient = server.with_patience(patience.unwrap_or(PRUNE_PATIENCE));
    let answer = patient.create("/api/prune", &json!({"dryRun": true})).await;
    read(answer.map_err(|error| unanswered(server, error, "prune"))?)
}

/// Deletes of these what nothing names by then.
///
/// # Errors
/// It is refused, or nobody answers.
pub(crate) async fn prune(
    server: &Server,
    delete: &[String],
    patience: Option<Duration>,
) -> Result<PruneDone, CliError> {
    let patient = server.with_patience(patience.unwrap_or(PRUNE_PATIENCE));
    let answer = patient
        .create("/api/prune", &json!({"delete": delete}))
        .await;
    read(answer.map_err(|error| unanswered(server, error, "prune"))?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, CliError> {
    serde_json::from_value(answer).map_err(|error| {
        let line = format!("`relayd local` says of its models what cannot be read: {error}");
        CliError::new(Exit::Failed, line).hint("install relayd and relayctl from one release")
    })
}

/// What came of making objects again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Recovered {
    /// `layaserver/main`.
    pub(crate) made: Vec<String>,
    /// What was left alone, and why.
    pub(crate) skipped: Vec<(String, String)>,
    /// Why there was nothing to do.
    pub(crate) message: Option<String>,
}

/// Makes objects of what is unclaimed.
///
/// # Errors
/// Nobody answers.
pub(crate) async fn recover(server: &Server) -> Result<Recovered, CliError> {
    let answer = server.create("/api/recover", &json!({})).await;
    let answer = answer.map_err(|error| unanswered(server, error, "recover"))?;
    Ok(recovered(&answer))
}

fn recovered(answer: &Value) -> Recovered {
    let entries = |field: &str| answer[field].as_array().cloned().unwrap_or_default();
    let named = |entry: &Value| match entry {
        Value::String(name) => name.clone(),
        object => format!(
            "{}/{}",
            object["kind"].as_str().unwrap_or_default().to_lowercase(),
            object["name"].as_str().unwrap_or_default()
        ),
    };
    let why = |entry: &Value| {
        entry["why"]
            .as_str()
            .unwrap_or("it says no reason")
            .to_owned()
    };
    Recovered {
        made: entries("made").iter().map(named).collect(),
        skipped: entries("skipped")
            .iter()
            .map(|entry| (named(entry), why(entry)))
            .collect(),
        message: answer["message"].as_str().map(str::to_owned),
    }
}

/// A call without a good answer. One that is not there is one of a newer release.
fn unanswered(server: &Server, error: ServerError, call: &str) -> CliError {
    let is_unknown = error.is_not_found();
    let failed = server.failed(error);
    if !is_unknown {
        return failed;
    }
    let line = format!("this `relayd local` has no call `{call}`: it is of an older release");
    failed
        .saying(line)
        .hint("`relayctl down` and `relayctl up` start the one beside this program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recovered_and_what_not_is_named() {
        let answer = json!({"made": [{"kind": "LayaServer", "name": "main"}, "layamodel/v1"],
            "skipped": [{"kind": "LayaServer", "name": "old", "why": "its labels are damaged"}]});
        let recovered = recovered(&answer);
        assert_eq!(recovered.made, ["layaserver/main", "layamodel/v1"]);
        assert_eq!(
            recovered.skipped,
            [(
                "layaserver/old".to_owned(),
                "its labels are damaged".to_owned()
            )]
        );
    }

    #[test]
    fn an_engine_may_say_little_or_more_than_is_known() {
        let engine: Engine = serde_json::from_value(json!({})).unwrap();
        assert_eq!(engine, Engine::default());
        let engine: Engine = serde_json::from_value(json!({"backend": "docker", "reachable": true, "gpu": null, "new": 1,
            "room": {"engineBytes": 8, "oursBytes": 2},
            "strangers": [{"name": "127.0.0.1:8737", "reason": "PortInUse", "holder": "relay-laya"}],
            "unclaimed": [{"kind": "LayaServer", "namespace": "default", "name": "main", "uid": "u", "children": ["c"]}]}))
        .unwrap();
        assert_eq!(engine.room.unwrap().engine_bytes, 8);
        assert_eq!(engine.strangers[0].holder, "relay-laya");
        assert_eq!(engine.unclaimed[0].children, ["c"]);
    }
}
