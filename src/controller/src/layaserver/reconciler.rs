//! Servers as a kind that is reconciled: looks things up, asks the engine, the prober and the router, lets `plan` decide,
//! and does what it says.

use std::sync::Arc;

use api::group::Kind;
use api::kinds::{Condition, LayaModel, LayaServer, LayaServerStatus, TrainingRun};
use backend::task_protocol::{MAX_TAIL_BYTES, tail};
use backend::{Backend, Child, Observed as Seen, Owner};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::PostParams;
use kube::runtime::reflector::Store;
use kube::{Api, Client, ResourceExt};

use super::action::Action;
use super::documents::{Holds, ServerDocuments, document, log_document};
use super::observation::{Checked, Observation};
use super::observe::{self, FactAges};
use super::{failed, inputs, kept_log, plan};
use crate::clock::{Clock, Now};
use crate::failure::Failure;
use crate::own_addresses::OwnAddresses;
use crate::probe::{Prober, ReplicaProbe, ServerId};
use crate::queue::Key;
use crate::reconciler::{EventDraft, Observed, Plan, Reconciler, Seen as Evident};
use crate::reports::RevisionReader;
use crate::stored;
use crate::watched::Watched;

/// Bytes of a log that are read so that whole lines of [`MAX_TAIL_BYTES`] can be kept of it.
const LOG_READ_BYTES: usize = 2 * MAX_TAIL_BYTES;

/// Reconciles servers.
pub struct LayaServers {
    parts: ServerParts,
    ages: FactAges,
}

/// What servers are reconciled with.
pub struct ServerParts {
    /// The object API.
    pub client: Client,
    /// The engine.
    pub backend: Arc<dyn Backend>,
    /// Image of servers whose spec names none.
    pub default_image: String,
    /// Models.
    pub models: Store<Watched<LayaModel>>,
    /// Training runs.
    pub runs: Store<Watched<TrainingRun>>,
    /// Stored documents.
    pub documents: Arc<ServerDocuments>,
    /// Asks replicas.
    pub prober: Prober,
    /// What a router measured.
    pub reports: Arc<dyn RevisionReader>,
    /// Where this program itself listens.
    pub own_addresses: OwnAddresses,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for LayaServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayaServers").finish_non_exhaustive()
    }
}

impl LayaServers {
    /// Over these caches. Ages of facts are counted from now on.
    #[must_use]
    pub fn new(parts: ServerParts) -> Self {
        Self {
            ages: FactAges::new(parts.clock.now().boot),
            parts,
        }
    }

    fn contract_of(&self, namespace: &str, model: &str) -> Option<String> {
        let key = kube::runtime::reflector::ObjectRef::new(model).within(namespace);
        match self.parts.models.get(&key)?.as_ref() {
            Watched::Parsed(model) => model.status.as_ref()?.contract.clone(),
            Watched::Unparsed(_) => None,
        }
    }

    /// Asks the prober to ask what runs. What is known of the external server, and of our replicas.
    fn probed(
        &self,
        object: &LayaServer,
        checked: &Checked,
        engine: Option<&Seen>,
    ) -> (Option<ReplicaProbe>, Vec<ReplicaProbe>) {
        let Self { parts, .. } = self;
        let id = server_id(object);
        let questions = |contract: &str| parts.documents.questions(contract);
        let namespace = object.namespace().unwrap_or_default();
        let recorded = |checkpoint: &str| parts.documents.recorded(&namespace, checkpoint);
        let known = parts.prober.seen(&id);
        let known_external = known.iter().find(|probe| probe.revision.is_empty());
        let external = observe::external(object, known_external, questions)
            // Nobody asks itself.
            .filter(|_| checked.own_address.is_none());
        match engine {
            Some(seen) => {
                let mut watched = observe::replicas(object, checked, seen, questions, recorded);
                watched.extend(external);
                parts.prober.watch(&id, watched);
            }
            // Nothing is known of what runs: those that were asked are asked on. An external server is none of the
            // engine's.
            None if known_external.is_none() && external.is_some() => {
                parts.prober.watch(&id, external.into_iter().collect());
            }
            None => {}
        }
        let (external, replicas) = parts
            .prober
            .seen(&id)
            .into_iter()
            .partition::<Vec<_>, _>(|probe| probe.revision.is_empty());
        (external.into_iter().next(), replicas)
    }

