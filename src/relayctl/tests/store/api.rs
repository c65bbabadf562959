//! The object API of a home, and a small fake of the daemon's calls beside it. Where a controller would act, the test writes
//! the status.

use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use objects::{ObjectService, ObjectStore, ObjectStoreOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Home, Ran};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A call of the daemon as it came: method, path with query, body.
pub(crate) type Called = (String, String, Value);
/// What it answers: status, and JSON or text.
type Answers = dyn Fn(&Called) -> (u16, String) + Send + Sync;

/// The fake of `/api/<word>`.
struct Daemon {
    answers: Mutex<Box<Answers>>,
    log: Mutex<Vec<Called>>,
}

/// A home with an API, as long as this lives.
pub(crate) struct Laptop {
    pub(crate) home: Home,
    store: ObjectStore,
    daemon: Arc<Daemon>,
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
        let daemon = Arc::new(Daemon {
            answers: Mutex::new(Box::new(|_| {
                (404, json!({"detail": "no such call"}).to_string())
            })),
            log: Mutex::default(),
        });
        let shared = daemon.clone();
        runtime.spawn(async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (service, shared) = (service.clone(), shared.clone());
                let service = hyper::service::service_fn(move |request| {
                    answer(service.clone(), shared.clone(), request)
                });
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
            daemon,
            runtime,
        }
    }

    /// From now on the daemon's own calls are answered so.
    pub(crate) fn daemon(
        &self,
        answers: impl Fn(&Called) -> (u16, String) + Send + Sync + 'static,
    ) {
        *self.daemon.answers.lock().unwrap() = Box::new(answers);
    }

    /// Every call of the daemon so far.
    pub(crate) fn called(&self) -> Vec<Called> {
        self.daemon.log.lock().unwrap().clone()
    }

    /// Waits for a call of the daemon beyond so many, by the beginning of its path.
    pub(crate) fn until_called_after(&self, before: usize, path: &str) -> Called {
        let ends = Instant::now() + PATIENCE;
        loop {
            let called = self.called();
            if let Some(call) = called
                .iter()
                .skip(before)
                .find(|call| call.1.starts_with(path))
            {
                return call.clone();
            }
            assert!(Instant::now() < ends, "called so far: {called:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What else runs on this machine for a test.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Writes the status of a policy, as its controller would.
    pub(crate) fn set_status(&self, name: &str, status: &Value) {
        self.set_status_of("routingpolicies", name, status);
    }

    /// Writes the status of an object, as its controller would: fields that are not named stay.
    pub(crate) fn set_status_of(&self, plural: &str, name: &str, status: &Value) {
        let path = format!("{}/status", path(plural, name));
        self.send(
            "PATCH",
            &path,
            "application/merge-patch+json",
            &json!({ "status": status }),
        );
    }

    /// Changes a policy as somebody else.
    pub(crate) fn edit(&self, name: &str, patch: &Value) {
        self.edit_of("routingpolicies", name, patch);
    }

    /// Changes an object as somebody else.
    pub(crate) fn edit_of(&self, plural: &str, name: &str, patch: &Value) {
        let path = format!("{}?fieldManager=somebody", path(plural, name));
        self.send("PATCH", &path, "application/merge-patch+json", patch);
    }

    /// Creates an object in a collection.
    pub(crate) fn create(&self, path: &str, object: &Value) {
        self.send("POST", path, "application/json", object);
    }

    /// Creates one of ours.
    pub(crate) fn make(&self, kind: &str, plural: &str, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "relay.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        let path = path(plural, "");
        let path = path.trim_end_matches('/');
        self.create(&format!("{path}?fieldManager=relayctl"), &object);
    }

    /// An object as it is; null where there is none.
    pub(crate) fn object(&self, plural: &str, name: &str) -> Value {
        self.get(&path(plural, name))
    }

    /// Any path of the API; null where there is nothing.
    pub(crate) fn get(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.runtime.block_on(async {
            let client = kube::Client::new(self.store.service(), "default");
            client.request::<Value>(request).await.unwrap_or_default()
        })
    }

    /// Who owns a field of an object, by the last of its path.
    pub(crate) fn managers_of(&self, plural: &str, name: &str, field: &str) -> Vec<String> {
        let object = self.object(plural, name);
        let entries = object["metadata"]["managedFields"].as_array().unwrap();
        let owns = |entry: &&Value| {
            entry["fieldsV1"]
                .to_string()
                .contains(&format!("\"f:{field}\""))
        };
        entries
            .iter()
            .filter(owns)
            .map(|entry| entry["manager"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until an object is as it must be.
    pub(crate) fn until(&self, plural: &str, name: &str, what: impl Fn(&Value) -> bool) -> Value {
        let ends = Instant::now() + PATIENCE;
        loop {
            let object = self.object(plural, name);
            if what(&object) {
                return object;
            }
            assert!(Instant::now() < ends, "last seen: {object:#}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs the program while the test plays the controller.
    pub(crate) fn run_while(&self, arguments: &[&str], play: impl FnOnce(&Self)) -> Ran {
        let child = self.start(arguments);
        play(self);
        self.home.ran(child.wait_with_output().unwrap())
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_relayctl"));
        let mut command = self.home.command(program);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
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

fn path(plural: &str, name: &str) -> String {
    format!("/apis/relay.dev/v1alpha1/namespaces/default/{plural}/{name}")
}

/// The daemon's own calls are the fake's, everything else is the store's.
async fn answer(
    service: ObjectService,
    daemon: Arc<Daemon>,
    request: http::Request<Incoming>,
) -> Result<http::Response<UnsyncBoxBody<Bytes, std::convert::Infallible>>, std::convert::Infallible>
{
    let path = request.uri().path().to_owned();
    if path.starts_with("/api/") && !path.starts_with("/api/v1") {
        let (head, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let called = (
            head.method.to_string(),
            head.uri.to_string(),
            serde_json::from_slice(&bytes).unwrap_or_default(),
        );
        daemon.log.lock().unwrap().push(called.clone());
        let (status, text) = (daemon.answers.lock().unwrap())(&called);
        let body = Full::new(Bytes::from(text)).boxed_unsync();
        return Ok(http::Response::builder().status(status).body(body).unwrap());
    }
    let response = service.oneshot(request).await?;
    Ok(response.map(BodyExt::boxed_unsync))
}
