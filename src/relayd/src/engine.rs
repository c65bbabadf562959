//! The engine of `relayd local`: chosen, put together for the reconcilers, and left as it is to be left when the process
//! ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::kinds::shared::SecretRef;
use backend::docker::{self, Docker, Expected, Instance, Proxies};
use backend::embedded::{Embedded, EmbeddedOptions, SecretFiles};
use backend::{
    Action, Backend, BackendError, ModelsView, Ordinals, Owner, Question, RunState, ServerSeen,
};
use controller::reports::RevisionReader;
use controller::{Doomed, Engine, OwnAddresses, Tombstones, UnclaimedOwners};
use files::Places;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use objects::ObjectStore;
use serde_json::Value;

use crate::ending::Servers;
use crate::engine_choice::{BackendName, Choice, first_up, settled};
use crate::engine_settings::EngineSettings;
use crate::error::RelaydError;

/// For an engine to answer at the first start.
const FIRST_WORD: Duration = Duration::from_secs(3);
/// Digits of the store's id on what is made on an engine (control-plane 1.4).
const INSTANCE_DIGITS: usize = 12;
/// For servers to finish what they have, when everything ends.
const STOP_WAIT: Duration = Duration::from_secs(15);
/// Between two looks whether they have.
const STOP_LOOK: Duration = Duration::from_millis(100);

/// The engine of one user.
#[derive(Debug, Clone)]
pub(crate) struct LocalEngine {
    pub(crate) choice: Choice,
    /// What reconcilers are given.
    pub(crate) parts: Engine,
    /// The one inside, where it is that.
    pub(crate) inside: Option<Embedded>,
    /// Docker, where it is that.
    pub(crate) docker: Option<Arc<Docker>>,
}

/// What reconcilers read beside the engine.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) tombstones: Arc<dyn Tombstones>,
    pub(crate) reports: Arc<dyn RevisionReader>,
}

impl LocalEngine {
    /// Decides which engine it is, keeps that with the objects, and puts it together.
    pub(crate) async fn choose(
        settings: &EngineSettings,
        store: &ObjectStore,
        places: &Places,
        reports: Arc<dyn RevisionReader>,
    ) -> Result<Self, RelaydError> {
        let asked = RelaydError::start("read which back end is in use");
        let kept = store.backend().await.map_err(asked)?;
        let choice = match settled(settings.backend, kept.as_deref()) {
            Some(choice) => choice,
            None => first_up(docker_answers(store.id(), places).await),
        };
        if kept.as_deref() != Some(choice.backend.as_str()) {
            let noted = store.set_backend(choice.backend.as_str()).await;
            noted.map_err(RelaydError::start("keep which back end is in use"))?;
        }
        tracing::info!(
            backend = choice.backend.as_str(),
            chosen = choice.by.as_str(),
            "models and servers live there"
        );
        let tombstones = Arc::new(StoreTombstones(store.clone()));
        let beside = Beside {
            tombstones,
            reports,
        };
        Self::of(choice, settings, store.id(), places, beside)
    }

    /// Puts the engine of a choice together.
    pub(crate) fn of(
        choice: Choice,
        settings: &EngineSettings,
        store: &str,
        places: &Places,
        beside: Beside,
    ) -> Result<Self, RelaydError> {
        let mut inside = None;
        let mut docker = None;
        let backend: Arc<dyn Backend> = match choice.backend {
            BackendName::Docker => {
                let engine = Arc::new(self::docker(store, places)?);
                docker = Some(engine.clone());
                engine
            }
            BackendName::Embedded | BackendName::Kubernetes => {
                let engine = embedded(store, places);
                inside = Some(engine.clone());
                Arc::new(engine)
            }
        };
        Ok(Self {
            choice,
            parts: Engine {
                backend,
                laya_image: settings.laya_image.clone(),
                keep_trained: settings.keep_trained,
                tombstones: beside.tombstones,
                unclaimed: UnclaimedOwners::default(),
                reports: beside.reports,
                own_addresses: OwnAddresses::default(),
                doomed: Doomed::default(),
            },
            inside,
            docker,
        })
    }

