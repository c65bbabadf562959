//! Everything that runs in the engine, by owner. Locks are held for moments only; nothing waits under them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::action::{Ordinals, TaskKey};
use crate::error::BackendError;
use crate::observed::{ServerSeen, TaskSeen};
use crate::{Child, Owner};

use super::is_meant;
use super::replica::{Recipe, Replica, Wish};
use super::task::Task;

/// Called after each change of a child.
pub(super) type Watcher = Arc<dyn Fn() + Send + Sync>;

/// Most replicas of one owner, those that stop counted: more is a mistake, and each may hold a model.
const REPLICAS: usize = 8;
/// Most tasks of one owner, those that ended counted.
const TASKS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct State {
    owners: Arc<Mutex<Owners>>,
    closed: AtomicBool,
}

/// By uid.
type Owners = BTreeMap<String, Owned>;

#[derive(Debug)]
struct Owned {
    owner: Owner,
    /// By revision and ordinal.
    servers: BTreeMap<(String, u32), Arc<Replica>>,
    /// The earliest started first.
    tasks: Vec<(TaskKey, Arc<Task>)>,
}

impl Owned {
    fn new(owner: &Owner) -> Self {
        Self {
            owner: owner.clone(),
            servers: BTreeMap::new(),
            tasks: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.tasks.is_empty()
    }

    fn task(&self, key: &TaskKey) -> Option<&Arc<Task>> {
        self.tasks
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, task)| task)
    }
}

impl State {
    /// A replica runs, from this recipe.
    pub(super) fn run(
        &self,
        owner: &Owner,
        ordinal: u32,
        recipe: Recipe,
        changed: Watcher,
    ) -> Result<(), BackendError> {
        self.replica(owner, ordinal, recipe, changed, Replica::run)
    }

    /// A replica is stopped, if it runs, and started from this recipe.
    pub(super) fn run_anew(
        &self,
        owner: &Owner,
        ordinal: u32,
        recipe: Recipe,
        changed: Watcher,
    ) -> Result<(), BackendError> {
        self.replica(owner, ordinal, recipe, changed, Replica::run_anew)
    }

    fn replica(
        &self,
        owner: &Owner,
        ordinal: u32,
        recipe: Recipe,
        changed: Watcher,
        known: impl FnOnce(&Replica, Recipe),
    ) -> Result<(), BackendError> {
        let failed = |message: String| BackendError::Failed {
            what: format!("server {} revision {}", owner.name, recipe.spec.revision),
            message,
        };
        if self.closed.load(Ordering::Relaxed) {
            return Err(failed("the process ends".to_owned()));
        }
        let mut owners = self.lock();
        let owned = owners
            .entry(owner.uid.clone())
            .or_insert_with(|| Owned::new(owner));
        let key = (recipe.spec.revision.clone(), ordinal);
        if let Some(replica) = owned.servers.get(&key) {
            known(replica, recipe);
            return Ok(());
        }
        if owned.servers.len() >= REPLICAS {
            return Err(failed(format!(
                "it has {REPLICAS} replicas already; wait until they stop"
            )));
        }
        let name = format!("laya-{}", key.0);
        let replica = Arc::new(Replica::new(ordinal, recipe));
        let watched = replica.clone();
        let (all, uid, mine) = (self.owners.clone(), owner.uid.clone(), key.clone());
        let gone = move |replica: &Replica| forget(&all, &uid, &mine, replica);
        let started = std::thread::Builder::new().name(name).spawn(move || {
            watched.watch(&*changed, &gone);
            changed();
        });
        started.map_err(|error| BackendError::Failed {
            what: format!("server {} revision {}", owner.name, key.0),
            message: format!("cannot start a thread: {error}"),
        })?;
        owned.servers.insert(key, replica);
        Ok(())
    }

    /// Does something to replicas of a revision.
    pub(super) fn each(
        &self,
        owner: &Owner,
        revision: &str,
        ordinals: &Ordinals,
        act: impl Fn(&Replica),
    ) {
        let owners = self.lock();
        let servers = owners.get(&owner.uid).map(|owned| &owned.servers);
        for ((of, ordinal), replica) in servers.into_iter().flatten() {
            if of == revision && is_meant(ordinals, *ordinal) {
                act(replica);
            }
        }
    }

    /// The server at an address turns requests away.
    pub(super) fn drain(&self, url: &str) {
        self.all(|replica| replica.drain(url));
    }

