//! Children whose owner is gone (control-plane 1.4). Nobody reconciles them any more, so this task does: a child whose
//! owner the store remembers as deleted is removed after two looks at least a minute apart. One whose owner the store has
//! never known keeps running and is listed; it may be of a store that was lost.

mod judge;

use std::sync::Arc;
use std::time::Duration;

use api::event::EventReason;
use api::group::{API_VERSION, Kind};
use backend::{Action, Backend, BackendError, Observed, Ordinals, Owner, Question, VolumeRole};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::reflector::{ObjectRef, Store};
use service::telemetry::RepeatedError;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::judge::{Fate, Sightings};
use super::Controller;
use super::engine::{Engine, Tombstones};
use crate::context::Context;
use crate::driver::ENGINE_DEADLINE;
use crate::faults::FaultPoint;
use crate::reconciler::EventDraft;
use crate::routingpolicy::ServerView;
use crate::watched::Watched;

/// How often owners are compared, at least; each full look of the engine asks for it too.
const EVERY: Duration = Duration::from_secs(30);
/// Time that a server which nobody owns has to end.
const GRACE_SECONDS: u32 = 40;

/// An owner whose children run here and that the store has never known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unclaimed {
    /// As its labels name it.
    pub owner: Owner,
    /// What runs for it: `server <revision>/<ordinal>`, `task <word> <attempt>`.
    pub children: Vec<String>,
}

/// The unclaimed owners as they were seen last, by uid. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct UnclaimedOwners(watch::Sender<Vec<Unclaimed>>);

impl UnclaimedOwners {
    /// As they were seen last.
    #[must_use]
    pub fn list(&self) -> Vec<Unclaimed> {
        self.0.borrow().clone()
    }

    /// Changes of the list.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Vec<Unclaimed>> {
        self.0.subscribe()
    }

    /// Whether they are others than before.
    fn set(&self, owners: Vec<Unclaimed>) -> bool {
        self.0.send_if_modified(|known| {
            let differs = *known != owners;
            *known = owners;
            differs
        })
    }
}

impl Controller {
    /// After the models: their cache is read.
    pub(super) fn add_sweep(&mut self, engine: &Engine) {
        let Some(models) = &self.models else { return };
        let look = Arc::new(Notify::new());
        let asked = look.clone();
        // Any kind will do: only full looks matter.
        self.hints.listen(Kind::LayaModel, move |owner| {
            if owner.is_none() {
                asked.notify_one();
            }
        });
        let sweep = Sweep {
            context: self.context.clone(),
            backend: engine.backend.clone(),
            tombstones: engine.tombstones.clone(),
            unclaimed: engine.unclaimed.clone(),
            models: models.store(),
            servers: self.servers.store(),
            sightings: Sightings::default(),
            errors: RepeatedError::new(self.context.metrics.process.log_suppressed.clone()),
        };
        if !engine.tombstones.sweeps() {
            return;
        }
        self.drivers.push(Box::new(move |mut synced, shutdown| {
            Box::pin(async move {
                // The sender lives as long as the controller runs.
                let _ = synced.wait_for(|synced| *synced).await;
                tokio::select! {
                    () = sweep.run(&look) => {}
                    () = shutdown.draining() => {}
                }
            })
        }));
    }
}

struct Sweep {
    context: Arc<Context>,
    backend: Arc<dyn Backend>,
    tombstones: Arc<dyn Tombstones>,
    unclaimed: UnclaimedOwners,
    models: Store<Watched<api::kinds::LayaModel>>,
    servers: Store<ServerView>,
    sightings: Sightings,
    errors: RepeatedError,
}

