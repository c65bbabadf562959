//! Stored documents that servers need (control-plane 3.1, 2, 10, 12): what made a revision, as `ls-<name>-<revision>`, the end
//! of the log of one that was taken back, as `ls-<name>-<revision>-log`, the wordings of contracts, as `contract-<12 hex>`,
//! and what checkpoints must answer, as `probes-<12 hex>`. What is computed with has a digest in its name, so one that holds
//! something else is told from a right one and is not used.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::field_manager;
use api::group::Kind;
use api::kept_log::{self, KeptLog};
use api::kinds::LayaServer;
use api::label;
use backend::RevisionInputs;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::core::ObjectMeta;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::action::document_name;
use crate::merge::Change;
use crate::probe::{QuestionSet, RecordedProbe};
use crate::queue::Key;
use crate::recorded::{self, Recorded};
use crate::stored;
use crate::wording;

/// How long a name that something else has is not tried again. Nobody tells when it is free: what has it need not be watched.
/// Longer than a pass that failed over it is followed by none, so that the next one gets to everything else.
const TAKEN_FOR: Duration = Duration::from_secs(900);

/// A stored document, read.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    metadata: ObjectMeta,
    held: Held,
}

/// What a document holds.
#[derive(Debug, Clone)]
enum Held {
    /// What made a revision.
    Revision(Box<RevisionInputs>),
    /// The end of the log of a revision; what it says is read by whoever shows it.
    Log,
    /// The wording of a contract.
    Wording(Arc<QuestionSet>),
    /// What a checkpoint must answer.
    Recorded(Recorded),
    /// Nothing that this program can read.
    Other,
}

impl<'de> Deserialize<'de> for StoredDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: ObjectMeta,
            #[serde(default)]
            data: Value,
        }
        let Raw { metadata, data } = Raw::deserialize(deserializer)?;
        let held = read(&data);
        Ok(Self { metadata, held })
    }
}

fn read(data: &Value) -> Held {
    if let Ok(inputs) = RevisionInputs::deserialize(data) {
        return Held::Revision(Box::new(inputs));
    }
    if let Some(recorded) = Recorded::of_document(data) {
        return Held::Recorded(recorded);
    }
    if KeptLog::read(data).is_some() {
        return Held::Log;
    }
    match wording::contract(data) {
        Ok(contract) => Held::Wording(Arc::new(QuestionSet::new(contract))),
        Err(_) => Held::Other,
    }
}

impl StoredDocument {
    /// Which of all ControllerRevisions are watched.
    #[must_use]
    pub fn watched() -> watcher::Config {
        watcher::Config::default().labels(&format!(
            "{} in ({},{}),{}={}",
            label::KIND,
            Kind::LayaServer,
            Kind::LayaModel,
            label::MANAGED_BY,
            field_manager::CONTROLLER
        ))
    }

    /// Keeps what is needed of its metadata.
    pub fn slim(&mut self) {
        let metadata = &mut self.metadata;
        let labels = metadata.labels.take().map(|labels| {
            let needed = |(key, _): &(String, String)| {
                [label::NAME, label::UID, label::REVISION].contains(&key.as_str())
            };
            labels.into_iter().filter(needed).collect()
        });
        *metadata = ObjectMeta {
            name: metadata.name.take(),
            namespace: metadata.namespace.take(),
            uid: metadata.uid.take(),
            resource_version: metadata.resource_version.take(),
            labels,
            ..ObjectMeta::default()
        };
    }

    fn label(&self, key: &str) -> Option<&String> {
        self.metadata.labels.as_ref()?.get(key)
    }
}

impl Resource for StoredDocument {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        <ControllerRevision as Resource>::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        <ControllerRevision as Resource>::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        <ControllerRevision as Resource>::version(&())
    }

    fn api_version((): &()) -> Cow<'_, str> {
        <ControllerRevision as Resource>::api_version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        <ControllerRevision as Resource>::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What made the revisions of a server, and the uids of its documents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Revisions {
    /// By revision.
    pub inputs: BTreeMap<String, RevisionInputs>,
    /// Of the documents that hold those, by revision.
    pub uids: BTreeMap<String, String>,
    /// Of the documents that keep a log, by revision.
    pub logs: BTreeMap<String, String>,
}

