//! `GET /api/engine`: what the engine is, whether it answers, and what is on it that nobody asked for.

use std::time::Duration;

use api::group::Kind;
use api::kinds::LayaServer;
use axum::extract::State;
use backend::embedded::{Embedded, MODELS};
use backend::{BackendError, Observed, Owner, Question, Room};
use http::StatusCode;
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::Daemon;
use super::answer::{Answer, json_answer};
use crate::engine::LocalEngine;

/// Most servers whose neighbours are looked for.
const SERVERS: u32 = 50;
/// For the engine to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn engine(State(daemon): State<Daemon>) -> Answer {
    let engine = daemon.engine()?;
    let mut said = Map::new();
    let mut put = |key: &str, value: Value| said.insert(key.to_owned(), value);
    put("backend", engine.choice.backend.as_str().into());
    put("chosen", engine.choice.by.as_str().into());
    put("gpu", Value::Null);
    match look(&daemon, engine).await {
        Ok(seen) => {
            put("reachable", true.into());
            if let Some(room) = seen.room {
                put("memoryBytes", room.engine_bytes.into());
                put("room", of_room(room));
            }
            if let Some(bytes) = seen.gpu_memory_bytes.filter(|bytes| *bytes > 0) {
                put("gpu", json!({"memoryBytes": bytes}));
            }
            put("strangers", strangers(&seen));
        }
        Err(error) => {
            put("reachable", false.into());
            let reason = error.reason().map(api::reason::Reason::as_str);
            put("reason", reason.into());
            put("message", error.to_string().into());
            put("strangers", json!([]));
        }
    }
    put("unclaimed", unclaimed(engine));
    if let Some(docker) = &engine.docker {
        put("address", docker.address().into());
        if let Some(facts) = docker.facts() {
            put("version", facts.version.into());
            put("memoryBytes", facts.memory_bytes.into());
        }
    }
    if let Some(inside) = &engine.inside {
        put("version", env!("CARGO_PKG_VERSION").into());
        put("address", "this process".into());
        let inside = inside.clone();
        let listed = tokio::task::spawn_blocking(move || models_volume(&inside)).await;
        if let Ok(Ok((volume, models))) = listed {
            put("modelsVolume", volume);
            put("models", models);
        }
    }
    Ok(json_answer(StatusCode::OK, &Value::Object(said)))
}

/// One look for every server there is, and one for nobody.
async fn look(daemon: &Daemon, engine: &LocalEngine) -> Result<Observed, BackendError> {
    let late = |_| BackendError::TimedOut {
        what: "look at the engine".to_owned(),
        after: PATIENCE,
    };
    tokio::time::timeout(PATIENCE, async {
        let question = Question::default();
        let backend = &engine.parts.backend;
        let nobody = owner("", "", String::new());
        let mut seen = backend.observe(&nobody, &question).await?;
        for owner in servers(daemon).await {
            let of_one = backend.observe(&owner, &question).await?;
            seen.strangers.extend(of_one.strangers);
        }
        Ok(seen)
    })
    .await
    .map_err(late)?
}

/// The LayaServers there are. Where they cannot be read, the engine is looked at without them.
async fn servers(daemon: &Daemon) -> Vec<Owner> {
    let servers: Api<LayaServer> = Api::all(daemon.0.client.clone());
    let some = kube::api::ListParams::default().limit(SERVERS);
    let list = servers.list(&some).await.map(|list| list.items);
    let owners = list.unwrap_or_default().into_iter().map(|server| {
        let namespace = server.namespace().unwrap_or_default();
        owner(
            &namespace,
            &server.name_any(),
            server.uid().unwrap_or_default(),
        )
    });
    owners.collect()
}

fn owner(namespace: &str, name: &str, uid: String) -> Owner {
    Owner {
        kind: Kind::LayaServer,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid,
    }
}

fn of_room(room: Room) -> Value {
    json!({
        "engineBytes": room.engine_bytes,
        "oursBytes": room.ours_bytes,
        "availableBytes": room.available_bytes,
    })
}

fn strangers(seen: &Observed) -> Value {
    let each = seen.strangers.iter().map(|stranger| {
        json!({
            "name": stranger.name,
            "reason": stranger.reason.as_str(),
            "holder": stranger.holder,
        })
    });
    each.collect()
}

fn unclaimed(engine: &LocalEngine) -> Value {
    let each = engine.parts.unclaimed.list().into_iter().map(|unclaimed| {
        json!({
            "kind": unclaimed.owner.kind.as_str(),
            "namespace": unclaimed.owner.namespace,
            "name": unclaimed.owner.name,
            "uid": unclaimed.owner.uid,
            "children": unclaimed.children,
        })
    });
    each.collect()
}

/// The folder of models: its space, and what lies in it. Reads directories.
fn models_volume(inside: &Embedded) -> std::io::Result<(Value, Value)> {
    let view = inside.view()?;
    let volume = json!({
        "name": MODELS,
        "path": inside.models().display().to_string(),
        "freeBytes": view.free_bytes,
        "totalBytes": view.total_bytes,
        "unknownFolders": view.unknown,
    });
    let models = view.published.into_iter().map(|published| {
        json!({
            "digest": published.digest.to_string(),
            "sizeBytes": published.size_bytes,
            "keep": published.keep,
            "damage": published.damage,
        })
    });
    Ok((volume, models.collect()))
}
