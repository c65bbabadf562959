//! Objects, an instance of its own on the engine under test, and controllers that each have a back end of their own: what is
//! killed takes everything with it but objects and containers.

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::kinds::{LayaServer, LayaServerStatus};
use backend::Backend;
use backend::docker::{Docker, Options};
use controller::faults::FaultPoints;
use controller::reports::NoReports;
use decision::relay_contract;
use futures_util::StreamExt;
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};
use laya::checkpoint::{Shape, write_random};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::instance::{OnEngine, docker_at, fault_image, host, random_instance, variable};
use crate::parts::objects::{Objects, Running, merge, until};
use crate::parts::status::{champion, holds, targets, told};

/// Memory of a server; the fault image needs a tenth of it.
pub(crate) const MEMORY: &str = "64Mi";

/// Decisions that the weak image survives: more than all probe questions of two controllers.
const SURVIVES: u32 = 60;

/// Everything but a controller.
pub(crate) struct World {
    objects: Objects,
    on: OnEngine,
    /// Where back ends find the engine.
    address: String,
}

impl Deref for World {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

/// A container of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contained {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) uid: String,
    pub(crate) revision: String,
    pub(crate) ordinal: String,
    /// First digits of its checkpoint's digest.
    pub(crate) model: String,
}

impl Contained {
    fn read(line: &str) -> Self {
        let mut words = line.split('\t').map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        Self {
            id: next(),
            name: next(),
            state: next(),
            uid: next(),
            revision: next(),
            ordinal: next(),
            model: next(),
        }
    }

    pub(crate) fn runs(&self) -> bool {
        self.state == "running"
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(&host()).await
    }

    /// With back ends that find the engine at another address.
    pub(crate) async fn at(address: &str) -> Self {
        Self {
            objects: Objects::new().await,
            on: OnEngine::new(&host(), &random_instance()),
            address: address.to_owned(),
        }
    }

    /// The instance as the client sees it.
    pub(crate) fn on(&self) -> &OnEngine {
        &self.on
    }

    /// The fault image with these switches; its id.
    pub(crate) fn faulty(&mut self, switches: &str) -> String {
        self.on.faulty(switches)
    }

    /// A back end, as a process of its own would have it.
    pub(crate) fn back_end(&self) -> Docker {
        let options = Options {
            host: Some(self.address.clone()),
            pull_pause: Duration::from_secs(1),
            ..Options::new(self.on.instance.clone())
        };
        Docker::new(options).unwrap()
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(FaultPoints::none())
    }

    pub(crate) fn start_with(&self, faults: FaultPoints) -> Running {
        self.start_over(Arc::new(self.back_end()), faults)
    }

    pub(crate) fn start_over(&self, backend: Arc<dyn Backend>, faults: FaultPoints) -> Running {
        let laya = variable("RELAY_LAYA_IMAGE");
        self.run(backend, &laya, Arc::new(NoReports), faults)
    }

    /// Publishes a tiny random checkpoint, always the same for a name, and makes the model of it as `relayctl model import`
    /// does.
    pub(crate) async fn create_model(&self, name: &str) {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("checkpoint");
        let seed = name
            .bytes()
            .fold(7, |seed: u64, byte| seed * 31 + u64::from(byte));
        write_random(&files, Shape::Tiny, seed).unwrap();
        std::fs::write(files.join("decisions.json"), relay_contract().export()).unwrap();
        let laya = variable("RELAY_LAYA_IMAGE");
        let docker = self.back_end();
        // A task of its own: what else this one waits for, the client too, takes none of its time.
        let import = tokio::spawn(async move {
            let any = backend::docker::Expected::default();
            docker.import(&laya, &files, any).await
        });
        let result = import.await.unwrap().unwrap();
        assert_eq!(result["ok"], true, "{result}");
        let digest = result["digest"].as_str().unwrap();
        let spec = json!({
            "contract": result["contract"], "manifestDigest": digest,
            "source": {"volume": {"name": "models", "path": digest.replace(':', "-")}},
        });
        self.create_model_of(name, &spec).await;
    }

    /// A server of the fault image, and what else its spec says.
    pub(crate) async fn create_server(&self, name: &str, model: &str, spec: &Value) -> LayaServer {
        let mut whole = json!({"image": fault_image(), "resources": memory(MEMORY)});
        merge(&mut whole, spec);
        self.create(name, model, &whole).await
    }

    /// A server that serves a model.
    pub(crate) async fn serving(&self, name: &str, model: &str) -> LayaServerStatus {
        self.serving_with(name, model, &json!({})).await
    }

    pub(crate) async fn serving_with(
        &self,
        name: &str,
        model: &str,
        spec: &Value,
    ) -> LayaServerStatus {
        self.create_model(model).await;
        self.create_server(name, model, spec).await;
        self.until_serves(name, model).await
    }

    /// Containers of servers of this name, of whichever uid.
    pub(crate) fn containers(&self, name: &str) -> Vec<Contained> {
        let label = |key: &str, value: &str| format!("label=relay.dev/{key}={value}");
        let instance = label("instance", self.on.instance.as_str());
        let (kind, name) = (label("kind", "LayaServer"), label("name", name));
        let labels = ["uid", "revision", "ordinal", "model"];
        let labels = labels.map(|key| format!("{{{{.Label \"relay.dev/{key}\"}}}}"));
        let format = format!(
            "{{{{.ID}}}}\t{{{{.Names}}}}\t{{{{.State}}}}\t{}",
            labels.join("\t")
        );
        let mut arguments = vec!["ps", "--all", "--no-trunc", "--format", &format];
        for filter in [&instance, &kind, &name] {
            arguments.extend(["--filter", filter]);
        }
        let listed = self.on.told(&arguments);
        let lines = listed.lines().filter(|line| !line.is_empty());
        lines.map(Contained::read).collect()
    }

