//! `GET /api/engine`: what the engine is, whether it answers, and what is on it that nobody asked for.

use std::time::Duration;

use api::group::Kind;
use api::kinds::LayaServer;
use axum::extract::State;
use backend::docker::{Models, Place};
use backend::embedded::MODELS;
use backend::{BackendError, ModelsView, Observed, Owner, Question, Room};
use http::StatusCode;
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::Daemon;
use super::answer::{Answer, json_answer};
use crate::engine::{LocalEngine, view_inside};

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
    if engine.inside.is_some() {
        put("version", env!("CARGO_PKG_VERSION").into());
        put("address", "this process".into());
    }
    match known_models(engine).await {
        Known::Seen(volume, view, at) => {
            put("modelsVolume", models_volume(&volume, &view, at));
            put("models", models(&view));
        }
        Known::Not(why) => {
            put("modelsUnknown", why.into());
        }
        Known::Absent | Known::Unreachable => {}
    }
    Ok(json_answer(StatusCode::OK, &Value::Object(said)))
}

/// What is known of the volume of models, for nothing: no task is started for it.
enum Known {
    /// Where it is, what lies in it, and when that was where it is not now.
    Seen(Volume, ModelsView, Option<Timestamp>),
    /// Why not.
    Not(String),
    /// There is none yet: the first fetch makes it, and until then there is nothing to say of it.
    Absent,
    /// The engine does not answer, which is said already.
    Unreachable,
}

/// The volume of models.
struct Volume {
    name: String,
    path: Option<String>,
}

async fn known_models(engine: &LocalEngine) -> Known {
    if let Some(inside) = &engine.inside {
        let volume = Volume {
            name: MODELS.to_owned(),
            path: Some(inside.models().display().to_string()),
        };
        return match view_inside(inside).await {
            Ok(view) => Known::Seen(volume, view, None),
            Err(why) => Known::Not(why),
        };
    }
    let Some(docker) = &engine.docker else {
        return Known::Unreachable;
    };
    match tokio::time::timeout(PATIENCE, docker.models()).await {
        Ok(Ok(seen)) => of_docker(seen),
        Ok(Err(error)) if error.is_blind() => Known::Unreachable,
        Ok(Err(error)) => Known::Not(error.to_string()),
        Err(_) => Known::Unreachable,
    }
}

fn of_docker(seen: Models) -> Known {
    let Models {
        volume: name,
        place,
    } = seen;
    let volume = Volume { name, path: None };
    match place {
        Place::Absent => Known::Absent,
        Place::Now(view) => Known::Seen(volume, view, None),
        Place::Then(at, view) => Known::Seen(volume, view, Some(at)),
        Place::NotKnown(why) => Known::Not(format!(
            "volume {} is the engine's own ({why}); `relayctl model prune --dry-run` looks into it",
            volume.name
        )),
    }
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

/// Space, and what the layout does not know.
fn models_volume(volume: &Volume, view: &ModelsView, at: Option<Timestamp>) -> Value {
    let mut said = json!({
        "name": volume.name,
        "freeBytes": view.free_bytes,
        "totalBytes": view.total_bytes,
        "unknownFolders": view.unknown,
    });
    if let Some(path) = &volume.path {
        said["path"] = path.as_str().into();
    }
    if let Some(at) = at {
        let seconds = at.as_second();
        said["seenAt"] = Timestamp::from_second(seconds)
            .unwrap_or(at)
            .to_string()
            .into();
    }
    said
}

fn models(view: &ModelsView) -> Value {
    let models = view.published.iter().map(|published| {
        json!({
            "digest": published.digest,
            "sizeBytes": published.size_bytes,
            "keep": published.keep,
            "damage": published.damage,
        })
    });
    models.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_earlier_says_when_and_what_is_not_known_says_why() {
        let view = || ModelsView {
            published: Vec::new(),
            omitted: 0,
            unknown: vec!["local-1".to_owned()],
            free_bytes: 3,
            total_bytes: 4,
        };
        let of = |place| {
            of_docker(Models {
                volume: "relay-abc-models".to_owned(),
                place,
            })
        };
        let said = |place| match of(place) {
            Known::Seen(volume, view, at) => models_volume(&volume, &view, at),
            Known::Not(why) => why.into(),
            Known::Absent | Known::Unreachable => Value::Null,
        };
        let now = said(Place::Now(view()));
        assert_eq!(now["freeBytes"], 3);
        assert!(now["seenAt"].is_null() && now["path"].is_null(), "{now}");
        let at = "2026-11-30T10:00:00.5Z".parse().unwrap();
        let then = said(Place::Then(at, view()));
        assert_eq!(then["seenAt"], "2026-11-30T10:00:00Z");
        assert_eq!(then["unknownFolders"], json!(["local-1"]));
        let not = said(Place::NotKnown("Permission denied".to_owned()));
        let not = not.as_str().unwrap();
        assert!(
            not.contains("relay-abc-models") && not.contains("Permission denied"),
            "{not}"
        );
        assert!(matches!(of(Place::Absent), Known::Absent));
    }
}
