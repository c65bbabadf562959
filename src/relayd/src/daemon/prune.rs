//! `POST /api/prune`: checkpoints that nothing names are deleted from the models volume. What is in use, what an object
//! names and what is marked to be kept stays, and so does what the layout does not know.

use std::collections::BTreeSet;

use api::kinds::{LayaModel, LayaServer};
use axum::extract::State;
use controller::layamodel::manifest_digest;
use http::StatusCode;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::Daemon;
use super::answer::{Answer, Refusal, json_answer};

pub(super) async fn prune(State(daemon): State<Daemon>) -> Answer {
    let Some(inside) = &daemon.engine()?.inside else {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            "Conflict",
            "on Docker the controller prunes by tasks: delete the LayaModel (`relayctl model rm NAME`)",
        ));
    };
    // No import may publish between the look, the list and the end.
    let _still = daemon.0.models.lock().await;
    let lying = {
        let inside = inside.clone();
        tokio::task::spawn_blocking(move || inside.view())
    };
    let lying = lying
        .await
        .map_err(|error| Refusal::internal(&error))?
        .map_err(|error| Refusal::internal(&error))?;
    // Read after what lies there: what is published meanwhile is not in the list and stays.
    let client = &daemon.0.client;
    let models: Api<LayaModel> = Api::all(client.clone());
    let servers: Api<LayaServer> = Api::all(client.clone());
    let models = models.list(&ListParams::default()).await?.items;
    let servers = servers.list(&ListParams::default()).await?.items;
    let named = named(&models, &servers)?;
    let gone = lying
        .published
        .into_iter()
        .filter(|published| !named.contains(&published.digest.to_string()))
        .map(|published| published.digest)
        .collect();
    let result = inside.prune(gone).await;
    if result["ok"] != true {
        return Err(refused(&result));
    }
    Ok(json_answer(StatusCode::OK, &result))
}

/// Why nothing, or not everything, was deleted.
fn refused(result: &Value) -> Refusal {
    let message = result["message"].as_str().unwrap_or("it failed");
    match result["code"].as_u64() {
        // Another writer has the volume: what it brings may be named by then, so the list must be made anew.
        Some(75) => Refusal::new(StatusCode::CONFLICT, "Conflict", message),
        _ => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message),
    }
}

/// Checkpoint digests that objects name, or that serve. Refused where a model does not say yet which it is: its files may
/// lie there already.
fn named(models: &[LayaModel], servers: &[LayaServer]) -> Result<BTreeSet<String>, Refusal> {
    let mut of_models = BTreeSet::new();
    for model in models {
        let digests = digests(model);
        if digests.is_empty() && model.spec.source.volume.is_none() {
            let (namespace, name) = (model.namespace().unwrap_or_default(), model.name_any());
            return Err(Refusal::new(
                StatusCode::CONFLICT,
                "Conflict",
                format!(
                    "LayaModel {namespace}/{name} has no digest yet, so its files cannot be told from those that nothing \
                     names. Wait until it is fetched, or delete it"
                ),
            ));
        }
        of_models.extend(digests);
    }
    let of_servers = servers
        .iter()
        .filter_map(|server| server.status.as_ref())
        .flat_map(|status| {
            [&status.champion, &status.candidate, &status.previous]
                .into_iter()
                .flatten()
                .filter_map(|version| version.digest.clone())
        });
    of_models.extend(of_servers);
    Ok(of_models)
}

/// Digests that a model has or asks for. That of files over HTTP follows from their list.
fn digests(model: &LayaModel) -> Vec<String> {
    let status = model.status.as_ref();
    let found = status.and_then(|status| status.digest.clone());
    let wished = model.spec.manifest_digest.as_ref();
    let wished = wished.map(|digest| digest.0.clone());
    let listed = model.spec.source.http.as_ref();
    let listed = listed.map(|http| manifest_digest(&http.files));
    found.into_iter().chain(wished).chain(listed).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_object_names_or_what_serves_is_not_to_go() {
        let digest = |digit: char| format!("sha256:{}", digit.to_string().repeat(64));
        let model = |status, wished: Option<String>| -> LayaModel {
            serde_json::from_value(json!({
                "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "m"},
                "spec": {"source": {"volume": {"name": "models", "path": "x"}}, "manifestDigest": wished},
                "status": {"digest": status},
            }))
            .unwrap()
        };
        let server: LayaServer = serde_json::from_value(json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "s"},
            "spec": {"modelRef": {"name": "m"}},
            "status": {"champion": {"digest": digest('c')}, "previous": {"digest": digest('d')}},
        }))
        .unwrap();
        let models = [
            model(Some(digest('a')), None),
            model(None, Some(digest('b'))),
        ];
        let named = named(&models, &[server]).unwrap();
        assert_eq!(named, ['a', 'b', 'c', 'd'].map(digest).into());
    }

    #[test]
    fn a_model_that_says_no_digest_is_waited_for_and_one_of_listed_files_says_it() {
        let model = |source: Value| -> LayaModel {
            serde_json::from_value(json!({
                "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "m", "namespace": "space"},
                "spec": {"source": source},
            }))
            .unwrap()
        };
        let files = json!([{"path": "config.json", "size": 4, "sha256": "1".repeat(64)}]);
        let http = model(json!({"http": {"baseUrl": "https://example.org/", "files": files}}));
        let listed = manifest_digest(&http.spec.source.http.as_ref().unwrap().files);
        assert_eq!(named(&[http], &[]).unwrap(), [listed].into());
        let reference = format!("registry.example/laya@sha256:{}", "7".repeat(64));
        let oci = model(json!({"oci": {"reference": reference}}));
        assert!(named(&[oci], &[]).is_err());
    }
}
