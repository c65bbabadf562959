//! An engine in memory: what a reconciler sees and does without one. Servers run where a test says that they answer, tasks
//! end as a test says, and everything can be made to fail. Actions are idempotent, as those of real engines are.

mod apply;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::backend::{
    Action, Backend, BackendError, Capabilities, Child, Hint, ImageSeen, ImageState, Observed,
    Owner, Progress, Question, Room, RunState, ServerSeen, ServerSpec, Stranger, TaskKey, TaskSeen,
    TaskSpec, VolumeRole, VolumeSeen,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::broadcast;

pub use tasks::{Script, argument, arguments, fetched, refused};

/// How the whole engine fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outage {
    /// It refuses connections.
    Unavailable,
    /// It refuses access.
    Forbidden,
    /// It never answers.
    Hangs,
    /// It answers `observe`, and not with everything.
    Incomplete,
}

/// What a task does, by its owner and its spec.
type Scripted = dyn Fn(&Owner, &TaskSpec) -> Script + Send + Sync;
/// Where a replica answers.
type Address = dyn Fn(&Owner, &ServerSpec, u32) -> Option<String> + Send + Sync;
/// The time of the engine.
type Time = dyn Fn() -> Timestamp + Send + Sync;

/// An engine in memory. Cheap to share by `Arc`; outlives a controller that is killed.
pub struct FakeBackend {
    capabilities: Capabilities,
    state: Mutex<State>,
    hints: broadcast::Sender<Hint>,
}

struct State {
    children: HashMap<String, Children>,
    /// By role, and on engines with a volume per model by the owner's uid too.
    volumes: BTreeMap<(String, String), VolumeSeen>,
    /// Digests that are published in volumes of models, by the volume's uid.
    published: BTreeMap<String, BTreeSet<String>>,
    /// Digests that are marked to stay.
    kept: BTreeSet<String>,
    images: HashMap<String, ImageState>,
    strangers: Vec<Stranger>,
    room: Option<Room>,
    gpu_memory_bytes: Option<u64>,
    outage: Option<Outage>,
    /// What the next actions of a name answer.
    failures: HashMap<&'static str, Vec<BackendError>>,
    script: Arc<Scripted>,
    address: Arc<Address>,
    time: Arc<Time>,
    applied: Vec<(Owner, Action)>,
    counter: u64,
}

struct Children {
    owner: Owner,
    servers: Vec<ServerSeen>,
    tasks: Vec<(TaskSpec, TaskSeen)>,
}

impl fmt::Debug for FakeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeBackend")
            .field("engine", &self.capabilities.name)
            .finish_non_exhaustive()
    }
}