/// Documents by what they are for.
#[derive(Debug, Default)]
pub struct ServerDocuments {
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    /// Of revisions, by server, then by uid of the document.
    revisions: HashMap<Key, BTreeMap<String, Revision>>,
    /// By uid of the document.
    wordings: HashMap<String, Arc<QuestionSet>>,
    /// By uid of the document, with its namespace: nothing in them proves that they are of their checkpoint, so they hold
    /// where they were stored and nowhere else.
    recorded: HashMap<String, (String, Recorded)>,
    /// Revisions whose document's name something else has, and when that was found (since boot), by uid of the server.
    taken: HashMap<String, BTreeMap<String, Duration>>,
}

#[derive(Debug)]
struct Revision {
    /// Uid of the server it was made for.
    owner: String,
    revision: String,
    /// What made it; `None` of the document that keeps its log.
    inputs: Option<RevisionInputs>,
}

/// Whom a changed document concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concerns {
    /// This server.
    Server(Key),
    /// Servers whose checkpoint has this contract.
    Contract(String),
    /// Servers of this checkpoint.
    Checkpoint(String),
    /// Nobody.
    Nobody,
}

impl ServerDocuments {
    /// Takes a change. Whom it concerns, so that they are looked at again.
    pub fn changed(&self, change: &Change<StoredDocument>) -> Concerns {
        let (Change::Applied(document) | Change::Deleted(document)) = change;
        let there = matches!(change, Change::Applied(_));
        self.take(document, there)
    }

    fn take(&self, document: &StoredDocument, there: bool) -> Concerns {
        let uid = document.metadata.uid.clone().unwrap_or_default();
        let mut index = self.lock();
        match &document.held {
            Held::Other => Concerns::Nobody,
            Held::Wording(set) => {
                if there {
                    index.wordings.insert(uid, set.clone());
                } else {
                    index.wordings.remove(&uid);
                }
                Concerns::Contract(set.digest().to_owned())
            }
            Held::Recorded(recorded) => {
                let name = recorded::document_name(&recorded.checkpoint);
                if document.metadata.name != name {
                    return Concerns::Nobody;
                }
                if there {
                    let namespace = document.metadata.namespace.clone().unwrap_or_default();
                    index.recorded.insert(uid, (namespace, recorded.clone()));
                } else {
                    index.recorded.remove(&uid);
                }
                Concerns::Checkpoint(recorded.checkpoint.clone())
            }
            Held::Revision(_) | Held::Log => {
                let Some((server, revision)) = revision_of(document) else {
                    return Concerns::Nobody;
                };
                let documents = index.revisions.entry(server.clone()).or_default();
                if there {
                    documents.insert(uid, revision);
                } else {
                    documents.remove(&uid);
                }
                if documents.is_empty() {
                    index.revisions.remove(&server);
                }
                Concerns::Server(server)
            }
        }
    }

    /// A document that this process stored or read itself, before the watch tells of it. Whether it holds what its name
    /// says, for this server.
    pub fn put(&self, server: &LayaServer, document: &ControllerRevision) -> Holds {
        let held = document.data.as_ref();
        let mut stored = StoredDocument {
            metadata: document.metadata.clone(),
            held: held.map_or(Held::Other, |RawExtension(data)| read(data)),
        };
        stored.slim();
        let owned = stored.label(label::UID) == server.uid().as_ref();
        match (self.take(&stored, true), &stored.held) {
            (Concerns::Server(key), held) if owned && key == Key::of(server) => match held {
                Held::Log => Holds::ItsLog,
                _ => Holds::ItsRevision,
            },
            _ => Holds::SomethingElse,
        }
    }

    /// A document that this process removed itself is gone.
    pub fn removed(&self, server: &Key, uid: &str) {
        if let Some(documents) = self.lock().revisions.get_mut(server) {
            documents.remove(uid);
        }
    }

    /// The revisions of a server of this uid.
    #[must_use]
    pub fn of(&self, server: &Key, uid: &str) -> Revisions {
        let index = self.lock();
        let mut revisions = Revisions::default();
        let documents = index.revisions.get(server).into_iter().flatten();
        for (document, known) in documents.filter(|(_, known)| known.owner == uid) {
            let (revision, document) = (known.revision.clone(), document.clone());
            match &known.inputs {
                Some(inputs) => {
                    revisions.inputs.insert(revision.clone(), inputs.clone());
                    revisions.uids.insert(revision, document);
                }
                None => {
                    revisions.logs.insert(revision, document);
                }
            }
        }
        revisions
    }

