//! `POST /api/import`: a folder of this machine becomes a model (control-plane 18, training 12). Its files are published in
//! the models volume as a fetch would, and the LayaModel names them there; its wording is stored beside the policies. With
//! a wording alone, the contract of a model is set whose folder names none.

use std::path::{Path, PathBuf};

use api::group::{API_VERSION, MAX_NAME};
use api::kinds::LayaModel;
use api::reason::Reason;
use axum::extract::State;
use backend::docker::Expected;
use backend::embedded::MODELS;
use bytes::Bytes;
use controller::layamodel::Wording;
use http::StatusCode;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Daemon;
use super::answer::{Answer, Refusal, json_answer, parse};

/// By whom the objects are made.
const MANAGER: &str = "relayctl";

/// Body of the call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    name: String,
    namespace: String,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    decisions: Option<Value>,
}

/// The wording of the same body as it was written: the order of its keys is part of the contract.
#[derive(Debug, Deserialize)]
struct AsWritten {
    #[serde(default)]
    decisions: Option<Box<RawValue>>,
}

/// The wording in a body: `decisions` as an object, or as its text.
fn wording_of(body: &[u8], decisions: Option<&Value>) -> Result<Option<Wording>, String> {
    let Some(decisions) = decisions else {
        return Ok(None);
    };
    if let Some(text) = decisions.as_str() {
        return Wording::read(text).map(Some);
    }
    let written: AsWritten = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let text = written.decisions.map(|raw| raw.get().to_owned());
    Wording::read(&text.unwrap_or_default()).map(Some)
}

/// A folder on its way to a model.
struct Publishing {
    daemon: Daemon,
    path: PathBuf,
    name: String,
    namespace: String,
    known: Option<LayaModel>,
    wording: Option<Wording>,
}

impl Publishing {
    async fn run(self) -> Result<Published, Refusal> {
        let Self {
            daemon,
            path,
            name,
            namespace,
            known,
            wording,
        } = self;
        let models: Api<LayaModel> = Api::namespaced(daemon.0.client.clone(), &namespace);
        // Until an object names it, a prune would take it.
        let _unpruned = daemon.0.models.lock().await;
        let known_digest = known.as_ref().and_then(digest_of);
        let folder = Folder {
            path: &path,
            digest: known_digest.as_deref(),
            name: &name,
        };
        let published = publish(&daemon, folder, wording).await?;
        match known {
            Some(known) => agree(&models, &known, &published).await?,
            None => make(&models, &name, &namespace, &published).await?,
        }
        Ok(published)
    }
}

pub(super) async fn import(State(daemon): State<Daemon>, body: Bytes) -> Answer {
    let Import {
        name,
        namespace,
        path,
        decisions,
    } = parse(&body)?;
    if !is_name(&name) {
        return Err(Refusal::field(
            "name",
            format!("expected 1 to {MAX_NAME} of a-z, 0-9 and -, a letter first and no - last"),
        ));
    }
    let wording = wording_of(&body, decisions.as_ref());
    let wording = wording.map_err(|why| Refusal::field("decisions", why))?;
    let models: Api<LayaModel> = Api::namespaced(daemon.0.client.clone(), &namespace);
    let known = models.get_opt(&name).await?;
    let (digest, wording) = match (&path, known) {
        (Some(path), known) => {
            let publishing = Publishing {
                daemon: daemon.clone(),
                path: path.clone(),
                name: name.clone(),
                namespace: namespace.clone(),
                known,
                wording,
            };
            // It goes on, and no prune comes between, when whoever asked goes away.
            let done = tokio::spawn(async move { Box::pin(publishing.run()).await });
            let published = done.await.map_err(|error| {
                let message = format!("the import ended early: {error}");
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            })??;
            (published.digest, published.wording)
        }
        (None, Some(known)) => {
            let wording = wording.ok_or_else(|| {
                Refusal::field(
                    "path",
                    "needed, unless decisions sets the contract of a model",
                )
            })?;
            let digest = set_contract(&models, &known, &wording.digest).await?;
            (digest, Some(wording))
        }
        (None, None) => {
            return Err(Refusal::field(
                "path",
                format!(
                    "needed: there is no LayaModel {namespace}/{name} whose contract could be set"
                ),
            ));
        }
    };
    if let Some(wording) = wording {
        store(&daemon, &namespace, &wording).await?;
    }
    Ok(json_answer(StatusCode::OK, &json!({"digest": digest})))
}