    /// What runs for an owner, by revision and number.
    pub(super) fn servers(&self, owner: &Owner) -> Vec<ServerSeen> {
        let owners = self.lock();
        let servers = owners.get(&owner.uid).map(|owned| &owned.servers);
        servers
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|replica| replica.seen())
            .collect()
    }

    /// The last output of a child.
    pub(super) fn tail(&self, owner: &Owner, child: &Child, limit: usize) -> Option<String> {
        let owners = self.lock();
        let owned = owners.get(&owner.uid)?;
        match child {
            Child::Server { revision, ordinal } => {
                let replica = owned.servers.get(&(revision.clone(), *ordinal))?;
                Some(replica.tail(limit))
            }
            Child::Task(key) => Some(owned.task(key)?.tail(limit)),
        }
    }

    /// A task runs, or has run.
    pub(super) fn start(
        &self,
        owner: &Owner,
        key: &TaskKey,
        work: volumes::Task,
        changed: Watcher,
    ) -> Result<(), BackendError> {
        let failed = |message: String| BackendError::Failed {
            what: format!("task {key} of {}", owner.name),
            message,
        };
        if self.closed.load(Ordering::Relaxed) {
            return Err(failed("the process ends".to_owned()));
        }
        let mut owners = self.lock();
        let owned = owners
            .entry(owner.uid.clone())
            .or_insert_with(|| Owned::new(owner));
        if owned.task(key).is_some() {
            return Ok(());
        }
        if owned.tasks.len() >= TASKS {
            return Err(failed(format!("{TASKS} tasks are kept already")));
        }
        let task = Arc::new(Task::new(key.clone()));
        let run = task.clone();
        let (all, uid) = (self.owners.clone(), owner.uid.clone());
        let started = std::thread::Builder::new()
            .name(format!("task-{}", key.task.as_str()))
            .spawn(move || {
                run.run(&work, &changed);
                forget_tasks(&all, &uid);
                changed();
            });
        started.map_err(|error| failed(format!("cannot start a thread: {error}")))?;
        owned.tasks.push((key.clone(), task));
        Ok(())
    }

    /// Whether a task is known here, running or not.
    pub(super) fn has_task(&self, owner: &Owner, key: &TaskKey) -> bool {
        let owners = self.lock();
        owners
            .get(&owner.uid)
            .is_some_and(|owned| owned.task(key).is_some())
    }

    /// A task is told to end.
    pub(super) fn stop_task(&self, owner: &Owner, key: &TaskKey) {
        let owners = self.lock();
        let task = owners.get(&owner.uid).and_then(|owned| owned.task(key));
        if let Some(task) = task
            && task.runs()
        {
            task.stop();
        }
    }

    /// A task is forgotten, once it ended.
    pub(super) fn delete_task(&self, owner: &Owner, key: &TaskKey) {
        let is_over = {
            let owners = self.lock();
            let task = owners.get(&owner.uid).and_then(|owned| owned.task(key));
            task.is_some_and(|task| task.is_over_or_goes())
        };
        if is_over {
            forget_tasks(&self.owners, &owner.uid);
        }
    }

    /// Tasks of an owner, the earliest first.
    pub(super) fn tasks(&self, owner: &Owner) -> Vec<TaskSeen> {
        let owners = self.lock();
        let tasks = owners.get(&owner.uid).map(|owned| &owned.tasks);
        tasks
            .into_iter()
            .flatten()
            .map(|(_, task)| task.seen())
            .collect()
    }

    /// Who has something here.
    pub(super) fn owners(&self) -> Vec<Owner> {
        self.lock()
            .values()
            .map(|owned| owned.owner.clone())
            .collect()
    }

    /// Limits of the servers that hold a model, in bytes.
    pub(super) fn loaded_bytes(&self) -> u64 {
        let mut bytes: u64 = 0;
        self.all(|replica| {
            if replica.is_loaded() {
                bytes = bytes.saturating_add(replica.recipe().spec.memory_bytes());
            }
        });
        bytes
    }

    /// Tells everything to go, and starts nothing any more.
    pub(super) fn close(&self, grace: Duration) {
        self.closed.store(true, Ordering::Relaxed);
        self.all(|replica| replica.remove(grace));
        let owners = self.lock();
        for (_, task) in owners.values().flat_map(|owned| &owned.tasks) {
            task.stop();
        }
    }

    /// Whether nothing runs.
    pub(super) fn is_quiet(&self) -> bool {
        let owners = self.lock();
        let rests = |owned: &Owned| {
            owned.servers.is_empty() && !owned.tasks.iter().any(|(_, task)| task.runs())
        };
        owners.values().all(rests)
    }

    fn all<T>(&self, mut act: impl FnMut(&Replica) -> T) {
        let owners = self.lock();
        for replica in owners.values().flat_map(|owned| owned.servers.values()) {
            act(replica);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Owners> {
        lock(&self.owners)
    }
}

fn lock(owners: &Mutex<Owners>) -> MutexGuard<'_, Owners> {
    // Whole between any two statements.
    owners.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets a replica that was to go, unless it is wanted again by now.
fn forget(owners: &Mutex<Owners>, uid: &str, key: &(String, u32), replica: &Replica) -> bool {
    let mut owners = lock(owners);
    if !matches!(replica.wish(), Wish::Remove { .. }) {
        return false;
    }
    if let Some(owned) = owners.get_mut(uid) {
        owned.servers.remove(key);
        if owned.is_empty() {
            owners.remove(uid);
        }
    }
    true
}

/// Forgets tasks that ended and that nobody wants to know of.
fn forget_tasks(owners: &Mutex<Owners>, uid: &str) {
    let mut owners = lock(owners);
    if let Some(owned) = owners.get_mut(uid) {
        owned.tasks.retain(|(_, task)| !task.is_unwanted());
        if owned.is_empty() {
            owners.remove(uid);
        }
    }
}
