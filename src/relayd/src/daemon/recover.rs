//! `POST /api/recover`: objects made again from the labels of what still runs, after the store was lost (control-plane 1.4).
//! A LayaServer keeps the uid on the labels, so that what runs is its own; its model is named as a version that lies in the
//! models volume. What is inside this process ended with the last one, so there is never anything to recover of it.

use api::group::{API_VERSION, Kind};
use api::kinds::{LayaModel, LayaServer};
use axum::extract::State;
use backend::embedded::MODELS;
use backend::{RunState, ServerSeen};
use controller::Unclaimed;
use http::{Method, Request, StatusCode};
use kube::Api;
use kube::api::PostParams;
use objects::KeptUid;
use serde_json::{Value, json};

use super::Daemon;
use super::answer::{Answer, json_answer};

/// By whom the objects are made.
const MANAGER: &str = "relayctl";

pub(super) async fn recover(State(daemon): State<Daemon>) -> Answer {
    let engine = daemon.engine()?;
    let mut made = Vec::new();
    let mut skipped = Vec::new();
    for unclaimed in engine.parts.unclaimed.list() {
        let seen = engine.observe_servers(&unclaimed.owner).await?;
        match plan(&unclaimed, &seen) {
            Ok(plan) => match make(&daemon, &unclaimed, &plan).await {
                Ok(objects) => made.extend(objects),
                Err(why) => skipped.push(skip(&unclaimed, &why)),
            },
            Err(why) => skipped.push(skip(&unclaimed, why)),
        }
    }
    let mut answer = json!({"made": made, "skipped": skipped});
    if made.is_empty() && skipped.is_empty() {
        let nothing = if engine.inside.is_some() {
            "servers inside this process end with it: there is nothing to recover; apply your objects again"
        } else {
            "nothing runs on the engine that no object claims"
        };
        answer["message"] = nothing.into();
    }
    Ok(json_answer(StatusCode::OK, &answer))
}

fn skip(unclaimed: &Unclaimed, why: &str) -> Value {
    let owner = &unclaimed.owner;
    json!({
        "kind": owner.kind.as_str(), "namespace": owner.namespace, "name": owner.name, "why": why,
    })
}

/// The objects that stood behind a server.
#[derive(Debug, PartialEq)]
struct Recovered {
    server: Value,
    model: Value,
}

/// What the labels of a server say. The oldest revision that runs was its champion: a candidate is younger.
fn plan(unclaimed: &Unclaimed, seen: &[ServerSeen]) -> Result<Recovered, &'static str> {
    let owner = &unclaimed.owner;
    if owner.kind != Kind::LayaServer {
        return Err("only servers say on their labels what they were made from");
    }
    let runs = |server: &&ServerSeen| server.state == RunState::Running;
    let champion = seen
        .iter()
        .filter(runs)
        .min_by_key(|server| server.started_at)
        .ok_or("none of its replicas runs")?;
    let replicas = seen
        .iter()
        .filter(runs)
        .filter(|server| server.revision == champion.revision)
        .count();
    let inputs = champion
        .inputs
        .as_ref()
        .ok_or("its labels do not say what it was made from")?;
    let model = champion
        .model
        .as_ref()
        .ok_or("its labels do not name its model")?;
    let metadata = |name: &str| json!({"name": name, "namespace": owner.namespace});
    let mut spec = json!({
        "modelRef": {"name": model},
        "replicas": replicas,
        "device": inputs.device,
        "devicePolicy": inputs.device_policy,
        "serverApi": inputs.server_api,
        "serving": inputs.serving,
    });
    if !inputs.image.is_empty() {
        spec["image"] = json!(inputs.image);
    }
    let optional = [
        ("gpu", json!(inputs.gpu)),
        ("resources", json!(inputs.resources)),
        ("pod", json!(inputs.pod)),
    ];
    for (field, value) in optional {
        if !value.is_null() {
            spec[field] = value;
        }
    }
    let mut source = json!({
        "source": {"volume": {"name": MODELS, "path": inputs.digest.replace(':', "-")}},
        "manifestDigest": inputs.digest,
    });
    if let Some(contract) = &inputs.contract {
        source["contract"] = json!(contract);
    }
    Ok(Recovered {
        server: json!({
            "apiVersion": API_VERSION, "kind": "LayaServer", "metadata": metadata(&owner.name), "spec": spec,
        }),
        model: json!({
            "apiVersion": API_VERSION, "kind": "LayaModel", "metadata": metadata(model), "spec": source,
        }),
    })
}

/// Makes the model, unless one of that name is there, and the server with its uid.
async fn make(
    daemon: &Daemon,
    unclaimed: &Unclaimed,
    plan: &Recovered,
) -> Result<Vec<Value>, String> {
    let owner = &unclaimed.owner;
    let mut made = Vec::new();
    let models: Api<LayaModel> = Api::namespaced(daemon.0.client.clone(), &owner.namespace);
    let model: LayaModel =
        serde_json::from_value(plan.model.clone()).map_err(|error| error.to_string())?;
    let by = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match models.create(&by, &model).await {
        Ok(model) => made.push(named("LayaModel", &model.metadata)),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error.to_string()),
    }
    let path = format!(
        "/apis/{API_VERSION}/namespaces/{}/layaservers?fieldManager={MANAGER}",
        owner.namespace
    );
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .extension(KeptUid(owner.uid.clone()))
        .body(plan.server.to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    let server: LayaServer = (daemon.0.client)
        .request(request)
        .await
        .map_err(|error| error.to_string())?;
    made.push(named("LayaServer", &server.metadata));
    Ok(made)
}

fn named(kind: &str, metadata: &kube::core::ObjectMeta) -> Value {
    json!({
        "kind": kind, "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid,
    })
}