    /// Publishes a folder of this machine among the models: the result of the fetch (control-plane 13).
    pub(crate) async fn import(
        &self,
        folder: PathBuf,
        expected: Expected<'_>,
    ) -> Result<Value, BackendError> {
        let Expected { digest, contract } = expected;
        match (&self.inside, &self.docker) {
            (Some(inside), _) => Ok(inside.import(folder, digest, contract).await),
            (None, Some(docker)) => {
                let image = &self.parts.laya_image;
                docker.import(image, &folder, expected).await
            }
            (None, None) => Err(no_engine(format!("import {}", folder.display()))),
        }
    }

    /// What lies in the volume of models now; on Docker a task may have to look for it.
    pub(crate) async fn look_at_models(&self) -> Result<ModelsView, BackendError> {
        let what = || "look into the models volume".to_owned();
        match (&self.inside, &self.docker) {
            (Some(inside), _) => view_inside(inside)
                .await
                .map_err(|why| BackendError::Failed {
                    what: what(),
                    message: why,
                }),
            (None, Some(docker)) => {
                let seen = docker.look_at_models(&self.parts.laya_image).await?;
                Ok(seen.unwrap_or_else(nothing))
            }
            (None, None) => Err(no_engine(what())),
        }
    }

    /// Deletes checkpoints from the volume of models: the result of the prune (control-plane 13).
    pub(crate) async fn prune_models(&self, delete: &[String]) -> Result<Value, BackendError> {
        match (&self.inside, &self.docker) {
            (Some(inside), _) => Ok(inside.prune(delete).await),
            (None, Some(docker)) => docker.prune_models(&self.parts.laya_image, delete).await,
            (None, None) => Err(no_engine("prune the models volume".to_owned())),
        }
    }

    /// Leaves it. What is inside ends with the process in any case.
    pub(crate) async fn end(&self, servers: Servers) {
        if let Some(inside) = &self.inside {
            inside.close(STOP_WAIT).await;
        } else if servers == Servers::Stop
            && tokio::time::timeout(STOP_WAIT, self.stop_servers())
                .await
                .is_err()
        {
            tracing::warn!("not all servers have stopped in time; the engine goes on with it");
        }
    }

    /// Tells all of them before it waits for any: they have one deadline, and each may need most of it.
    async fn stop_servers(&self) {
        let owners = match self.parts.backend.owners().await {
            Ok(owners) => owners,
            Err(error) => {
                return tracing::warn!(%error, "the servers cannot be stopped");
            }
        };
        let mut left: Vec<Owner> = owners
            .into_iter()
            .filter(|owner| owner.kind == api::group::Kind::LayaServer)
            .collect();
        let tell: Vec<_> = left
            .iter()
            .map(|owner| self.stop_servers_of(owner))
            .collect();
        futures_util::future::join_all(tell).await;
        loop {
            let mut running = Vec::new();
            for owner in left {
                match self.running_servers(&owner).await {
                    Ok(servers) if servers.is_empty() => {}
                    Ok(_) => running.push(owner),
                    Err(error) => {
                        tracing::warn!(server = owner.name, %error, "whether it has stopped is not known");
                    }
                }
            }
            if running.is_empty() {
                return;
            }
            left = running;
            tokio::time::sleep(STOP_LOOK).await;
        }
    }

    /// Tells what runs for an owner to stop. Drains first: a server that is told finishes what it has.
    async fn stop_servers_of(&self, owner: &Owner) {
        let running = match self.running_servers(owner).await {
            Ok(running) => running,
            Err(error) => {
                return tracing::warn!(server = owner.name, %error, "its replicas cannot be stopped");
            }
        };
        for server in &running {
            if let Err(error) = self.stop(owner, server).await {
                tracing::warn!(server = owner.name, %error, "a replica cannot be stopped");
            }
        }
    }

    async fn running_servers(&self, owner: &Owner) -> Result<Vec<ServerSeen>, BackendError> {
        let seen = self.observe_servers(owner).await?;
        Ok(seen.into_iter().filter(runs).collect())
    }