/// What lies in the volume now.
#[derive(Debug)]
struct Published {
    digest: String,
    contract: Option<String>,
    wording: Option<Wording>,
}

/// A folder that is to be published.
struct Folder<'a> {
    path: &'a Path,
    /// Of the model that has the name already.
    digest: Option<&'a str>,
    name: &'a str,
}

async fn publish(
    daemon: &Daemon,
    folder: Folder<'_>,
    wording: Option<Wording>,
) -> Result<Published, Refusal> {
    let Folder { path, digest, name } = folder;
    if !path.is_absolute() {
        return Err(Refusal::field(
            "path",
            "expected an absolute path of this machine",
        ));
    }
    if !path.is_dir() {
        let message = format!("{} is no folder of this machine", path.display());
        return Err(Refusal::field("path", message));
    }
    let expected = Expected {
        digest,
        contract: wording.as_ref().map(|wording| wording.digest.as_str()),
    };
    let result = daemon.engine()?.import(path.to_owned(), expected).await?;
    if result["ok"] != true {
        return Err(match digest {
            // Found before anything was copied: the object says which one it is.
            Some(known) if is_another(&result, known) => another(name, known),
            _ => refused(&result),
        });
    }
    let text = |key: &str| result[key].as_str().map(str::to_owned);
    let digest = text("digest").ok_or_else(|| {
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "the fetch names no digest",
        )
    })?;
    // What was given says it of a folder that says nothing; where both do they agree, or it was refused.
    let wording = match wording {
        Some(wording) => Some(wording),
        None => own_wording(&result),
    };
    let contract = text("contract").or_else(|| wording.as_ref().map(|w| w.digest.clone()));
    Ok(Published {
        digest,
        contract,
        wording,
    })
}

/// The wording that the checkpoint itself brings, as text: the digest depends on the order of keys.
fn own_wording(result: &Value) -> Option<Wording> {
    Wording::read(result["decisionsText"].as_str()?).ok()
}

/// Whether a fetch was refused since the folder as a whole is another checkpoint, and not for one of its files.
fn is_another(result: &Value, known: &str) -> bool {
    let message = result["message"].as_str().unwrap_or_default();
    result["reason"] == Reason::DigestMismatch.as_str() && message.contains(known)
}

/// A version never changes.
fn another(name: &str, known: &str) -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "AlreadyExists",
        format!(
            "LayaModel {name} is another checkpoint ({known}); a version never changes: import it under another name"
        ),
    )
}

/// Why a task refused, by the field that is to blame.
fn refused(result: &Value) -> Refusal {
    let message = result["message"].as_str().unwrap_or("it failed").to_owned();
    match (result["reason"].as_str(), result["code"].as_u64()) {
        (Some("ContractMismatch"), _) => Refusal::field("decisions", message),
        (_, Some(2 | 3)) => Refusal::field("path", message),
        (_, Some(5)) => Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "InternalError", message),
        (_, Some(75)) => Refusal::new(StatusCode::CONFLICT, "Conflict", message),
        _ => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message),
    }
}

async fn make(
    models: &Api<LayaModel>,
    name: &str,
    namespace: &str,
    published: &Published,
) -> Result<(), Refusal> {
    let mut spec = json!({
        "source": {"volume": {"name": MODELS, "path": published.digest.replace(':', "-")}},
        "manifestDigest": published.digest,
    });
    if let Some(contract) = &published.contract {
        spec["contract"] = json!(contract);
    }
    let object = json!({
        "apiVersion": API_VERSION, "kind": "LayaModel",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    });
    let object: LayaModel =
        serde_json::from_value(object).map_err(|error| Refusal::internal(&error))?;
    let by = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    models.create(&by, &object).await?;
    Ok(())
}

