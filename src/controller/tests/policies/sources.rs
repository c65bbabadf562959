//! Where objects come from.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use objects::{ObjectStore, ObjectStoreOptions};
use serde_json::json;

use crate::world::World;

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
    let path = std::env::var_os("RELAY_TEST_KUBECONFIG")
        .expect("RELAY_TEST_KUBECONFIG is not set: run `cargo xtask test`");
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    // Whoever was first to install one has the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_from(config).unwrap();
    with_namespace(World::new(client, ())).await
}

async fn with_namespace(world: World) -> World {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": world.namespace}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    world
}