    async fn stop(&self, owner: &Owner, server: &ServerSeen) -> Result<(), BackendError> {
        let backend = &self.parts.backend;
        if let Some(url) = server.url.clone() {
            // One that does not answer has nothing to finish.
            let _ = backend.apply(owner, &Action::Drain { url }).await;
        }
        let stop = Action::StopServer {
            revision: server.revision.clone(),
            ordinals: Ordinals::Only(vec![server.ordinal]),
            grace_seconds: 10,
        };
        backend.apply(owner, &stop).await
    }

    /// What runs for an owner.
    pub(crate) async fn observe_servers(
        &self,
        owner: &Owner,
    ) -> Result<Vec<ServerSeen>, BackendError> {
        let question = Question::default();
        let seen = self.parts.backend.observe(owner, &question).await?;
        Ok(seen.servers)
    }
}

fn no_engine(what: String) -> BackendError {
    BackendError::Failed {
        what,
        message: "there is no engine".to_owned(),
    }
}

/// A volume that was never made.
fn nothing() -> ModelsView {
    ModelsView {
        published: Vec::new(),
        omitted: 0,
        unknown: Vec::new(),
        free_bytes: 0,
        total_bytes: 0,
    }
}

/// What lies in the folder of the engine inside.
pub(crate) async fn view_inside(inside: &Embedded) -> Result<ModelsView, String> {
    let looking = inside.clone();
    let looked = tokio::task::spawn_blocking(move || looking.view()).await;
    let view = looked.map_err(|error| error.to_string())?;
    view.map(ModelsView::from)
        .map_err(|error| format!("cannot read {}: {error}", inside.models().display()))
}

fn runs(server: &ServerSeen) -> bool {
    match server.state {
        RunState::Running | RunState::Restarting | RunState::Stopping => true,
        RunState::Created | RunState::Exited => false,
    }
}

fn embedded(store: &str, places: &Places) -> Embedded {
    Embedded::new(EmbeddedOptions {
        models: places.relay.join("models"),
        store: store.to_owned(),
        secrets: SecretFiles::new(places.relay.join("secrets")),
        scratch: places.daemon().join("tasks"),
        threads: None,
    })
}

/// Which objects this store has deleted.
#[derive(Debug)]
struct StoreTombstones(ObjectStore);

impl Tombstones for StoreTombstones {
    fn sweeps(&self) -> bool {
        true
    }

    fn was_deleted<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        let asked = self.0.was_deleted(uid);
        asked
            .map(|known| known.map_err(|error| error.to_string()))
            .boxed()
    }
}

/// Whether an engine answers where Docker is looked for.
async fn docker_answers(store: &str, places: &Places) -> bool {
    let Ok(options) = docker_options(store, places) else {
        return false;
    };
    let answer = tokio::time::timeout(FIRST_WORD, Docker::connect(options)).await;
    match answer {
        Ok(Ok(docker)) => {
            tracing::info!(address = docker.address(), "a container engine answers");
            true
        }
        Ok(Err(error)) => {
            tracing::info!(%error, "no container engine answers, models are served in this process");
            false
        }
        Err(_) => {
            tracing::info!(
                "no container engine answers in time, models are served in this process"
            );
            false
        }
    }
}

/// Docker, whether it answers now or not.
fn docker(store: &str, places: &Places) -> Result<Docker, RelaydError> {
    Docker::new(docker_options(store, places)?)
        .map_err(RelaydError::start("use the container engine"))
}

fn docker_options(store: &str, places: &Places) -> Result<docker::Options, RelaydError> {
    let digits = store.get(..INSTANCE_DIGITS).unwrap_or(store);
    let instance = Instance::parse(digits).map_err(|found| RelaydError::BadInstance { found })?;
    let secrets = SecretFiles::new(places.relay.join("secrets"));
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Ok(docker::Options {
        host: variable("DOCKER_HOST"),
        runtime_folder: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        secrets: Arc::new(move |_: &str, secret: &SecretRef| {
            secrets.read(secret).map_err(|error| error.to_string())
        }),
        proxies: Proxies {
            http: variable("HTTP_PROXY"),
            https: variable("HTTPS_PROXY"),
            no: variable("NO_PROXY"),
        },
        ..docker::Options::new(instance)
    })
}
