//! LayaModel (control-plane 2): a checkpoint under a name. It is fetched by a task into a volume, hashed there, repaired
//! when a server finds it damaged, and removed when nothing has it any more. What a task found is recorded before the task
//! is removed, so a controller that is killed anywhere goes on from what is there.

mod contract;
mod inputs;
mod memory;
mod outcome;
mod plan;
mod retention;
mod retry;
mod source;
mod status;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::field_manager;
use api::finalizer::MODEL_IN_USE;
use api::group::{API_VERSION, Kind};
use api::kinds::{Condition, LayaModel, LayaModelStatus};
use api::label::Task;
use backend::{Backend, Observed as Engine, Owner, Question, RunState, TaskSeen};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

pub use contract::{Wording, contract_document_name};
pub use inputs::{Checked, Inputs, is_trained};
pub use plan::{Action, Document, Observation};
pub use retention::{Trained, prunable, surplus};
pub use source::{OWN_VOLUME, Source, Wanted, manifest_digest, wanted};

use self::memory::Memory;
use self::outcome::Outcome;
use crate::clock::{Clock, Now};
use crate::failure::{Failure, Remedy};
use crate::metrics::ControllerMetrics;
use crate::reconciler::{Observed, Plan, Reconciler, Seen};
use crate::recorded::{self, Holds, Recorded};
use crate::stored;

/// How long a claim may wait before that is said.
const UNBOUND: Duration = Duration::from_secs(600);

/// Reconciles models.
pub struct LayaModels {
    client: Client,
    backend: Arc<dyn Backend>,
    inputs: Inputs,
    metrics: ControllerMetrics,
    clock: Arc<dyn Clock>,
    memory: Memory,
}

