//! The engine inside the process (control-plane 8.1): Laya's own server, once per replica, behind private loopback
//! listeners, and the model tasks as library calls. CPU only. Nothing of it survives the process: after a restart an
//! observation shows no server, and the reconcilers start them again. What lies on disk are the models alone.

mod log;
mod memory;
mod replica;
mod secrets;
mod settings;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod uid;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::reason::Reason;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::action::{Action, Ordinals, ServerSpec, VolumeRole};
use crate::error::BackendError;
use crate::observed::{Observed, Room, VolumeSeen};
use crate::{Backend, Capabilities, Child, Hint, ModelsRoom, Owner, Question};

pub use secrets::SecretFiles;
pub use settings::MODELS;

use memory::Memory;
use replica::Recipe;
use state::State;

/// Hints that may wait for one listener; one that is slower is told to look at everything.
const HINTS: usize = 1024;
/// Until listeners are told to look at everything, whatever happened.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What it can do.
const CAPABILITIES: Capabilities = Capabilities {
    name: "embedded",
    max_replicas: 1,
    gpu: false,
    split_traffic: false,
    training: false,
    images: false,
    pods: false,
};

/// What an embedded engine is told.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// Where the models lie, `<RELAY_HOME>/models`; made when it is first needed.
    pub models: PathBuf,
    /// Id of the local store, kept in the folder of models.
    pub store: String,
    /// What `SecretRef`s name.
    pub secrets: SecretFiles,
    /// A private folder in which files that a task is given lie for a moment; made when it is first needed.
    pub scratch: PathBuf,
    /// Threads that compute in each server whose spec leaves them to us; none: the cores granted.
    pub threads: Option<usize>,
}

/// The engine inside. Cheap to clone; all clones are one engine.
#[derive(Debug, Clone)]
pub struct Embedded(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: EmbeddedOptions,
    state: State,
    hints: broadcast::Sender<Hint>,
    /// Ends imports and prunes, which nobody else holds a switch of.
    cancel: volumes::Cancel,
    /// One at a time looks for the uid of the models and makes it.
    uid: Mutex<()>,
}