    /// Something else has the name of the document of this revision.
    pub fn found_taken(&self, server_uid: &str, revision: &str, boot: Duration) {
        let mut index = self.lock();
        let taken = index.taken.entry(server_uid.to_owned()).or_default();
        taken.retain(|_, found| is_fresh(*found, boot));
        taken.insert(revision.to_owned(), boot);
    }

    /// Revisions of which that was found lately; the others are tried again.
    #[must_use]
    pub fn taken(&self, server_uid: &str, boot: Duration) -> BTreeSet<String> {
        let index = self.lock();
        let taken = index.taken.get(server_uid).into_iter().flatten();
        taken
            .filter(|(_, found)| is_fresh(**found, boot))
            .map(|(revision, _)| revision.clone())
            .collect()
    }

    /// The server is gone.
    pub fn forget(&self, server_uid: &str) {
        self.lock().taken.remove(server_uid);
    }

    /// The questions of a contract: ours, or those of a stored wording.
    #[must_use]
    pub fn questions(&self, contract: &str) -> Option<Arc<QuestionSet>> {
        let ours = QuestionSet::ours();
        if ours.digest() == contract {
            return Some(ours);
        }
        let index = self.lock();
        let mut wordings = index.wordings.values();
        wordings.find(|set| set.digest() == contract).cloned()
    }

    /// What a checkpoint must answer, as was stored in a namespace; empty where nothing was.
    #[must_use]
    pub fn recorded(&self, namespace: &str, checkpoint: &str) -> Arc<[RecordedProbe]> {
        let index = self.lock();
        let mut all = index.recorded.values();
        let found =
            all.find(|(known, recorded)| known == namespace && recorded.checkpoint == checkpoint);
        found.map_or_else(|| Arc::from([]), |(_, recorded)| recorded.probes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        // Each change is one insertion or removal.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(found: Duration, boot: Duration) -> bool {
    boot.saturating_sub(found) < TAKEN_FOR
}

/// Whether a document holds what its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A revision of the server.
    ItsRevision,
    /// The log of a revision of the server.
    ItsLog,
    /// Anything else.
    SomethingElse,
}

/// The server that a document is of, and the revision, if it holds what its name says.
fn revision_of(document: &StoredDocument) -> Option<(Key, Revision)> {
    let name = document.label(label::NAME)?.clone();
    let owner = document.label(label::UID)?.clone();
    let (revision, inputs, named) = match &document.held {
        Held::Revision(inputs) => {
            let revision = inputs.revision();
            let named = document_name(&name, &revision);
            (revision, Some((**inputs).clone()), named)
        }
        Held::Log => {
            let revision = document.label(label::REVISION)?.clone();
            let named = kept_log::document_name(&name, &revision);
            (revision, None, named)
        }
        Held::Wording(_) | Held::Recorded(_) | Held::Other => return None,
    };
    if document.metadata.name.as_deref() != Some(&named) {
        return None;
    }
    let server = Key {
        namespace: document.metadata.namespace.clone().unwrap_or_default(),
        name,
    };
    let revision = Revision {
        owner,
        revision,
        inputs,
    };
    Some((server, revision))
}

/// The document of a revision of a server.
pub(super) fn document(server: &LayaServer, inputs: &RevisionInputs) -> ControllerRevision {
    let revision = inputs.revision();
    let name = document_name(&server.name_any(), &revision);
    // Cannot fail: it holds strings, numbers and structs only.
    let held = serde_json::to_value(inputs).unwrap_or_default();
    stored::of_revision(Kind::LayaServer, server, name, &revision, held)
}

/// The document that keeps the end of the log of a revision of a server.
pub(super) fn log_document(server: &LayaServer, revision: &str, log: String) -> ControllerRevision {
    let name = kept_log::document_name(&server.name_any(), revision);
    // Cannot fail: it holds a string only.
    let held = serde_json::to_value(KeptLog { log }).unwrap_or_default();
    stored::of_revision(Kind::LayaServer, server, name, revision, held)
}

#[cfg(test)]
mod tests;