impl LayaModels {
    /// Over these caches and this engine.
    #[must_use]
    pub fn new(
        client: Client,
        backend: Arc<dyn Backend>,
        inputs: Inputs,
        metrics: ControllerMetrics,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            client,
            backend,
            inputs,
            metrics,
            clock,
            memory: Memory::default(),
        }
    }

    fn models(&self, model: &LayaModel) -> Api<LayaModel> {
        Api::namespaced(self.client.clone(), &model.namespace().unwrap_or_default())
    }

    fn documents(&self, model: &LayaModel) -> Api<ControllerRevision> {
        Api::namespaced(self.client.clone(), &model.namespace().unwrap_or_default())
    }

    /// Counts what the tasks brought and how they failed.
    fn count(&self, uid: &str, engine: &Engine) {
        let mut fetches = engine
            .tasks
            .iter()
            .filter(|task| task.key.task == Task::Fetch)
            .peekable();
        if fetches.peek().is_none() {
            self.memory.task_gone(uid);
        }
        for task in fetches {
            self.metrics
                .model_fetched(self.memory.more_bytes(uid, task));
            if task.state == RunState::Exited
                && let Outcome::Failed(failed) = outcome::of_model(task)
                && self.memory.failed_first(uid, task)
            {
                self.metrics.model_fetch_failed(failed.reason);
            }
        }
    }

    /// Which documents of what ended tasks found are stored.
    async fn stored(&self, model: &LayaModel, tasks: &[TaskSeen]) -> Result<Vec<String>, Failure> {
        let mut stored = Vec::new();
        for task in tasks.iter().filter(|task| task.state == RunState::Exited) {
            let Outcome::Done(found) = outcome::of_model(task) else {
                continue;
            };
            if let Some(wording) = found.wording {
                let name = wording.document_name();
                match self.document(model, &name).await? {
                    Some(document) if wording.is_in(&document) => stored.push(name),
                    Some(_) => return Err(name_taken(&name)),
                    None => {}
                }
            }
            if let Some(recorded) = found.recorded {
                let name = recorded.document_name();
                let document = self.document(model, &name).await?;
                if is_settled(document.map(|document| recorded.compare(&document))) {
                    stored.push(name);
                }
            }
        }
        Ok(stored)
    }

    /// The document of what a checkpoint must answer, if there is one of ours. A model that goes is not held by one that
    /// this process may not read.
    async fn probes_of(
        &self,
        model: &LayaModel,
        checkpoint: &str,
    ) -> Result<Option<Document>, Failure> {
        let Some(name) = recorded::document_name(checkpoint) else {
            return Ok(None);
        };
        let document = match self.document(model, &name).await {
            Err(failure) if failure.remedy() == Remedy::Change => {
                tracing::warn!(%failure, "recorded probes of a model that goes are left");
                None
            }
            read => read?,
        };
        let ours = document.filter(|document| recorded::is_of(checkpoint, document));
        Ok(ours.map(|document| Document {
            name,
            uid: document.uid().unwrap_or_default(),
        }))
    }

    async fn document(
        &self,
        model: &LayaModel,
        name: &str,
    ) -> Result<Option<ControllerRevision>, Failure> {
        let read = self.documents(model).get_opt(name).await;
        read.map_err(|error| Failure::of("get", format!("ControllerRevision {name}"), &error))
    }

    async fn patch_finalizers(&self, model: &LayaModel, add: bool) -> Result<(), Failure> {
        let name = model.name_any();
        let resource = || format!("finalizers of {} {name}", Kind::LayaModel);
        let models = self.models(model);
        let done = if add {
            let body = json!({
                "apiVersion": API_VERSION, "kind": Kind::LayaModel.as_str(),
                // With a uid nothing is made where the object is gone.
                "metadata": {"name": name, "uid": model.uid(), "finalizers": [MODEL_IN_USE]},
            });
            let params = PatchParams::apply(field_manager::CONTROLLER).force();
            models
                .patch_metadata(&name, &params, &Patch::Apply(body))
                .await
        } else {
            let rest: Vec<_> = model
                .finalizers()
                .iter()
                .filter(|name| *name != MODEL_IN_USE)
                .collect();
            let body = json!({"metadata": {
                "uid": model.uid(), "resourceVersion": model.resource_version(), "finalizers": rest,
            }});
            let params = PatchParams {
                field_manager: Some(field_manager::CONTROLLER.to_owned()),
                ..PatchParams::default()
            };
            models
                .patch_metadata(&name, &params, &Patch::Merge(body))
                .await
        };
        match done {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() && !add => Ok(()),
            Err(error) => Err(Failure::of(
                if add { "apply" } else { "patch" },
                resource(),
                &error,
            )),
        }
    }

    async fn store(&self, model: &LayaModel, wording: &Wording) -> Result<(), Failure> {
        let document = wording.document(&model.namespace().unwrap_or_default());
        stored::create(&self.documents(model), &document).await
    }

    /// Puts what a version must answer in the place of what was recorded for it before: the newest look at its manifest
    /// counts, as it does for the server itself.
    async fn store_probes(&self, model: &LayaModel, recorded: &Recorded) -> Result<(), Failure> {
        let documents = self.documents(model);
        let name = recorded.document_name();
        if let Some(known) = self.document(model, &name).await? {
            match recorded.compare(&known) {
                Holds::Same => return Ok(()),
                Holds::SomethingElse => {
                    tracing::warn!(
                        document = name,
                        "what a checkpoint must answer is not stored, since something else has the name; its servers are asked the built-in questions"
                    );
                    return Ok(());
                }
                Holds::Before => {
                    let uid = known.uid().unwrap_or_default();
                    stored::delete(&documents, &name, &uid).await?;
                }
            }
        }
        let document = recorded.document(&model.namespace().unwrap_or_default());
        stored::create(&documents, &document).await
    }

    /// Deletes the object, if it is still the one that was seen.
    async fn delete(&self, model: &LayaModel) -> Result<(), Failure> {
        let name = model.name_any();
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: model.uid(),
            resource_version: model.resource_version(),
        });
        match self.models(model).delete(&name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(Failure::of(
                "delete",
                format!("{} {name}", Kind::LayaModel),
                &error,
            )),
        }
    }
}

impl std::fmt::Debug for LayaModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayaModels").finish_non_exhaustive()
    }
}

/// Whether nothing of recorded probes is to be stored any more: they are there, or something else has their name for good,
/// which costs a model only that its servers are asked the built-in questions.
const fn is_settled(document: Option<Holds>) -> bool {
    match document {
        Some(Holds::Same | Holds::SomethingElse) => true,
        Some(Holds::Before) | None => false,
    }
}

