//! The engine with real servers over tiny random checkpoints.

use std::path::Path;
use std::time::{Duration, Instant};

use api::group::Kind;
use api::kinds::laya_server::{ServerApi, Serving};
use api::kinds::shared::{Device, DevicePolicy};
use laya::checkpoint::{Shape, inspect, write_random};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::action::{Network, StagedFile, TaskArguments, TaskKey, TaskSpec, Writes};
use crate::observed::{RunState, ServerSeen, TaskSeen};
use crate::revision::{RENDER_VERSION, RevisionInputs};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of a checkpoint in that folder of the models.
pub(super) fn spec(path: &str, bytes: u64) -> ServerSpec {
    let inputs = RevisionInputs {
        owner_uid: "u".to_owned(),
        digest: format!("sha256:{}", "0".repeat(64)),
        contract: None,
        image: String::new(),
        server_api: ServerApi::Relay,
        device: Device::Auto,
        device_policy: DevicePolicy::Require,
        gpu: None,
        resources: None,
        serving: Serving {
            threads: 1,
            ..Serving::default()
        },
        pod: None,
        render_version: RENDER_VERSION,
    };
    ServerSpec {
        revision: inputs.revision(),
        inputs,
        model: "tiny".to_owned(),
        volume: VolumeRole::Models,
        path: path.to_owned(),
        checkpoint_bytes: bytes,
        image_id: None,
        drain_seconds: 2,
        wants_gpu: false,
    }
}

