//! Stored revisions as far as they are known: who owns them, when they were made. Only metadata is watched; what they
//! hold is read when it matters.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::field_manager;
use api::group::Kind;
use api::label;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;

use crate::merge::Change;
use crate::queue::Key;

/// A stored revision without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Uid of the policy it was made for.
    pub owner: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// Its resource version as a number: it never changes, so this is the order of creation within a second.
    pub version: u64,
}

/// Documents by policy.
#[derive(Debug, Default)]
pub struct Documents {
    by_policy: Mutex<HashMap<Key, Vec<Document>>>,
}

impl Documents {
    /// Which of all ControllerRevisions are watched.
    #[must_use]
    pub fn watched() -> watcher::Config {
        watcher::Config::default().labels(&format!(
            "{}={},{}={}",
            label::KIND,
            Kind::RoutingPolicy,
            label::MANAGED_BY,
            field_manager::CONTROLLER
        ))
    }

    /// Keeps what is needed of an object's metadata.
    pub fn slim(object: &mut PartialObjectMeta<ControllerRevision>) {
        let metadata = object.meta_mut();
        let labels = metadata.labels.take().map(|labels| {
            let needed = |(key, _): &(String, String)| [label::NAME, label::UID].contains(&key.as_str());
            labels.into_iter().filter(needed).collect()
        });
        *metadata = ObjectMeta {
            name: metadata.name.take(),
            namespace: metadata.namespace.take(),
            uid: metadata.uid.take(),
            resource_version: metadata.resource_version.take(),
            creation_timestamp: metadata.creation_timestamp.take(),
            labels,
            ..ObjectMeta::default()
        };
    }

    /// Takes a change. The policy it is about, so that it is looked at again.
    pub fn changed(&self, change: &Change<PartialObjectMeta<ControllerRevision>>) -> Option<Key> {
        let (Change::Applied(object) | Change::Deleted(object)) = change;
        let metadata = object.meta();
        let labelled = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let policy = Key {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: labelled(label::NAME)?.clone(),
        };
        let uid = metadata.uid.clone().unwrap_or_default();
        let mut by_policy = self.lock();
        let documents = by_policy.entry(policy.clone()).or_default();
        documents.retain(|document| document.uid != uid);
        if matches!(change, Change::Applied(_)) {
            documents.push(Document {
                name: metadata.name.clone().unwrap_or_default(),
                uid,
                owner: labelled(label::UID).cloned(),
                created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
                version: metadata
                    .resource_version
                    .as_deref()
                    .and_then(|version| version.parse().ok())
                    .unwrap_or(0),
            });
        }
        if documents.is_empty() {
            by_policy.remove(&policy);
        }
        Some(policy)
    }

    /// Those of a policy's name, whoever owned them.
    #[must_use]
    pub fn of(&self, policy: &Key) -> Vec<Document> {
        self.lock().get(policy).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Document>>> {
        self.by_policy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
