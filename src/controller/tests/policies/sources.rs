//! Where objects come from.

use std::path::Path;

use api::document::read_yaml;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use objects::{ObjectStore, ObjectStoreOptions};
use serde_json::json;

use crate::world::{World, until};

/// A local object store of this test's own.
pub(crate) async fn local() -> World {
    let folder = tempfile::tempdir().unwrap();
    let opened = ObjectStore::open(
        &folder.path().join("objects.db"),
        &folder.path().join("instance"),
        ObjectStoreOptions::default(),
    )
    .unwrap();
    let client = Client::new(opened.store.service(), "default");
    with_namespace(World::new(client, (opened.store, folder))).await
}

/// The kube-apiserver of `RELAY_TEST_KUBECONFIG`.
pub(crate) async fn kube() -> World {
    let client = client(&shared(), "admin").await;
    with_crds(&client).await;
    with_namespace(World::new(client, ())).await
}

/// The kubeconfig of the server that this run shares.
pub(crate) fn shared() -> std::path::PathBuf {
    std::env::var_os("RELAY_TEST_KUBECONFIG")
        .expect("RELAY_TEST_KUBECONFIG is not set: run `cargo xtask test`")
        .into()
}

/// A client of a server, as one of its users.
pub(crate) async fn client(kubeconfig: &Path, context: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions {
        context: Some(context.to_owned()),
        ..KubeConfigOptions::default()
    };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    // Whoever was first to install one has the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::try_from(config).unwrap()
}

/// Waits until our kinds are served; makes those that are not there.
pub(crate) async fn with_crds(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (_, text) in api::crds::DOCUMENTS {
        let crd: CustomResourceDefinition =
            serde_json::from_value(read_yaml(text).unwrap()).unwrap();
        let name = crd.name_any();
        match crds.create(&PostParams::default(), &crd).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("{name}: {error}"),
        }
        until("the kind is served", || async {
            let conditions = crds.get(&name).await.unwrap().status.unwrap_or_default();
            let conditions = conditions.conditions.unwrap_or_default();
            let established =
                |(kind, status): (&str, &str)| (kind, status) == ("Established", "True");
            if conditions
                .iter()
                .any(|condition| established((&condition.type_, &condition.status)))
            {
                Ok(())
            } else {
                Err(conditions)
            }
        })
        .await;
    }
}

pub(crate) async fn with_namespace(world: World) -> World {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": world.namespace}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    world
}