/// The same name may be imported again for the same checkpoint only: a version never changes.
async fn agree(
    models: &Api<LayaModel>,
    known: &LayaModel,
    published: &Published,
) -> Result<(), Refusal> {
    let digest = digest_of(known);
    if digest.as_ref() != Some(&published.digest) {
        let name = known.metadata.name.as_deref().unwrap_or_default();
        let other = digest.unwrap_or_else(|| "not known yet".to_owned());
        return Err(another(name, &other));
    }
    if let Some(contract) = &published.contract {
        set_contract(models, known, contract).await?;
    }
    Ok(())
}

/// Sets the contract of a model that has none; gives its digest.
async fn set_contract(
    models: &Api<LayaModel>,
    known: &LayaModel,
    contract: &str,
) -> Result<String, Refusal> {
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let checkpoint = known
        .status
        .as_ref()
        .and_then(|status| status.contract.clone());
    let has = known
        .spec
        .contract
        .as_ref()
        .map(|contract| contract.0.clone());
    if let Some(other) = has.clone().or(checkpoint).filter(|other| other != contract) {
        return Err(Refusal::field(
            "decisions",
            format!("LayaModel {name} is for contract {other}, this wording is {contract}"),
        ));
    }
    if has.is_none() {
        let patch = json!({"spec": {"contract": contract}});
        let by = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        models.patch(name, &by, &Patch::Merge(&patch)).await?;
    }
    Ok(digest_of(known).unwrap_or_default())
}

fn digest_of(model: &LayaModel) -> Option<String> {
    let found = model
        .status
        .as_ref()
        .and_then(|status| status.digest.clone());
    found.or_else(|| {
        model
            .spec
            .manifest_digest
            .as_ref()
            .map(|digest| digest.0.clone())
    })
}

/// Stores a wording where routers read it. One that is there has this digest in its name and is the same.
async fn store(daemon: &Daemon, namespace: &str, wording: &Wording) -> Result<(), Refusal> {
    let documents: Api<ControllerRevision> = Api::namespaced(daemon.0.client.clone(), namespace);
    let by = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match documents.create(&by, &wording.document(namespace)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a text may be the name of an object of ours (control-plane 1.1).
fn is_name(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(inner)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_objects() {
        for (text, good) in [
            ("v1", true),
            ("week-48", true),
            ("a", true),
            ("", false),
            ("1a", false),
            ("a-", false),
            ("A", false),
            ("a/b", false),
            ("a_b", false),
        ] {
            assert_eq!(is_name(text), good, "{text}");
        }
        assert!(is_name(&"a".repeat(40)) && !is_name(&"a".repeat(41)));
    }

    #[test]
    fn another_checkpoint_is_told_from_a_bad_file() {
        let known = format!("sha256:{}", "a".repeat(64));
        let result = |reason: &str, message: &str| json!({"ok": false, "reason": reason, "message": message});
        let whole = format!("the checkpoint has sha256:b instead of {known}");
        assert!(is_another(&result("DigestMismatch", &whole), &known));
        assert!(!is_another(
            &result(
                "DigestMismatch",
                "model.safetensors has SHA-256 c instead of d"
            ),
            &known
        ));
        assert!(!is_another(&result("BadCheckpoint", &whole), &known));
        assert!(!is_another(&json!({}), &known));
    }

    #[test]
    fn the_wording_of_a_checkpoint_is_read_in_the_order_of_its_keys() {
        let text = decision::RELAY_DECISIONS_JSON;
        let result = json!({"ok": true, "decisionsText": text});
        let digest = decision::relay_contract().digest().to_string();
        assert_eq!(own_wording(&result).unwrap().digest, digest);
        assert_eq!(own_wording(&json!({"ok": true})), None);
        // In a body it stands as an object or as its text.
        let body = format!("{{\"decisions\": {text}}}");
        let tree: Value = serde_json::from_str(&body).unwrap();
        let read = wording_of(body.as_bytes(), tree.get("decisions"));
        assert_eq!(read.unwrap().unwrap().digest, digest);
        let as_text = wording_of(b"", Some(&Value::from(text)));
        assert_eq!(as_text.unwrap().unwrap().digest, digest);
        assert_eq!(wording_of(b"", None), Ok(None));
        assert!(wording_of(b"{\"decisions\": {}}", Some(&json!({}))).is_err());
    }
}
