//! The daemon's own calls beside the object API (`/api/<word>`, control-plane 9, 18), for the same callers: what the engine
//! is, logs, a folder of this machine as a model, what may be deleted, objects made again from what runs, which objects were
//! deleted, and the end.

mod answer;
mod engine;
mod import;
mod logs;
mod prune;
mod recover;
mod tombstones;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use bytes::Bytes;
use http::StatusCode;
use kube::Client;
use objects::ObjectStore;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::ending::{Ending, Servers};
use crate::engine::LocalEngine;
use crate::engine_choice::BackendName;
use answer::{Answer, Refusal, json_answer, parse};

/// What the calls act on.
#[derive(Clone)]
pub(crate) struct Daemon(Arc<Parts>);

struct Parts {
    client: Client,
    store: ObjectStore,
    /// None where another process reconciles.
    engine: Option<LocalEngine>,
    ending: Ending,
    /// Held while what lies among the models and what names it must agree: a checkpoint is published before its object is
    /// made, and must not be taken in between for one that nothing names.
    models: Mutex<()>,
}

impl Daemon {
    pub(crate) fn new(
        client: Client,
        store: ObjectStore,
        engine: Option<LocalEngine>,
        ending: Ending,
    ) -> Self {
        Self(Arc::new(Parts {
            client,
            store,
            engine,
            ending,
            models: Mutex::new(()),
        }))
    }

    /// The routes. Who may call and how long a body may be is for the object API's guard around them.
    pub(crate) fn routes(self) -> Router {
        Router::new()
            .route("/api/engine", get(engine::engine))
            .route("/api/logs/{namespace}/{plural}/{name}", get(logs::logs))
            .route("/api/shutdown", post(shutdown))
            .route("/api/backend", post(backend))
            .route("/api/import", post(import::import))
            .route("/api/prune", post(prune::prune))
            .route("/api/recover", post(recover::recover))
            .route("/api/tombstones/{uid}", get(tombstones::tombstones))
            .method_not_allowed_fallback(|| async {
                Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "MethodNotAllowed",
                    "this call has another method; GET for engine, logs and tombstones, else POST",
                )
            })
            .with_state(self)
    }

    fn engine(&self) -> Result<&LocalEngine, Refusal> {
        self.0.engine.as_ref().ok_or_else(|| {
            Refusal::new(
                StatusCode::CONFLICT,
                "Conflict",
                "this process has no engine (--no-controller); ask the process that reconciles",
            )
        })
    }
}

/// Body of `shutdown`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shutdown {
    servers: Servers,
}

async fn shutdown(State(daemon): State<Daemon>, body: Bytes) -> Answer {
    let Shutdown { servers } = parse(&body)?;
    tracing::info!(?servers, "told to end");
    daemon.0.ending.end(servers);
    Ok(json_answer(StatusCode::ACCEPTED, &json!({})))
}

/// Body of `backend`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Backend {
    backend: String,
}

/// Chooses another back end for the next start.
async fn backend(State(daemon): State<Daemon>, body: Bytes) -> Answer {
    let Backend { backend } = parse(&body)?;
    let chosen = match backend.parse() {
        Ok(chosen @ (BackendName::Docker | BackendName::Embedded)) => chosen,
        Ok(BackendName::Kubernetes) | Err(_) => {
            return Err(Refusal::field("backend", "expected docker or embedded"));
        }
    };
    let store = &daemon.0.store;
    store
        .set_backend(chosen.as_str())
        .await
        .map_err(|error| Refusal::internal(&error))?;
    tracing::info!(backend = %chosen, "another back end is used from the next start on");
    Ok(json_answer(StatusCode::ACCEPTED, &json!({})))
}
