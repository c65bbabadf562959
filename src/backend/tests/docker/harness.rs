//! A back end with an instance of its own on the engine under test. Whatever the instance made is gone at the end, on panic
//! too, and what the back end itself left behind is a failed test.

use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::{Duration, Instant};

use api::group::Kind;
use api::kinds::laya_server::{ServerApi, Serving};
use api::kinds::shared::{Device, DevicePolicy, Quantity, ResourceAmounts, Resources};
use api::label::Task;
use backend::docker::{Docker, Instance, Options};
use backend::{
    Action, Backend, BackendError, ImageState, Network, Observed, Owner, Question, RENDER_VERSION,
    RevisionInputs, ServerSeen, ServerSpec, TaskArguments, TaskKey, TaskSeen, TaskSpec, VolumeRole,
};

use crate::instance::{OnEngine, random_instance};
pub(crate) use crate::instance::{docker_at, fault_image, host};

/// Longest wait for anything a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A back end under test.
pub(crate) struct Run {
    pub(crate) docker: Docker,
    on: OnEngine,
}

impl Deref for Run {
    type Target = OnEngine;

    fn deref(&self) -> &OnEngine {
        &self.on
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut OnEngine {
        &mut self.on
    }
}

impl Run {
    /// On the engine under test.
    pub(crate) async fn new() -> Self {
        Self::at(&host(), |options| options).await
    }

    /// On an engine, with other options.
    pub(crate) async fn at(host: &str, change: impl FnOnce(Options) -> Options) -> Self {
        Self::again(host, &random_instance(), change).await
    }

    /// As another process of the same instance.
    pub(crate) async fn again(
        host: &str,
        instance: &Instance,
        change: impl FnOnce(Options) -> Options,
    ) -> Self {
        let options = Options {
            host: Some(host.to_owned()),
            pull_pause: Duration::ZERO,
            ..Options::new(instance.clone())
        };
        let docker = Docker::connect(change(options)).await.unwrap();
        Self {
            docker,
            on: OnEngine::new(host, instance),
        }
    }

    /// Does one thing.
    pub(crate) async fn act(&self, owner: &Owner, action: Action) -> Result<(), BackendError> {
        self.docker.apply(owner, &action).await
    }

    /// Does one thing that must be done.
    pub(crate) async fn done(&self, owner: &Owner, action: Action) {
        let what = action.target();
        let done = self.act(owner, action).await;
        done.unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    /// The models volume is there.
    pub(crate) async fn with_models(&self, owner: &Owner) {
        let role = VolumeRole::Models;
        self.done(
            owner,
            Action::EnsureVolume {
                role,
                size_bytes: 0,
            },
        )
        .await;
    }

    pub(crate) async fn observe(&self, owner: &Owner) -> Observed {
        let question = Question {
            images: Vec::new(),
            volumes: vec![VolumeRole::Models],
        };
        self.docker.observe(owner, &question).await.unwrap()
    }

    /// Looks until something is so, and gives it; says what was seen last when it never is.
    pub(crate) async fn until<T>(
        &self,
        owner: &Owner,
        found: impl Fn(&Observed) -> Option<T>,
    ) -> T {
        let started = Instant::now();
        loop {
            let seen = self.observe(owner).await;
            if let Some(found) = found(&seen) {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "last seen: {seen:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A replica, once it is so.
    pub(crate) async fn server(
        &self,
        owner: &Owner,
        ordinal: u32,
        so: impl Fn(&ServerSeen) -> bool,
    ) -> ServerSeen {
        self.until(owner, |seen| {
            let found = seen.servers.iter().find(|server| server.ordinal == ordinal);
            found.filter(|server| so(server)).cloned()
        })
        .await
    }

    /// A task, once it is so.
    pub(crate) async fn task(
        &self,
        owner: &Owner,
        key: &TaskKey,
        so: impl Fn(&TaskSeen) -> bool,
    ) -> TaskSeen {
        self.until(owner, |seen| {
            seen.task(key).filter(|task| so(task)).cloned()
        })
        .await
    }

    /// What is known of an image.
    pub(crate) async fn image(&self, owner: &Owner, image: &str) -> ImageState {
        let question = Question {
            images: vec![image.to_owned()],
            volumes: Vec::new(),
        };
        let seen = self.docker.observe(owner, &question).await.unwrap();
        seen.image(image).cloned().unwrap()
    }

    /// Name of the replica of a spec.
    pub(crate) fn name(&self, owner: &Owner, server: &ServerSpec, ordinal: u32) -> String {
        self.instance.server(owner, &server.revision, ordinal)
    }
}

/// An object.
pub(crate) fn owner(kind: Kind, name: &str) -> Owner {
    Owner {
        kind,
        namespace: "laptop".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
    }
}

/// A server of the fault image with a limit of memory.
pub(crate) fn server(image: &str, memory: &str) -> ServerSpec {
    let inputs = RevisionInputs {
        owner_uid: "uid-of-main".to_owned(),
        digest: format!("sha256:{}", "ab".repeat(32)),
        contract: None,
        image: image.to_owned(),
        server_api: ServerApi::Relay,
        device: Device::Auto,
        device_policy: DevicePolicy::Require,
        gpu: None,
        resources: Some(Resources {
            requests: None,
            limits: Some(ResourceAmounts {
                cpu: None,
                memory: Some(Quantity(memory.to_owned())),
            }),
        }),
        serving: Serving::default(),
        pod: None,
        render_version: RENDER_VERSION,
    };
    ServerSpec {
        revision: inputs.revision(),
        inputs,
        model: "english".to_owned(),
        volume: VolumeRole::Models,
        path: format!("sha256-{}", "ab".repeat(32)),
        checkpoint_bytes: 1 << 20,
        image_id: None,
        drain_seconds: 1,
        wants_gpu: false,
    }
}

/// These replicas are there.
pub(crate) fn ensure(server: &ServerSpec, ordinals: &[u32]) -> Action {
    Action::EnsureServer {
        server: Box::new(server.clone()),
        ordinals: ordinals.to_vec(),
    }
}

/// A task of the fault image that does what its arguments say.
pub(crate) fn task(attempt: u32, arguments: &[&str]) -> TaskSpec {
    let mut all = vec!["task".to_owned()];
    all.extend(arguments.iter().map(|word| (*word).to_owned()));
    TaskSpec {
        key: TaskKey {
            task: Task::Verify,
            attempt,
        },
        image: fault_image(),
        arguments: TaskArguments(all),
        volumes: Vec::new(),
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: 32 << 20,
        gpu: None,
        deadline_seconds: 60,
    }
}

/// Status of a path of a server, by `curl`, which is what a person has.
pub(crate) fn status(url: &str, path: &str) -> u16 {
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "5", "--output", "/dev/null"])
        .args(["--write-out", "%{http_code}", &format!("{url}{path}")])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap_or(0)
}

/// Waits until a path of a server answers 200.
pub(crate) async fn answers(url: &str, path: &str) {
    let started = Instant::now();
    while status(url, path) != 200 {
        assert!(
            started.elapsed() < PATIENCE,
            "{url}{path} never answered 200"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
