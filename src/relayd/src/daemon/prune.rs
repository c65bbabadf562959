//! `POST /api/prune`: checkpoints that nothing names are deleted from the models volume. What is in use, what an object
//! names and what is marked to be kept stays, and so does what the layout does not know.

use std::collections::BTreeSet;

use api::kinds::{LayaModel, LayaServer};
use axum::extract::State;
use http::StatusCode;
use kube::Api;
use kube::api::ListParams;

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
    let named = named(&models, &servers);
    let gone = lying
        .published
        .into_iter()
        .filter(|published| !named.contains(&published.digest.to_string()))
        .map(|published| published.digest)
        .collect();
    let result = inside.prune(gone).await;
    Ok(json_answer(StatusCode::OK, &result))
}

/// Checkpoint digests that objects name, or that serve.
fn named(models: &[LayaModel], servers: &[LayaServer]) -> BTreeSet<String> {
    let of_models = models.iter().flat_map(|model| {
        let found = model
            .status
            .as_ref()
            .and_then(|status| status.digest.clone());
        let wished = model
            .spec
            .manifest_digest
            .as_ref()
            .map(|digest| digest.0.clone());
        found.into_iter().chain(wished)
    });
    let of_servers = servers
        .iter()
        .filter_map(|server| server.status.as_ref())
        .flat_map(|status| {
            [&status.champion, &status.candidate, &status.previous]
                .into_iter()
                .flatten()
                .filter_map(|version| version.digest.clone())
        });
    of_models.chain(of_servers).collect()
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
        let named = named(&models, &[server]);
        assert_eq!(named, ['a', 'b', 'c', 'd'].map(digest).into());
    }
}