impl Embedded {
    /// An engine in which nothing runs.
    #[must_use]
    pub fn new(options: EmbeddedOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            state: State::default(),
            hints: broadcast::Sender::new(HINTS),
            cancel: volumes::Cancel::new(),
            uid: Mutex::new(()),
        }))
    }

    /// Stops everything that runs, and waits for it at most so long: servers finish the requests they have, a fetch keeps
    /// what it has for the next time. Nothing is started afterwards. Imports and prunes end within a second.
    pub async fn close(&self, grace: Duration) {
        self.0.cancel.cancel();
        self.0.state.close(grace);
        let inner = self.0.clone();
        // One that does not end in time ends with the process.
        let _ = tokio::time::timeout(grace, async move {
            while !inner.state.is_quiet() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Where the models lie.
    #[must_use]
    pub fn models(&self) -> &std::path::Path {
        &self.0.options.models
    }

    /// Publishes a folder of this machine among the models, as `laya fetch --from-dir` does, and mends with it what is
    /// published and damaged: its result (control-plane 13), which says `ok` or why not. `digest` and `contract` are what
    /// the folder must have. It has a thread of its own and goes on when this is dropped, until the engine is closed.
    pub async fn import(
        &self,
        folder: PathBuf,
        digest: Option<&str>,
        contract: Option<&str>,
    ) -> Value {
        let options = &self.0.options;
        let read = |text: Option<&str>| text.map(volumes::Digest::parse).transpose();
        let (digest, contract) = match (read(digest), read(contract)) {
            (Ok(digest), Ok(contract)) => (digest, contract),
            (Err(error), _) | (_, Err(error)) => {
                return json!({"ok": false, "message": error.to_string(), "code": 2});
            }
        };
        let fetch = volumes::FetchRequest {
            models: options.models.clone(),
            source: volumes::Source::Folder { path: folder },
            digest,
            contract,
            // Somebody brings good files: that sizes are right is not enough for what lies there.
            existing: volumes::Existing::Repair,
            prunable: Vec::new(),
            credential: None,
            store: Some(options.store.clone()),
            limits: volumes::Limits::default(),
        };
        self.call(volumes::Task::Fetch(fetch)).await
    }

    /// Deletes checkpoints, as `laya prune --no-wait` does: its result (control-plane 13).
    pub async fn prune(&self, delete: &[String]) -> Value {
        let delete: Result<Vec<_>, _> = delete
            .iter()
            .map(|digest| volumes::Digest::parse(digest))
            .collect();
        let delete = match delete {
            Ok(delete) => delete,
            Err(error) => {
                return json!({"ok": false, "message": error.to_string(), "code": 2});
            }
        };
        self.call(volumes::Task::Prune(volumes::PruneRequest {
            models: self.0.options.models.clone(),
            delete,
            keep: Vec::new(),
            limits: volumes::Limits {
                // The list of what may go is of now; after a wait it would be one of then.
                lock_wait: std::time::Duration::ZERO,
                ..volumes::Limits::default()
            },
        }))
        .await
    }

    /// Runs a task that somebody waits for. The process cannot end before its thread does, so it has the switch.
    async fn call(&self, task: volumes::Task) -> Value {
        let cancel = self.0.cancel.clone();
        let run = move || task.run(&volumes::Run::new(cancel, Arc::new(|_| {})));
        match tokio::task::spawn_blocking(run).await {
            Ok(outcome) => serde_json::from_str(&outcome.result).unwrap_or_default(),
            Err(error) => json!({"ok": false, "message": error.to_string(), "code": 1}),
        }
    }

    /// What lies in the folder of models. Reads directories.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn view(&self) -> std::io::Result<volumes::View> {
        volumes::view(&self.0.options.models)
    }

    fn recipe(&self, spec: &ServerSpec) -> Result<Recipe, BackendError> {
        let options = &self.0.options;
        let what = format!("revision {}", spec.revision);
        let folder = settings::folder(&what, &options.models, &spec.volume, &spec.path)?;
        let (settings, warnings) = settings::of_spec(spec, &folder, options.threads)?;
        for warning in warnings {
            tracing::warn!(revision = spec.revision, "{warning}");
        }
        let rendered = format!("{}\n{}", spec.inputs.canonical(), folder.display());
        let hash = decision::contract::Digest::of(rendered.as_bytes()).to_string();
        let hash = hash.trim_start_matches("sha256:").chars().take(16);
        Ok(Recipe {
            spec: spec.clone(),
            folder,
            settings,
            hash: hash.collect(),
        })
    }

    fn do_now(&self, owner: &Owner, action: &Action) -> Result<(), BackendError> {
        let state = &self.0.state;
        let grace = |seconds: &u32| Duration::from_secs((*seconds).into());
        match action {
            Action::EnsureVolume { role, .. } => self.ensure_volume(role),
            // There are no images and no stable address: servers are this program.
            Action::EnsureImage { .. } | Action::PointService { .. } => Ok(()),
            Action::EnsureServer { server, ordinals } => {
                let recipe = self.recipe(server)?;
                for ordinal in ordinals {
                    state.run(owner, *ordinal, recipe.clone(), self.watcher(owner))?;
                }
                Ok(())
            }
            Action::RecreateServer { server, ordinal } => {
                let recipe = self.recipe(server)?;
                state.run_anew(owner, *ordinal, recipe, self.watcher(owner))
            }
            Action::Drain { url } => {
                state.drain(url);
                Ok(())
            }
            Action::StopServer {
                revision,
                ordinals,
                grace_seconds,
            } => {
                let stop = |replica: &replica::Replica| replica.stop(grace(grace_seconds));
                state.each(owner, revision, ordinals, stop);
                Ok(())
            }
            Action::DeleteServer {
                revision,
                ordinals,
                grace_seconds,
            } => {
                let remove = |replica: &replica::Replica| replica.remove(grace(grace_seconds));
                state.each(owner, revision, ordinals, remove);
                Ok(())
            }
            Action::RunTask(spec) => {
                if state.has_task(owner, &spec.key) {
                    return Ok(());
                }
                let work = task::work(&self.0.options, spec)?;
                state.start(owner, &spec.key, work, self.watcher(owner))
            }
            Action::StopTask { task, .. } => {
                state.stop_task(owner, task);
                Ok(())
            }
            Action::DeleteTask { task } => {
                state.delete_task(owner, task);
                Ok(())
            }
            // The models of others may lie in it, so it stays; what a model leaves is pruned.
            Action::DeleteVolume { .. } => Ok(()),
        }
    }

    /// The thread of a replica calls these.
    fn watcher(&self, owner: &Owner) -> state::Watcher {
        let hints = self.0.hints.clone();
        let hint = Hint::Owner(owner.clone());
        Arc::new(move || {
            // Nobody may listen yet.
            let _ = hints.send(hint.clone());
        })
    }
}

impl Backend for Embedded {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn observe<'a>(
        &'a self,
        owner: &'a Owner,
        question: &'a Question,
    ) -> BoxFuture<'a, Result<Observed, BackendError>> {
        async move { Ok(self.look(owner, question)) }.boxed()
    }

    fn apply<'a>(
        &'a self,
        owner: &'a Owner,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        async move { self.do_now(owner, action) }.boxed()
    }

    fn changes(&self) -> BoxStream<'static, Hint> {
        let again = tokio::time::interval(LOOK_AGAIN);
        let heard = self.0.hints.subscribe();
        stream::unfold((heard, again), |(mut heard, mut again)| async move {
            let hint = tokio::select! {
                hint = heard.recv() => match hint {
                    Ok(hint) => hint,
                    Err(RecvError::Lagged(_)) => Hint::Everything,
                    // The engine is gone, and this stream ends never.
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                _ = again.tick() => Hint::Everything,
            };
            Some((hint, (heard, again)))
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
            self.0
                .state
                .tail(owner, child, limit)
                .ok_or_else(|| BackendError::Failed {
                    what: format!("logs of {} {}", owner.kind.as_str(), owner.name),
                    message: "there is no such server or task in this process".to_owned(),
                })
        }
        .boxed()
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<Owner>, BackendError>> {
        async move { Ok(self.0.state.owners()) }.boxed()
    }

    fn models_room(&self) -> BoxFuture<'_, Option<ModelsRoom>> {
        let models = self.models().to_owned();
        async move {
            let look = move || volumes::room(&models).ok();
            let (free_bytes, total_bytes) = tokio::task::spawn_blocking(look).await.ok()??;
            Some(ModelsRoom {
                volume: MODELS.to_owned(),
                free_bytes,
                total_bytes,
            })
        }
        .boxed()
    }
}

