//! Where objects come from.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use objects::{ObjectStore, ObjectStoreOptions};
use serde_json::json;

use crate::world::World;

/// A local object store of this test's own.
pub(crate) fn local() -> World {
    let folder = tempfile::tempdir().unwrap();
    let options = ObjectStoreOptions {
        documents: api::crds::DOCUMENTS.map(|(_, text)| text.to_owned()).into(),
        ..ObjectStoreOptions::default()
    };
    let opened = ObjectStore::open(&folder.path().join("objects.db"), &folder.path().join("instance"), options).unwrap();
    let client = Client::new(opened.store.service(), "default");
    World::new(client, (opened.store, folder))
}

/// The kube-apiserver of `RELAY_TEST_KUBECONFIG`.
pub(crate) async fn kube() -> World {
    let path = std::env::var_os("RELAY_TEST_KUBECONFIG").expect("RELAY_TEST_KUBECONFIG is not set: run `cargo xtask test`");
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    // Whoever was first to install one has the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_from(config).unwrap();
    let world = World::new(client.clone(), ());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": world.namespace}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    world
}