impl Sweep {
    /// Never returns; cancel safe.
    async fn run(mut self, asked: &Notify) {
        loop {
            match self.look().await {
                Ok(()) => {
                    if let Some(count) = self.errors.recovered() {
                        tracing::info!(failures = count, "owners can be compared again");
                    }
                }
                Err(message) => {
                    if let Some(count) = self.errors.occurred() {
                        tracing::warn!(count, message, "cannot compare owners with objects");
                    }
                }
            }
            let next = Instant::now() + EVERY;
            tokio::select! {
                () = asked.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    async fn look(&mut self) -> Result<(), String> {
        let name = self.backend.capabilities().name;
        let owners = self.backend.owners().await;
        self.context.metrics.backend_seen(name, owners.is_ok());
        let owners = owners.map_err(|error| error.to_string())?;
        // One owner that cannot be judged or cleaned must not hold up all the others: the first failure is told at the end.
        let mut problem = None;
        let mut seen = Vec::new();
        for owner in owners {
            match self.fate(&owner).await {
                Ok(fate) => seen.push((owner, fate)),
                // As if it were not there: what goes is seen twice from here on.
                Err(why) => note(&mut problem, &owner, &why),
            }
        }
        let verdict = self.sightings.judge(seen, self.context.clock.now().boot);
        let mut unclaimed = Vec::new();
        for owner in verdict.unclaimed {
            let children = match self.children(&owner).await {
                Ok(children) => children,
                Err(error) => {
                    note(&mut problem, &owner, &error.to_string());
                    Vec::new()
                }
            };
            unclaimed.push(Unclaimed {
                owner,
                children: children.iter().map(Action::target).collect(),
            });
        }
        self.context
            .metrics
            .backend_strangers(name, unclaimed.len());
        let count = unclaimed.len();
        // Where another process serves the objects, nobody else says it.
        if self.unclaimed.set(unclaimed) && count > 0 {
            tracing::warn!(
                count,
                "owners that no object stands for have children on the engine, which go on"
            );
        }
        for owner in verdict.remove {
            if let Err(why) = self.remove(&owner).await {
                note(&mut problem, &owner, &why);
            }
        }
        problem.map_or(Ok(()), Err)
    }

    async fn fate(&self, owner: &Owner) -> Result<Fate, String> {
        // Of a namespace that is not watched nothing is known, and another process may look after it.
        if !self.context.namespaces.includes(&owner.namespace) || self.is_there(owner) {
            return Ok(Fate::Owned);
        }
        let deleted = self.tombstones.was_deleted(&owner.uid).await?;
        if deleted {
            return Ok(Fate::Deleted);
        }
        // It may have been made since: the caches are asked once more, after the store.
        Ok(if self.is_there(owner) {
            Fate::Owned
        } else {
            Fate::Unknown
        })
    }

    /// Whether the object of this uid is there. Kinds that no reconciler acts for yet own nothing.
    fn is_there(&self, owner: &Owner) -> bool {
        let uid = |uid: Option<&String>| uid == Some(&owner.uid);
        match owner.kind {
            Kind::LayaModel => {
                let key = ObjectRef::new(&owner.name).within(&owner.namespace);
                let found = self.models.get(&key);
                found.is_some_and(|model| uid(kube::Resource::meta(model.as_ref()).uid.as_ref()))
            }
            Kind::LayaServer => {
                let key = ObjectRef::new(&owner.name).within(&owner.namespace);
                let found = self.servers.get(&key);
                found.is_some_and(|server| uid(server.metadata.uid.as_ref()))
            }
            _ => false,
        }
    }

    /// What removes each child of an owner, in the order it is to be done.
    async fn children(&self, owner: &Owner) -> Result<Vec<Action>, BackendError> {
        let question = Question {
            images: Vec::new(),
            volumes: own_volume(owner).into_iter().collect(),
        };
        let observed = self.backend.observe(owner, &question).await?;
        Ok(removals(&observed))
    }

    async fn remove(&mut self, owner: &Owner) -> Result<(), String> {
        let children = self.children(owner).await.map_err(|e| e.to_string())?;
        for action in &children {
            self.act(owner, action).await?;
        }
        self.sightings.forget(&owner.uid);
        let Owner {
            kind,
            namespace,
            name,
            uid,
        } = owner;
        let what: Vec<_> = children.iter().map(Action::target).collect();
        let what = what.join(", ");
        tracing::warn!(%kind, namespace, name, uid, what, "children of a deleted object were removed");
        let regarding = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(kind.as_str().to_owned()),
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            uid: Some(uid.clone()),
            ..ObjectReference::default()
        };
        let draft = EventDraft {
            reason: EventReason::OrphanRemoved,
            note: format!("{kind} {name} was deleted; removed what still ran for it: {what}"),
        };
        let now = self.context.clock.now();
        self.context.events.publish(&regarding, draft, &now);
        Ok(())
    }

    async fn act(&self, owner: &Owner, action: &Action) -> Result<(), String> {
        let name = action.name();
        self.context
            .faults
            .reach(FaultPoint::BeforeAction(name))
            .await;
        self.context.fence.check().map_err(|e| e.to_string())?;
        let began = std::time::Instant::now();
        let apply = self.backend.apply(owner, action);
        let done = tokio::time::timeout(ENGINE_DEADLINE, apply).await;
        let done = match done {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_elapsed) => Err(format!(
                "{name} {}: no answer within {} s",
                action.target(),
                ENGINE_DEADLINE.as_secs()
            )),
        };
        let result = if done.is_ok() { "done" } else { "failed" };
        let backend = self.backend.capabilities().name;
        self.context
            .metrics
            .acted(backend, name, result, began.elapsed());
        if done.is_ok() {
            self.context
                .faults
                .reach(FaultPoint::AfterAction(name))
                .await;
        }
        done
    }
}

/// Keeps the first failure, with whose it is.
fn note(problem: &mut Option<String>, owner: &Owner, why: &str) {
    let Owner {
        kind,
        namespace,
        name,
        ..
    } = owner;
    problem.get_or_insert_with(|| format!("{kind} {namespace}/{name}: {why}"));
}

/// The volume that goes with an owner. That of all models belongs to nobody.
fn own_volume(owner: &Owner) -> Option<VolumeRole> {
    let name = owner.name.clone();
    match owner.kind {
        Kind::TrainingRun => Some(VolumeRole::Work { run: name }),
        Kind::EvaluationGate => Some(VolumeRole::Gate { gate: name }),
        _ => None,
    }
}

fn removals(observed: &Observed) -> Vec<Action> {
    let mut revisions: Vec<&str> = Vec::new();
    for server in &observed.servers {
        if !revisions.contains(&server.revision.as_str()) {
            revisions.push(&server.revision);
        }
    }
    let servers = revisions.into_iter().map(|revision| Action::DeleteServer {
        revision: revision.to_owned(),
        ordinals: Ordinals::All,
        grace_seconds: GRACE_SECONDS,
    });
    let tasks = observed.tasks.iter().map(|task| Action::DeleteTask {
        task: task.key.clone(),
    });
    let volumes = observed.volumes.iter().map(|volume| Action::DeleteVolume {
        role: volume.role.clone(),
    });
    servers.chain(tasks).chain(volumes).collect()
}