    /// Waits until the containers of a server are so.
    pub(crate) async fn until_containers(
        &self,
        name: &str,
        what: &str,
        are: impl Fn(&[Contained]) -> bool,
    ) -> Vec<Contained> {
        until(what, || async {
            let containers = self.containers(name);
            if are(&containers) {
                Ok(containers)
            } else {
                Err(containers)
            }
        })
        .await
    }

    /// The one container of a revision.
    pub(crate) fn container(&self, name: &str, revision: &str) -> Contained {
        let containers = self.containers(name);
        let mut of = containers.iter().filter(|it| it.revision == revision);
        match (of.next(), of.next()) {
            (Some(one), None) => one.clone(),
            _ => panic!("one container of {revision}: {containers:#?}"),
        }
    }

    /// Time passes for a server, and it is looked at: deadlines, not sleeps.
    pub(crate) async fn forward(&self, name: &str, seconds: u64) {
        self.clock.forward(seconds);
        // A change that makes no other revision.
        let timeout = self.server(name).await.spec.probe.timeout_millis;
        self.edit(name, &json!({"probe": {"timeoutMillis": timeout + 1}}))
            .await;
    }

    /// An image that ends after so many decisions, but not by probe questions.
    pub(crate) fn weak(&mut self) -> String {
        self.faulty(&format!("crash-after={SURVIVES}"))
    }

    /// Asks the replica of a revision of the weak image as often as it survives, and again, until it is taken back.
    pub(crate) async fn wear_out(&self, name: &str, revision: &str) {
        until("it is taken back", || async {
            if let Some(url) = self.url(name, revision) {
                ask_often(&url).await;
            }
            let status = self.status(name).await;
            if status.rejected.is_empty() {
                Err(told(&status))
            } else {
                Ok(())
            }
        })
        .await;
    }

    /// Where a replica of a revision answers, while it runs.
    pub(crate) fn url(&self, name: &str, revision: &str) -> Option<String> {
        let containers = self.containers(name);
        let runs = |it: &&Contained| it.revision == revision && it.runs();
        let container = containers.iter().find(runs)?;
        // It may have ended since.
        let output = docker_at(&host(), &["port", &container.id, "8000/tcp"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(format!("http://{}", text.lines().next()?))
    }

    /// From now on every status of a server is kept.
    pub(crate) fn watch(&self, name: &str) -> Watching {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, name) = (seen.clone(), name.to_owned());
        let mut changes = watcher(self.servers(), watcher::Config::default())
            .applied_objects()
            .boxed();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Some(Ok(server)) = changes.next().await {
                if server.name_any() == name {
                    kept.lock().unwrap().push(server.status.unwrap_or_default());
                }
            }
        });
        Watching {
            seen,
            _tasks: tasks,
        }
    }
}

/// Every status of a server since a moment.
pub(crate) struct Watching {
    seen: Arc<Mutex<Vec<LayaServerStatus>>>,
    _tasks: JoinSet<()>,
}

impl Watching {
    pub(crate) fn statuses(&self) -> Vec<LayaServerStatus> {
        self.seen.lock().unwrap().clone()
    }

    /// This revision was champion, ready and had all traffic in each status.
    pub(crate) fn assert_untouched(&self, revision: &str) {
        let statuses = self.statuses();
        assert!(!statuses.is_empty(), "nothing was seen");
        for status in &statuses {
            let whole = targets(status) == [(revision.to_owned(), 100)];
            assert!(
                whole && champion(status) == revision && holds(status, "Ready"),
                "{:#}",
                told(status)
            );
        }
    }

    /// Traffic was whole or empty, with a reason, in each status.
    pub(crate) fn assert_whole(&self) {
        for status in &self.statuses() {
            let weights: Vec<i32> = targets(status).iter().map(|(_, weight)| *weight).collect();
            let traffic = status.traffic.clone().unwrap_or_default();
            let empty =
                weights.is_empty() && (traffic.generation.is_none() || traffic.reason.is_some());
            assert!(
                empty || weights.iter().sum::<i32>() == 100,
                "{:#}",
                told(status)
            );
        }
    }
}

/// More decisions than the weak image survives, by `curl`, which is what a person has.
pub(crate) async fn ask_often(url: &str) {
    let question =
        json!({"type": "choice", "instructions": "Which?", "criteria": {"bug": "a", "wish": "b"}});
    let body = json!({"state": "white page", "questions": {"kind": question}}).to_string();
    // One address, so many times: what follows # is not sent.
    let range = format!("{url}/v1/systemone#[1-{SURVIVES}]");
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["--silent", "--max-time", "5", "--output", "/dev/null"]);
    curl.args(["--data-binary", &body, &range]);
    let _ = tokio::time::timeout(Duration::from_secs(10), curl.status()).await;
}

/// A limit of memory.
pub(crate) fn memory(limit: &str) -> Value {
    json!({"requests": {"memory": limit}, "limits": {"memory": limit}})
}