fn name_taken(document: &str) -> Failure {
    Failure::NameTaken {
        resource: format!("ControllerRevision {document}"),
    }
}

/// The owner that a model's children have.
#[must_use]
pub fn owner(model: &LayaModel) -> Owner {
    Owner {
        kind: Kind::LayaModel,
        namespace: model.namespace().unwrap_or_default(),
        name: model.name_any(),
        uid: model.uid().unwrap_or_default(),
    }
}

impl Reconciler for LayaModels {
    const KIND: Kind = Kind::LayaModel;
    type Object = LayaModel;
    type Status = LayaModelStatus;
    type Checked = Checked;
    type Observation = Observation;
    type Action = Action;

    fn status(object: &LayaModel) -> Option<&LayaModelStatus> {
        object.status.as_ref()
    }

    fn conditions(status: &LayaModelStatus) -> &[Condition] {
        &status.conditions
    }

    fn check(&self, object: &LayaModel, now: &Now) -> Checked {
        Checked {
            fetch_age: self.memory.fetch_age(object, now.boot),
            progress_due: self.memory.progress_due(object, now.boot),
            ..self.inputs.of(object)
        }
    }

    async fn observe(&self, object: &LayaModel, checked: &Checked) -> Result<Observation, Failure> {
        let last_probes = match &checked.last_of {
            Some(digest) => self.probes_of(object, digest).await?,
            None => None,
        };
        let Ok(wanted) = &checked.wanted else {
            return Ok(Observation {
                engine: Ok(Engine {
                    complete: true,
                    ..Engine::default()
                }),
                documents: Vec::new(),
                last_probes,
                unbound_long: false,
            });
        };
        let question = Question {
            images: if checked.engine.images {
                vec![checked.image.clone()]
            } else {
                Vec::new()
            },
            volumes: vec![wanted.role().clone()],
        };
        let engine = self.backend.observe(&owner(object), &question).await;
        self.metrics
            .backend_seen(checked.engine.name, engine.is_ok());
        let uid = object.uid().unwrap_or_default();
        let boot = self.clock.now().boot;
        let mut documents = Vec::new();
        let mut unbound_long = false;
        if let Ok(engine) = &engine {
            self.count(&uid, engine);
            // One that goes needs none, and what has their names must not hold it.
            if object.metadata.deletion_timestamp.is_none() {
                documents = self.stored(object, &engine.tasks).await?;
            }
            let unbound = engine
                .volume(wanted.role())
                .is_some_and(|volume| !volume.bound);
            let age = self.memory.unbound_for(&uid, unbound, boot);
            unbound_long = age.is_some_and(|age| age >= UNBOUND);
            let tells = engine.tasks.iter().any(|task| task.progress.is_some());
            if checked.progress_due && tells {
                self.memory.wrote_progress(&uid, boot);
            }
        }
        Ok(Observation {
            engine,
            documents,
            last_probes,
            unbound_long,
        })
    }

    fn plan(
        object: &LayaModel,
        checked: &Checked,
        seen: &Seen<Observation>,
        now: &Now,
    ) -> Plan<Self> {
        plan::plan(object, checked, seen, now)
    }

    async fn act(&self, object: &LayaModel, action: &Action) -> Result<(), Failure> {
        match action {
            Action::Engine { action, .. } => Ok(self.backend.apply(&owner(object), action).await?),
            Action::StoreContract { wording } => self.store(object, wording).await,
            Action::StoreProbes { recorded } => self.store_probes(object, recorded).await,
            Action::DeleteProbes { document } => {
                stored::delete(&self.documents(object), &document.name, &document.uid).await
            }
            Action::AddFinalizer => self.patch_finalizers(object, true).await,
            Action::RemoveFinalizer => self.patch_finalizers(object, false).await,
            Action::DeleteModel => self.delete(object).await,
        }
    }

    fn failed(object: &LayaModel, failure: &Seen<Failure>, now: &Now) -> Observed<LayaModelStatus> {
        failure.status(status::failed(object, failure.get(), now))
    }

    fn forget(&self, uid: &str) {
        self.inputs.forget(uid);
        self.memory.forget(uid);
    }
}