    async fn report(&self, object: &LayaServer) -> Result<api::revisions::RevisionReports, String> {
        if !observe::needs_report(object) {
            return Err("no rollout is under way".to_owned());
        }
        let report = self.parts.reports.read().await?;
        let Key { namespace, name } = Key::of(object);
        if report.server == format!("{namespace}/{name}") {
            Ok(report)
        } else {
            Err(format!(
                "the router reports on {}, not on this server",
                if report.server.is_empty() {
                    "no server"
                } else {
                    &report.server
                }
            ))
        }
    }

    fn revisions(&self, object: &LayaServer) -> Api<ControllerRevision> {
        let namespace = object.namespace().unwrap_or_default();
        Api::namespaced(self.parts.client.clone(), &namespace)
    }

    async fn store_revision(
        &self,
        object: &LayaServer,
        inputs: &backend::RevisionInputs,
    ) -> Result<(), Failure> {
        let document = document(object, inputs);
        let stored = self.store(object, &document, Holds::ItsRevision).await;
        if let Err(Failure::NameTaken { .. }) = &stored {
            let uid = object.uid().unwrap_or_default();
            let boot = self.parts.clock.now().boot;
            self.parts
                .documents
                .found_taken(&uid, &inputs.revision(), boot);
        }
        stored
    }

