//! The object API of a home.

use std::os::unix::net::UnixListener;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use objects::{ObjectStore, ObjectStoreOptions};
use serde_json::Value;

use crate::support::Home;

/// A home with an API, as long as this lives.
pub(crate) struct Laptop {
    pub(crate) home: Home,
    store: ObjectStore,
    runtime: tokio::runtime::Runtime,
}

impl Laptop {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let folder = home.path("relay");
        std::fs::create_dir_all(folder.join("daemon")).unwrap();
        let options = ObjectStoreOptions::default();
        let opened = ObjectStore::open(
            &folder.join("objects.db"),
            &folder.join("instance"),
            options,
        )
        .unwrap();
        let listener = UnixListener::bind(folder.join("daemon/sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let service = opened.store.service();
        runtime.spawn(async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = TowerToHyperService::new(service.clone());
                tokio::spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    let _ = connection.await;
                });
            }
        });
        Self {
            home,
            store: opened.store,
            runtime,
        }
    }

    /// Writes the status of a policy, as its controller would.
    pub(crate) fn set_status(&self, name: &str, status: &Value) {
        let path =
            format!("/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/{name}/status");
        self.send(
            "PATCH",
            &path,
            "application/merge-patch+json",
            &serde_json::json!({ "status": status }),
        );
    }

    /// Changes an object as somebody else.
    pub(crate) fn edit(&self, name: &str, patch: &Value) {
        let path = format!(
            "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/{name}?fieldManager=somebody"
        );
        self.send("PATCH", &path, "application/merge-patch+json", patch);
    }

    /// Creates an object in a collection.
    pub(crate) fn create(&self, path: &str, object: &Value) {
        self.send("POST", path, "application/json", object);
    }

    fn send(&self, method: &str, path: &str, media_type: &str, body: &Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .body(body.to_string().into_bytes())
            .unwrap();
        self.runtime.block_on(async {
            let client = kube::Client::new(self.store.service(), "default");
            client.request::<Value>(request).await.unwrap();
        });
    }
}