impl Embedded {
    fn look(&self, owner: &Owner, question: &Question) -> Observed {
        let state = &self.0.state;
        let volumes = question.volumes.iter();
        Observed {
            servers: state.servers(owner),
            tasks: state.tasks(owner),
            volumes: volumes.filter_map(|role| self.volume(role)).collect(),
            // No image means anything here.
            images: Vec::new(),
            strangers: Vec::new(),
            room: Memory::now().map(|memory| Room {
                engine_bytes: memory.total,
                ours_bytes: state.loaded_bytes(),
                available_bytes: memory.available,
            }),
            gpu_memory_bytes: Some(0),
            complete: true,
        }
    }
}

/// Whether an ordinal is meant.
fn is_meant(ordinals: &Ordinals, ordinal: u32) -> bool {
    match ordinals {
        Ordinals::All => true,
        Ordinals::Only(only) => only.contains(&ordinal),
    }
}

impl Embedded {
    fn ensure_volume(&self, role: &VolumeRole) -> Result<(), BackendError> {
        let what = "folder of models".to_owned();
        if !settings::is_models(role) {
            return Err(BackendError::Refused {
                what: format!("volume {role:?}"),
                reason: Reason::TrainingUnsupported,
                message: "the embedded engine keeps models only".to_owned(),
            });
        }
        let failed = |error: std::io::Error| BackendError::Failed {
            what: what.clone(),
            message: format!("cannot make {}: {error}", self.models().display()),
        };
        files::make_private_folder(self.models()).map_err(failed)?;
        uid::of(self.models(), &self.0.uid)
            .map(|_| ())
            .map_err(failed)
    }

    fn volume(&self, role: &VolumeRole) -> Option<VolumeSeen> {
        if !settings::is_models(role) || !self.models().is_dir() {
            return None;
        }
        // Another folder in its place is another volume: what was recorded of it does not hold.
        match uid::of(self.models(), &self.0.uid) {
            Ok(uid) => Some(VolumeSeen {
                role: role.clone(),
                name: MODELS.to_owned(),
                uid,
                bound: true,
            }),
            // It is as if it were not there: whoever wants it is told why when it is to be made.
            Err(error) => {
                tracing::warn!(%error, "the folder of models has no uid");
                None
            }
        }
    }
}