    async fn store_log(
        &self,
        object: &LayaServer,
        (revision, ordinal): (&str, u32),
        seen: &str,
    ) -> Result<(), Failure> {
        let owner = owner(object);
        let child = Child::Server {
            revision: revision.to_owned(),
            ordinal,
        };
        let log = match self
            .parts
            .backend
            .logs(&owner, &child, LOG_READ_BYTES)
            .await
        {
            Ok(text) => tail(&text, MAX_TAIL_BYTES),
            Err(error) if kept_log::comes_back(&error) => return Err(error.into()),
            // It is gone, its log driver keeps nothing that can be read, or the engine does not let us: what was seen of it is
            // kept, and what waits for the log goes on.
            Err(error) => {
                tracing::warn!(%error, revision, "the log of what was taken back cannot be read");
                seen.to_owned()
            }
        };
        let document = log_document(object, revision, log);
        match self.store(object, &document, Holds::ItsLog).await {
            Err(failure) if kept_log::is_given_up(&failure) => {
                tracing::warn!(%failure, revision, "the log of what was taken back is not kept");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores a document of a revision, and knows it before the watch tells of it.
    async fn store(
        &self,
        object: &LayaServer,
        document: &ControllerRevision,
        holds: Holds,
    ) -> Result<(), Failure> {
        let name = document.name_any();
        let resource = || format!("ControllerRevision {name}");
        let revisions = self.revisions(object);
        let stored = match revisions.create(&PostParams::default(), document).await {
            Ok(stored) => stored,
            // It is there: a controller that was killed, or a cache that is behind. It counts if it holds the same.
            Err(kube::Error::Api(status)) if status.is_already_exists() => revisions
                .get(&name)
                .await
                .map_err(|error| Failure::of("get", resource(), &error))?,
            Err(error) => return Err(Failure::of("create", resource(), &error)),
        };
        if self.parts.documents.put(object, &stored) == holds {
            Ok(())
        } else {
            Err(Failure::NameTaken {
                resource: resource(),
            })
        }
    }

    async fn delete_revision(
        &self,
        object: &LayaServer,
        name: &str,
        uid: &str,
    ) -> Result<(), Failure> {
        stored::delete(&self.revisions(object), name, uid).await?;
        self.parts.documents.removed(&Key::of(object), uid);
        Ok(())
    }
}

impl Reconciler for LayaServers {
    const KIND: Kind = Kind::LayaServer;
    type Object = LayaServer;
    type Status = LayaServerStatus;
    type Checked = Checked;
    type Observation = Observation;
    type Action = Action;

    fn status(object: &LayaServer) -> Option<&LayaServerStatus> {
        object.status.as_ref()
    }

    fn conditions(status: &LayaServerStatus) -> &[Condition] {
        &status.conditions
    }

    fn check(&self, object: &LayaServer, now: &Now) -> Checked {
        let Self { parts, .. } = self;
        let namespace = object.namespace().unwrap_or_default();
        let runs = parts.runs.state();
        let runs = runs.iter().filter_map(|run| match run.as_ref() {
            Watched::Parsed(run) => Some(run),
            Watched::Unparsed(_) => None,
        });
        let contract_of = |model: &str| self.contract_of(&namespace, model);
        let promotions = inputs::promotions(object, runs, contract_of);
        let uid = object.uid().unwrap_or_default();
        let revisions = parts.documents.of(&Key::of(object), &uid);
        let external = object.spec.external.as_ref();
        Checked {
            models: inputs::models(object, &parts.models, &promotions),
            promotions,
            gate: inputs::gate(object),
            capabilities: parts.backend.capabilities().clone(),
            default_image: parts.default_image.clone(),
            documents: revisions.inputs,
            document_uids: revisions.uids,
            logs: revisions.logs,
            taken: parts.documents.taken(&uid, now.boot),
            own_address: external.and_then(|it| parts.own_addresses.meant_by(&it.url)),
        }
    }

    async fn observe(
        &self,
        object: &LayaServer,
        checked: &Checked,
    ) -> Result<Observation, Failure> {
        let owner = owner(object);
        let question = observe::question(object, checked);
        let look = self.parts.backend.observe(&owner, &question);
        let (engine, report) = tokio::join!(look, self.report(object));
        // What was not seen whole does not say what does not run.
        let whole = engine.as_ref().ok().filter(|seen| seen.complete);
        let (external, replicas) = self.probed(object, checked, whole);
        let boot = self.parts.clock.now().boot;
        Ok(Observation {
            engine,
            replicas,
            external,
            report,
            ages: self.ages.of(&owner.uid, object, boot),
        })
    }

    fn plan(
        object: &LayaServer,
        checked: &Checked,
        seen: &Evident<Observation>,
        now: &Now,
    ) -> Plan<Self> {
        let planned = plan::plan(object, checked, seen.get(), now);
        Plan {
            actions: planned.actions,
            status: seen.status(planned.status),
            events: planned.events,
            requeue: planned.requeue,
        }
    }

    async fn act(&self, object: &LayaServer, action: &Action) -> Result<(), Failure> {
        match action {
            Action::Backend { action, .. } => {
                let owner = owner(object);
                Ok(self.parts.backend.apply(&owner, action).await?)
            }
            Action::StoreRevision { inputs, .. } => self.store_revision(object, inputs).await,
            Action::StoreLog {
                revision,
                ordinal,
                seen,
            } => self.store_log(object, (revision, *ordinal), seen).await,
            Action::DeleteRevision { name, uid } => self.delete_revision(object, name, uid).await,
        }
    }

    fn failed(
        object: &LayaServer,
        failure: &Evident<Failure>,
        now: &Now,
    ) -> Observed<LayaServerStatus> {
        failure.status(failed::failed(object, failure.get(), now))
    }

    fn failed_events(object: &LayaServer, failure: &Failure) -> Vec<EventDraft> {
        failed::event(object, failure).into_iter().collect()
    }

    fn forget(&self, uid: &str) {
        self.parts.prober.forget(uid);
        self.ages.forget(uid);
        self.parts.documents.forget(uid);
    }
}

fn owner(object: &LayaServer) -> Owner {
    Owner {
        kind: Kind::LayaServer,
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
    }
}

/// Whose replicas a prober asks.
pub(super) fn server_id(object: &LayaServer) -> ServerId {
    ServerId {
        key: Key::of(object),
        uid: object.uid().unwrap_or_default(),
    }
}