impl FakeBackend {
    /// One that can do this. Images are there, tasks do what they are called for, replicas have no address.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Arc<Self> {
        let (hints, _) = broadcast::channel(1024);
        Arc::new(Self {
            capabilities,
            state: Mutex::new(State {
                children: HashMap::new(),
                volumes: BTreeMap::new(),
                published: BTreeMap::new(),
                kept: BTreeSet::new(),
                images: HashMap::new(),
                strangers: Vec::new(),
                room: None,
                gpu_memory_bytes: None,
                outage: None,
                failures: HashMap::new(),
                script: Arc::new(|_, _| Script::Obeys),
                address: Arc::new(|_, _, _| None),
                time: Arc::new(Timestamp::now),
                applied: Vec::new(),
                counter: 0,
            }),
            hints,
        })
    }

    /// One like a Docker engine.
    #[must_use]
    pub fn docker() -> Arc<Self> {
        Self::new(Capabilities {
            name: "docker",
            max_replicas: 16,
            gpu: true,
            split_traffic: true,
            training: true,
            images: true,
            pods: false,
        })
    }

    /// One like the embedded engine.
    #[must_use]
    pub fn embedded() -> Arc<Self> {
        Self::new(Capabilities {
            name: "embedded",
            max_replicas: 1,
            gpu: false,
            split_traffic: false,
            training: false,
            images: false,
            pods: false,
        })
    }

    /// One like a cluster: a volume per model.
    #[must_use]
    pub fn kubernetes() -> Arc<Self> {
        Self::new(Capabilities {
            name: "kubernetes",
            max_replicas: 64,
            gpu: true,
            split_traffic: true,
            training: true,
            images: false,
            pods: true,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tasks that begin from now on do.
    pub fn script(&self, script: impl Fn(&Owner, &TaskSpec) -> Script + Send + Sync + 'static) {
        self.state().script = Arc::new(script);
    }

    /// Where replicas that are made from now on answer.
    pub fn addresses(
        &self,
        address: impl Fn(&Owner, &ServerSpec, u32) -> Option<String> + Send + Sync + 'static,
    ) {
        self.state().address = Arc::new(address);
    }

    /// What time it is for the engine.
    pub fn time(&self, time: impl Fn() -> Timestamp + Send + Sync + 'static) {
        self.state().time = Arc::new(time);
    }

    /// The whole engine fails so, or no more.
    pub fn outage(&self, outage: Option<Outage>) {
        self.state().outage = outage;
        let _ = self.hints.send(Hint::Everything);
    }

    /// The next action of this name answers so.
    pub fn fail_next(&self, action: &'static str, error: BackendError) {
        self.state().failures.entry(action).or_default().push(error);
    }

    /// What is known of an image; one that nobody set is there.
    pub fn image(&self, name: &str, state: ImageState) {
        self.state().images.insert(name.to_owned(), state);
        let _ = self.hints.send(Hint::Everything);
    }

    /// What has our names and is not ours.
    pub fn strangers(&self, strangers: Vec<Stranger>) {
        self.state().strangers = strangers;
        let _ = self.hints.send(Hint::Everything);
    }

    /// Room for servers, and memory of the GPU.
    pub fn room(&self, room: Option<Room>, gpu_memory_bytes: Option<u64>) {
        let mut state = self.state();
        state.room = room;
        state.gpu_memory_bytes = gpu_memory_bytes;
    }

    /// All volumes are gone with what was in them.
    pub fn lose_volumes(&self) {
        let mut state = self.state();
        state.volumes.clear();
        state.published.clear();
        drop(state);
        let _ = self.hints.send(Hint::Everything);
    }

    /// A volume that is there already, such as one that is not ours.
    pub fn put_volume(&self, role: VolumeRole, name: &str) {
        let mut state = self.state();
        let uid = state.next_uid("volume");
        let key = (format!("{role:?}"), String::new());
        let seen = VolumeSeen {
            role,
            name: name.to_owned(),
            uid,
            bound: true,
        };
        state.volumes.insert(key, seen);
        drop(state);
        let _ = self.hints.send(Hint::Everything);
    }

    /// Whether volumes are bound.
    pub fn bind_volumes(&self, bound: bool) {
        for volume in self.state().volumes.values_mut() {
            volume.bound = bound;
        }
        let _ = self.hints.send(Hint::Everything);
    }

    /// Digests that are published in any volume.
    #[must_use]
    pub fn published(&self) -> BTreeSet<String> {
        self.state().published.values().flatten().cloned().collect()
    }

    /// Puts a digest into the volume of all models, or takes it out.
    pub fn set_published(&self, digest: &str, there: bool) {
        let mut state = self.state();
        for digests in state.published.values_mut() {
            if there {
                digests.insert(digest.to_owned());
            } else {
                digests.remove(digest);
            }
        }
    }

    /// Digests that are marked to stay.
    #[must_use]
    pub fn kept(&self) -> BTreeSet<String> {
        self.state().kept.clone()
    }

    /// Everything that was done, in order.
    #[must_use]
    pub fn applied(&self) -> Vec<(Owner, Action)> {
        self.state().applied.clone()
    }

    /// What an owner has, as `observe` would show it.
    #[must_use]
    pub fn children(&self, uid: &str) -> (Vec<ServerSeen>, Vec<TaskSeen>) {
        let state = self.state();
        let found = state.children.get(uid);
        found.map_or_else(Default::default, |children| {
            let tasks = children.tasks.iter().map(|(_, seen)| seen.clone());
            (children.servers.clone(), tasks.collect())
        })
    }

    /// Specs of the tasks that an owner has.
    #[must_use]
    pub fn task_specs(&self, uid: &str) -> Vec<TaskSpec> {
        let state = self.state();
        let found = state.children.get(uid);
        found.map_or_else(Vec::new, |children| {
            children
                .tasks
                .iter()
                .map(|(spec, _)| spec.clone())
                .collect()
        })
    }

    /// Changes a replica as the world does: a crash, another address, tampering.
    pub fn change_server(
        &self,
        uid: &str,
        revision: &str,
        ordinal: u32,
        change: impl FnOnce(&mut ServerSeen),
    ) {
        let mut state = self.state();
        let children = state.children.get_mut(uid).expect("the owner has children");
        let server = children
            .servers
            .iter_mut()
            .find(|server| server.revision == revision && server.ordinal == ordinal);
        change(server.expect("the replica is there"));
        let hint = Hint::Owner(children.owner.clone());
        drop(state);
        let _ = self.hints.send(hint);
    }

    /// A task tells how far it is.
    pub fn progress(&self, uid: &str, key: &TaskKey, bytes: u64, total: u64) {
        self.change_task(uid, key, |task| {
            task.progress = Some(Progress {
                phase: "fetch".to_owned(),
                bytes: Some(bytes),
                total: Some(total),
                ..Progress::default()
            });
        });
    }

    /// A task that runs ends so.
    pub fn end_task(&self, uid: &str, key: &TaskKey, code: i32, result: Option<Value>) {
        let now = self.now();
        self.change_task(uid, key, |task| {
            task.state = RunState::Exited;
            task.finished_at = Some(now);
            task.exit_code = Some(code);
            task.result = result;
        });
    }

    /// Changes a task as the world does.
    pub fn change_task(&self, uid: &str, key: &TaskKey, change: impl FnOnce(&mut TaskSeen)) {
        let mut state = self.state();
        let children = state.children.get_mut(uid).expect("the owner has children");
        let task = children.tasks.iter_mut().find(|(_, seen)| seen.key == *key);
        change(&mut task.expect("the task is there").1);
        let hint = Hint::Owner(children.owner.clone());
        drop(state);
        let _ = self.hints.send(hint);
    }

    /// A full look is due.
    pub fn hint(&self, hint: Hint) {
        let _ = self.hints.send(hint);
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let time = self.state().time.clone();
        time()
    }

    /// Why the engine as a whole does not answer, if it does not. Never returns where it hangs.
    async fn answers(&self, what: &str) -> Result<(), BackendError> {
        let outage = self.state().outage.clone();
        match outage {
            None | Some(Outage::Incomplete) => Ok(()),
            Some(Outage::Unavailable) => Err(BackendError::Unavailable {
                what: what.to_owned(),
                address: "memory".to_owned(),
                message: "connection refused".to_owned(),
            }),
            Some(Outage::Forbidden) => Err(BackendError::Forbidden {
                what: what.to_owned(),
                message: "permission denied".to_owned(),
            }),
            Some(Outage::Hangs) => std::future::pending().await,
        }
    }

    fn look(&self, owner: &Owner, question: &Question) -> Observed {
        let state = self.state();
        let (servers, tasks) =
            state
                .children
                .get(&owner.uid)
                .map_or_else(Default::default, |children| {
                    let tasks = children.tasks.iter().map(|(_, seen)| seen.clone());
                    (children.servers.clone(), tasks.collect())
                });
        let volumes = question.volumes.iter();
        let volumes = volumes.filter_map(|role| state.volume(&self.capabilities, owner, role));
        let images = question.images.iter().map(|name| ImageSeen {
            name: name.clone(),
            state: state
                .images
                .get(name)
                .cloned()
                .unwrap_or_else(|| ImageState::Present {
                    id: format!("sha256:{name}"),
                }),
        });
        Observed {
            servers,
            tasks,
            volumes: volumes.collect(),
            images: images.collect(),
            strangers: state.strangers.clone(),
            room: state.room,
            gpu_memory_bytes: state.gpu_memory_bytes,
            complete: state.outage != Some(Outage::Incomplete),
        }
    }
}

impl State {
    fn next_uid(&mut self, what: &str) -> String {
        self.counter += 1;
        format!("{what}-{}", self.counter)
    }

    fn volume_key(
        capabilities: &Capabilities,
        owner: &Owner,
        role: &VolumeRole,
    ) -> (String, String) {
        let own = capabilities.pods && *role == VolumeRole::Models;
        let whose = if own {
            owner.uid.clone()
        } else {
            String::new()
        };
        (format!("{role:?}"), whose)
    }

    fn volume(
        &self,
        capabilities: &Capabilities,
        owner: &Owner,
        role: &VolumeRole,
    ) -> Option<VolumeSeen> {
        self.volumes
            .get(&Self::volume_key(capabilities, owner, role))
            .cloned()
    }
}

impl Backend for FakeBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn observe<'a>(
        &'a self,
        owner: &'a Owner,
        question: &'a Question,
    ) -> BoxFuture<'a, Result<Observed, BackendError>> {
        async move {
            self.answers("observe").await?;
            Ok(self.look(owner, question))
        }
        .boxed()
    }

    fn apply<'a>(
        &'a self,
        owner: &'a Owner,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.answers(action.name()).await?;
            self.apply_now(owner, action)?;
            let _ = self.hints.send(Hint::Owner(owner.clone()));
            Ok(())
        }
        .boxed()
    }

    fn changes(&self) -> BoxStream<'static, Hint> {
        let hints = self.hints.subscribe();
        stream::unfold(hints, |mut hints| async {
            let hint = match hints.recv().await {
                Ok(hint) => hint,
                Err(broadcast::error::RecvError::Lagged(_)) => Hint::Everything,
                // The engine is gone with its test.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            };
            Some((hint, hints))
        })
        .boxed()
    }

    fn logs<'a>(
        &'a self,
        owner: &'a Owner,
        child: &'a Child,
        limit: usize,
    ) -> BoxFuture<'a, Result<String, BackendError>> {
        async move {
            self.answers("logs").await?;
            let text = format!("{} {}: {child:?}", owner.kind, owner.name);
            Ok(text.chars().take(limit).collect())
        }
        .boxed()
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<Owner>, BackendError>> {
        async move {
            self.answers("owners").await?;
            let state = self.state();
            let with_children =
                |children: &&Children| !(children.servers.is_empty() && children.tasks.is_empty());
            let found = state.children.values().filter(with_children);
            Ok(found.map(|children| children.owner.clone()).collect())
        }
        .boxed()
    }
}
