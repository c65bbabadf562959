//! A store of its own for each test, and requests to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, Full};
use jiff::Timestamp;
use objects::{ObjectBody, ObjectService, ObjectStore, ObjectStoreOptions, Opened};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// Where policies of the namespace `default` are.
pub(crate) const POLICIES: &str = "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies";
/// Where servers are.
pub(crate) const SERVERS: &str = "/apis/relay.dev/v1alpha1/namespaces/default/layaservers";
/// Where revisions are.
pub(crate) const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A clock that a test moves.
#[derive(Clone)]
pub(crate) struct Hand(Arc<Mutex<Timestamp>>);

impl Hand {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(
            "2026-11-30T12:00:00Z".parse().unwrap(),
        )))
    }

    pub(crate) fn forward(&self, hours: i64) {
        let mut now = self.0.lock().unwrap();
        *now += jiff::SignedDuration::from_hours(hours);
    }

    pub(crate) fn options(&self) -> ObjectStoreOptions {
        let now = self.0.clone();
        ObjectStoreOptions {
            clock: Arc::new(move || *now.lock().unwrap()),
            ..ObjectStoreOptions::default()
        }
    }
}

/// A store and its folder.
pub(crate) struct Home {
    pub(crate) store: ObjectStore,
    pub(crate) service: ObjectService,
    folder: TempDir,
}

pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("objects.db")
}

pub(crate) fn open(folder: &Path, options: ObjectStoreOptions) -> Opened {
    ObjectStore::open(&file(folder), &folder.join("instance"), options).unwrap()
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with(ObjectStoreOptions::default())
    }

    pub(crate) fn with(options: ObjectStoreOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path(), options);
        assert_eq!(opened.notices, []);
        Self {
            service: opened.store.service(),
            store: opened.store,
            folder,
        }
    }

    pub(crate) fn from_opened(opened: Opened, folder: TempDir) -> Self {
        Self {
            service: opened.store.service(),
            store: opened.store,
            folder,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Closes the store; the folder stays.
    pub(crate) async fn close(self) -> TempDir {
        self.store.close(PATIENCE).await.unwrap();
        self.folder
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.service.clone(), "default")
    }

    pub(crate) async fn raw(&self, request: Request<Full<bytes::Bytes>>) -> Response<ObjectBody> {
        self.service.clone().oneshot(request).await.unwrap()
    }

    /// A request with a body of some media type.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        (media_type, body): (&str, String),
    ) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .header("user-agent", "tester/1.0")
            .body(Full::from(body))
            .unwrap();
        read(self.raw(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, ("", String::new())).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> (u16, Value) {
        let request = Request::get(path)
            .header("accept", accept)
            .body(Full::default())
            .unwrap();
        read(self.raw(request).await).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> (u16, Value) {
        let body = ("application/json", object.to_string());
        self.send("POST", path, body).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> (u16, Value) {
        let body = ("application/json", object.to_string());
        self.send("PUT", path, body).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> (u16, Value) {
        let body = ("application/merge-patch+json", patch.to_string());
        self.send("PATCH", path, body).await
    }

    pub(crate) async fn json_patch(&self, path: &str, patch: &Value) -> (u16, Value) {
        let body = ("application/json-patch+json", patch.to_string());
        self.send("PATCH", path, body).await
    }

    pub(crate) async fn apply(&self, path: &str, config: &Value) -> (u16, Value) {
        let body = ("application/apply-patch+yaml", config.to_string());
        self.send("PATCH", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.send("DELETE", path, ("", String::new())).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> (u16, Value) {
        let body = ("application/json", options.to_string());
        self.send("DELETE", path, body).await
    }

    /// Makes an object that must be taken.
    pub(crate) async fn made(&self, path: &str, object: &Value) -> Value {
        let (code, made) = self.post(path, object).await;
        assert_eq!(code, 201, "{made}");
        made
    }

    /// Starts a watch that must be taken.
    pub(crate) async fn watch(&self, path: &str) -> Lines {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Lines {
        let request = Request::get(path)
            .header("accept", accept)
            .body(Full::default())
            .unwrap();
        let response = self.raw(request).await;
        assert_eq!(response.status(), 200);
        Lines {
            body: BodyStream::new(response.into_body()),
            rest: Vec::new(),
        }
    }
}

pub(crate) async fn read(response: Response<ObjectBody>) -> (u16, Value) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    (code, value)
}

/// What a watch says.
pub(crate) struct Lines {
    body: BodyStream<ObjectBody>,
    rest: Vec<u8>,
}

impl Lines {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let piece = tokio::time::timeout(PATIENCE, self.body.next()).await;
            let piece = piece.expect("the watch says nothing")?.unwrap();
            self.rest.extend_from_slice(&piece.into_data().unwrap());
        }
    }

    /// Verb, name and version of the next event.
    pub(crate) async fn brief(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch goes on");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}

/// A policy that is good.
pub(crate) fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "relay.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": name},
        "spec": {
            "serverRef": {"name": "main"},
            "tiers": [
                {"name": "fast", "models": ["anthropic/claude-haiku-4-5"]},
                {"name": "strong", "models": ["anthropic/claude-opus-5-5"]},
            ],
        },
    })
}

/// A server that is good.
pub(crate) fn server(name: &str) -> Value {
    json!({
        "apiVersion": "relay.dev/v1alpha1",
        "kind": "LayaServer",
        "metadata": {"name": name},
        "spec": {"modelRef": {"name": "v1"}},
    })
}

pub(crate) fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.expect("an object or list").parse().unwrap()
}

pub(crate) fn at(path: &str, name: &str) -> String {
    format!("{path}/{name}")
}