/// A folder of models with one random checkpoint, and the engine over it.
struct World {
    engine: Embedded,
    owner: Owner,
    home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let engine = Embedded::new(EmbeddedOptions {
            models: home.path().join("models"),
            store: "0123456789ab".to_owned(),
            secrets: SecretFiles::new(home.path().join("secrets")),
            scratch: home.path().join("scratch"),
            threads: Some(1),
        });
        let owner = Owner {
            kind: Kind::LayaServer,
            namespace: "default".to_owned(),
            name: "main".to_owned(),
            uid: "u".to_owned(),
        };
        Self {
            engine,
            owner,
            home,
        }
    }

    /// A random checkpoint, and what serves it.
    fn checkpoint(&self, name: &str, seed: u64) -> ServerSpec {
        std::fs::create_dir_all(self.engine.models()).unwrap();
        let folder = self.engine.models().join(name);
        write_random(&folder, Shape::Tiny, seed).unwrap();
        self.spec_of(name, &folder)
    }

    fn spec_of(&self, name: &str, folder: &Path) -> ServerSpec {
        let mut spec = spec(name, 1 << 20);
        spec.inputs.digest = inspect(folder, None).unwrap().digest.unwrap();
        spec.revision = spec.inputs.revision();
        spec
    }

    async fn apply(&self, action: Action) {
        self.engine.apply(&self.owner, &action).await.unwrap();
    }

    async fn ensure(&self, spec: &ServerSpec) {
        self.apply(Action::EnsureServer {
            server: Box::new(spec.clone()),
            ordinals: vec![0],
        })
        .await;
    }

    async fn seen(&self) -> Observed {
        let question = Question {
            images: vec!["laya".to_owned()],
            volumes: vec![VolumeRole::Models],
        };
        self.engine.observe(&self.owner, &question).await.unwrap()
    }

    async fn server(&self, spec: &ServerSpec) -> Option<ServerSeen> {
        let seen = self.seen().await;
        assert!(seen.complete);
        seen.of_revision(&spec.revision).next().cloned()
    }

    /// Looks until a server of the revision is as expected.
    async fn until(
        &self,
        spec: &ServerSpec,
        what: &str,
        holds: impl Fn(&ServerSeen) -> bool,
    ) -> ServerSeen {
        let began = Instant::now();
        loop {
            let seen = self.server(spec).await;
            if let Some(seen) = &seen
                && holds(seen)
            {
                return seen.clone();
            }
            assert!(began.elapsed() < PATIENCE, "waited for {what}: {seen:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn running(&self, spec: &ServerSpec) -> String {
        let seen = self.until(spec, "it to run", |seen| seen.state == RunState::Running);
        seen.await.url.unwrap()
    }

    async fn ready(&self, spec: &ServerSpec) -> String {
        let url = self.running(spec).await;
        let began = Instant::now();
        while status(&url, "GET /ready").await != Some(200) {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.server(spec).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        url
    }
}

/// Status of an answer; none where nobody answers.
async fn status(url: &str, line: &str) -> Option<u16> {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.ok()?;
    let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_revisions_serve_side_by_side_and_each_goes_as_it_is_told() {
    let world = World::new();
    let mut hints = world.engine.changes();
    let (old, new) = (world.checkpoint("old", 1), world.checkpoint("new", 2));
    world.ensure(&old).await;
    let first = world.ready(&old).await;
    world.ensure(&new).await;
    let second = world.ready(&new).await;
    assert_ne!(first, second);
    world.ensure(&new).await;
    assert_eq!(world.running(&new).await, second, "what runs is left alone");
    let seen = world.seen().await;
    let room = seen.room.unwrap();
    assert_eq!(room.ours_bytes, 2 << 30, "{room:?}");
    assert_eq!(seen.volumes[0].name, MODELS);

    // Drained it refuses, stopped it is gone and kept, started again it has a new port.
    world.apply(Action::Drain { url: first.clone() }).await;
    assert_eq!(status(&first, "GET /ready").await, Some(503));
    assert_eq!(status(&second, "GET /ready").await, Some(200));
    let stop = Action::StopServer {
        revision: old.revision.clone(),
        ordinals: Ordinals::All,
        grace_seconds: 5,
    };
    world.apply(stop).await;
    let exited = |seen: &ServerSeen| seen.state == RunState::Exited;
    let stopped = world.until(&old, "it to stop", exited).await;
    assert_eq!(stopped.exit_code, Some(0), "{stopped:?}");
    assert_eq!(stopped.restarts, 0);
    assert_eq!(status(&first, "GET /health").await, None);
    world.ensure(&old).await;
    world.ready(&old).await;

    let delete = Action::DeleteServer {
        revision: old.revision.clone(),
        ordinals: Ordinals::Only(vec![0]),
        grace_seconds: 5,
    };
    world.apply(delete).await;
    let began = Instant::now();
    while world.server(&old).await.is_some() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status(&second, "GET /ready").await, Some(200));
    assert_eq!(
        world.engine.owners().await.unwrap(),
        std::slice::from_ref(&world.owner)
    );
    let hint = tokio::time::timeout(PATIENCE, hints.next()).await.unwrap();
    assert!(hint.is_some());

    world.engine.close(Duration::from_secs(5)).await;
    assert_eq!(status(&second, "GET /health").await, None);
    assert_eq!(world.engine.owners().await.unwrap(), []);
    let late = Action::EnsureServer {
        server: Box::new(old),
        ordinals: vec![0],
    };
    world.engine.apply(&world.owner, &late).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_21_a_damaged_checkpoint_is_never_served_and_ends_with_code_3_until_it_is_repaired() {
    let world = World::new();
    let spec = world.checkpoint("tiny", 3);
    let weights = world.engine.models().join("tiny/model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&weights, damaged).unwrap();
    world.ensure(&spec).await;
    let crashed = world
        .until(&spec, "it to be tried again", |seen| seen.restarts >= 2)
        .await;
    assert_eq!(crashed.exit_code, Some(3), "{crashed:?}");
    let tail = world
        .until(&spec, "its last words", |seen| {
            seen.state == RunState::Restarting
        })
        .await
        .log_tail;
    assert!(tail.contains("digest"), "{tail}");
    let child = Child::Server {
        revision: spec.revision.clone(),
        ordinal: 0,
    };
    let logs = world.engine.logs(&world.owner, &child, 4096).await.unwrap();
    assert!(logs.contains("listening on http://127.0.0.1:"), "{logs}");
    std::fs::write(&weights, whole).unwrap();
    world.ready(&spec).await;
    world.engine.close(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_waits_for_its_cause_to_go() {
    let world = World::new();
    let mut large = world.checkpoint("tiny", 4);
    // More than any machine has.
    large.checkpoint_bytes = 1 << 60;
    world.ensure(&large).await;
    let waiting = world
        .until(&large, "it to wait", |seen| seen.waiting.is_some())
        .await;
    assert_eq!(waiting.state, RunState::Created);
    assert_eq!(waiting.waiting.unwrap().reason, Reason::InsufficientMemory);
    assert_eq!(world.seen().await.room.unwrap().ours_bytes, 0);
    // A new life with another size: what was recorded was wrong.
    large.checkpoint_bytes = 1;
    world
        .apply(Action::RecreateServer {
            server: Box::new(large.clone()),
            ordinal: 0,
        })
        .await;
    world.ready(&large).await;

    // Another folder for the same revision makes it anew.
    let moved = ServerSpec {
        path: "elsewhere".to_owned(),
        ..large.clone()
    };
    let models = world.engine.models();
    std::fs::rename(models.join("tiny"), models.join("elsewhere")).unwrap();
    let before = world.running(&large).await;
    world.ensure(&moved).await;
    world
        .until(&moved, "its new life", |seen| {
            seen.state == RunState::Running && seen.url.as_ref() != Some(&before)
        })
        .await;
    world.ready(&moved).await;
    world.engine.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn what_it_cannot_do_is_refused_with_its_reason() {
    let world = World::new();
    let mut foreign = spec("local-1", 1);
    foreign.volume = VolumeRole::Foreign {
        name: "relay-laya-models".to_owned(),
    };
    let action = Action::EnsureServer {
        server: Box::new(foreign),
        ordinals: vec![0],
    };
    let error = world.engine.apply(&world.owner, &action).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidSpec));
    assert!(error.to_string().contains("relay-laya-models"), "{error}");
    let work = Action::EnsureVolume {
        role: VolumeRole::Work {
            run: "r".to_owned(),
        },
        size_bytes: 1,
    };
    let error = world.engine.apply(&world.owner, &work).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TrainingUnsupported));
    assert!(world.seen().await.volumes.is_empty());
    world
        .apply(Action::EnsureVolume {
            role: VolumeRole::Models,
            size_bytes: 1,
        })
        .await;
    let volumes = world.seen().await.volumes;
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes, world.seen().await.volumes, "its uid stays");
    assert!(world.home.path().join("models").is_dir());
}

#[tokio::test]
async fn an_import_ends_with_the_engine() {
    let world = World::new();
    let folder = world.home.path().join("from");
    write_random(&folder, Shape::Tiny, 1).unwrap();
    world.engine.close(Duration::from_secs(5)).await;
    let result = world.engine.import(folder, None, None).await;
    assert_eq!(result["ok"], false, "{result}");
    assert!(world.engine.view().unwrap().published.is_empty());
}

fn fetch(attempt: u32, words: &[&str]) -> TaskSpec {
    use api::label::Task;
    let arguments = ["fetch", "--models", "/data/models"].into_iter();
    let arguments = arguments.chain(words.iter().copied()).map(str::to_owned);
    TaskSpec {
        key: TaskKey {
            task: Task::Fetch,
            attempt,
        },
        image: String::new(),
        arguments: TaskArguments(arguments.collect()),
        volumes: vec![(VolumeRole::Models, Writes::Yes)],
        network: Network::Egress,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: 0,
        gpu: None,
        deadline_seconds: 60,
    }
}

async fn ended(world: &World, key: &TaskKey) -> TaskSeen {
    let began = Instant::now();
    loop {
        let seen = world.seen().await;
        if let Some(task) = seen.task(key)
            && task.state == RunState::Exited
        {
            return task.clone();
        }
        assert!(began.elapsed() < PATIENCE, "{seen:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_once_says_how_it_ended_and_is_forgotten_when_told() {
    let world = World::new();
    let from = world.home.path().join("from");
    write_random(&from, Shape::Tiny, 9).unwrap();
    let digest = inspect(&from, None).unwrap().digest.unwrap();
    let task = fetch(
        1,
        &["--from-dir", from.to_str().unwrap(), "--digest", &digest],
    );
    world.apply(Action::RunTask(Box::new(task.clone()))).await;
    world.apply(Action::RunTask(Box::new(task.clone()))).await;
    let done = ended(&world, &task.key).await;
    assert_eq!(done.exit_code, Some(0), "{done:?}");
    let result = done.result.unwrap();
    assert_eq!(result["digest"], digest.as_str(), "{result:#}");
    assert_eq!(result["present"], false);
    let folder = digest.replace(':', "-");
    assert!(world.engine.models().join(&folder).is_dir());
    assert_eq!(world.seen().await.tasks.len(), 1);
    let view = world.engine.view().unwrap();
    assert_eq!(view.published[0].digest.to_string(), digest);
    let store = std::fs::read_to_string(world.engine.models().join(".store.json")).unwrap();
    assert!(store.contains("0123456789ab"), "{store}");

    // What was published serves.
    let spec = world.spec_of(&folder, &world.engine.models().join(&folder));
    world.ensure(&spec).await;
    world.ready(&spec).await;

    world
        .apply(Action::DeleteTask {
            task: task.key.clone(),
        })
        .await;
    assert!(world.seen().await.tasks.is_empty());
    // The next attempt finds it, and a wrong digest is refused with the code of the page.
    let again = fetch(
        2,
        &["--from-dir", from.to_str().unwrap(), "--digest", &digest],
    );
    world.apply(Action::RunTask(Box::new(again.clone()))).await;
    assert_eq!(
        ended(&world, &again.key).await.result.unwrap()["present"],
        true
    );
    let other = format!("sha256:{}", "1".repeat(64));
    let wrong = fetch(
        3,
        &["--from-dir", from.to_str().unwrap(), "--digest", &other],
    );
    world.apply(Action::RunTask(Box::new(wrong.clone()))).await;
    let refused = ended(&world, &wrong.key).await;
    assert_eq!(refused.exit_code, Some(3), "{refused:?}");
    assert_eq!(refused.result.unwrap()["reason"], "DigestMismatch");
    assert!(refused.log_tail.contains("RESULT"), "{}", refused.log_tail);
    world.engine.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_task_is_given_its_files_and_secrets_and_leaves_none() {
    use api::kinds::shared::SecretRef;
    let world = World::new();
    let from = world.home.path().join("from");
    write_random(&from, Shape::Tiny, 10).unwrap();
    let files = inspect(&from, None).unwrap().files;
    let files: Vec<_> = files
        .iter()
        .map(|file| json!({"path": file.path, "size": file.size, "sha256": file.sha256}))
        .collect();
    let manifest = json!({"baseUrl": "http://127.0.0.1:9/", "files": files}).to_string();
    let words = [
        "--manifest",
        "/run/relay/manifest.json",
        "--auth-file",
        "/run/secrets/relay/auth",
    ];
    let mut task = fetch(1, &words);
    task.files.push(StagedFile {
        name: "manifest.json".to_owned(),
        content: manifest.into_bytes(),
    });
    let secret = SecretRef {
        name: "hub".to_owned(),
        key: "token".to_owned(),
    };
    task.secrets.push((secret, "auth".to_owned()));
    let run = Action::RunTask(Box::new(task.clone()));
    let error = world.engine.apply(&world.owner, &run).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::SecretMissing), "{error}");
    let folder = world.home.path().join("secrets/hub");
    std::fs::create_dir_all(&folder).unwrap();
    files::write_whole(&folder.join("token"), b"s3cret", files::PRIVATE).unwrap();
    world.apply(run).await;
    // Nobody listens at that address.
    let cut = ended(&world, &task.key).await;
    assert_eq!(cut.exit_code, Some(6), "{cut:?}");
    assert!(!format!("{cut:?}").contains("s3cret"));
    let scratch = world.home.path().join("scratch");
    assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 0);
}

#[tokio::test]
async fn tasks_of_others_are_refused() {
    use api::label::Task;
    let world = World::new();
    for task in [Task::Train, Task::Score, Task::Compare, Task::GpuCheck] {
        let mut spec = fetch(1, &[]);
        spec.key.task = task;
        let run = Action::RunTask(Box::new(spec));
        let error = world.engine.apply(&world.owner, &run).await.unwrap_err();
        assert_eq!(
            error.reason(),
            Some(Reason::TrainingUnsupported),
            "{task:?}"
        );
    }
    let mut foreign = fetch(1, &["--oci", "x"]);
    foreign.volumes = vec![(
        VolumeRole::Foreign {
            name: "other".to_owned(),
        },
        Writes::No,
    )];
    let run = Action::RunTask(Box::new(foreign));
    let error = world.engine.apply(&world.owner, &run).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidSpec));
}
