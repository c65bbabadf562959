//! One cache out of one watch per namespace. `reflector` alone would do for one watch; it says nothing, though, about
//! objects that a new list no longer has, and two lists into one store would empty it in turns. Here a deletion that
//! happened while nobody watched is told like any other, and an event that comes late changes nothing.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::Event;

use crate::watched::is_newer;

/// What changed in a cache.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// It is new or other than before.
    Applied(Arc<K>),
    /// It is gone; what it was at last.
    Deleted(Arc<K>),
}

/// Watches that fill one cache. Each has objects of its own namespace, or the only one has all.
#[derive(Debug)]
pub struct Merge<K: Resource<DynamicType = ()> + Clone + Debug + 'static> {
    writer: Writer<K>,
    store: Store<K>,
    sources: Vec<Listing<K>>,
    /// What was seen before the cache was complete; `None` since then.
    early: Option<HashMap<ObjectRef<K>, K>>,
}

#[derive(Debug)]
struct Listing<K: Resource<DynamicType = ()>> {
    /// `None` sees every namespace.
    namespace: Option<String>,
    /// Names that the list under way has had so far.
    listed: Option<HashSet<ObjectRef<K>>>,
    complete: bool,
}

impl<K> Merge<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    /// An empty cache that is complete once each of these namespaces (`None`: all) has been listed.
    #[must_use]
    pub fn new(namespaces: Vec<Option<String>>) -> Self {
        let writer = Writer::default();
        let sources = namespaces
            .into_iter()
            .map(|namespace| Listing {
                namespace,
                listed: None,
                complete: false,
            })
            .collect();
        Self {
            store: writer.as_reader(),
            writer,
            sources,
            early: Some(HashMap::new()),
        }
    }

    /// The cache. Nothing is in it before every namespace has been listed once.
    #[must_use]
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Takes what watch number `source` brought.
    pub fn take(&mut self, source: usize, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.sources[source].listed = Some(HashSet::new());
                if let Some(early) = &mut self.early {
                    let namespace = self.sources[source].namespace.as_deref();
                    early.retain(|_, object| !is_within(object, namespace));
                }
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listed) = &mut self.sources[source].listed {
                    listed.insert(ObjectRef::from_obj(&object));
                }
                self.apply(object)
            }
            Event::InitDone => self.listed(source),
            Event::Apply(object) if self.is_late(&object) => Vec::new(),
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) if self.is_late(&object) => Vec::new(),
            Event::Delete(object) => self.delete(&ObjectRef::from_obj(&object)),
        }
    }

    /// The list of one namespace is whole.
    fn listed(&mut self, source: usize) -> Vec<Change<K>> {
        let Listing {
            namespace,
            listed,
            complete,
        } = &mut self.sources[source];
        *complete = true;
        let listed = listed.take().unwrap_or_default();
        if self.early.is_none() {
            let gone: Vec<_> = self
                .store
                .state_filter(|object| is_within(object, namespace.as_deref()))
                .iter()
                .map(|object| ObjectRef::from_obj(object.as_ref()))
                .filter(|object| !listed.contains(object))
                .collect();
            return gone.iter().flat_map(|object| self.delete(object)).collect();
        }
        if !self.sources.iter().all(|source| source.complete) {
            return Vec::new();
        }
        self.writer.apply_watcher_event(&Event::Init);
        for object in self.early.take().unwrap_or_default().into_values() {
            self.writer.apply_watcher_event(&Event::InitApply(object));
        }
        self.writer.apply_watcher_event(&Event::InitDone);
        self.store.state().into_iter().map(Change::Applied).collect()
    }

    /// An event about something older than what is cached: it was sent twice, or overtaken.
    fn is_late(&self, object: &K) -> bool {
        let key = ObjectRef::from_obj(object);
        match &self.early {
            Some(early) => early
                .get(&key)
                .is_some_and(|seen| is_newer(seen.meta(), object.meta())),
            None => self
                .store
                .get(&key)
                .is_some_and(|cached| is_newer(cached.meta(), object.meta())),
        }
    }

    fn apply(&mut self, object: K) -> Vec<Change<K>> {
        let key = ObjectRef::from_obj(&object);
        if let Some(early) = &mut self.early {
            early.insert(key, object);
            return Vec::new();
        }
        let replaced = self
            .store
            .get(&key)
            .filter(|cached| cached.meta().uid != object.meta().uid);
        self.writer.apply_watcher_event(&Event::Apply(object));
        let applied = self.store.get(&key).map(Change::Applied);
        let replaced = replaced.map(Change::Deleted);
        replaced.into_iter().chain(applied).collect()
    }

    fn delete(&mut self, key: &ObjectRef<K>) -> Vec<Change<K>> {
        if let Some(early) = &mut self.early {
            early.remove(key);
            return Vec::new();
        }
        let Some(cached) = self.store.get(key) else {
            return Vec::new();
        };
        self.writer
            .apply_watcher_event(&Event::Delete(cached.as_ref().clone()));
        vec![Change::Deleted(cached)]
    }
}

/// Whether a watch of this namespace (`None`: of all) sees the object.
fn is_within<K: Resource>(object: &K, namespace: Option<&str>) -> bool {
    namespace.is_none() || object.meta().namespace.as_deref() == namespace
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn object(namespace: &str, name: &str, uid: &str, version: u64) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_string()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    fn told(changes: &[Change<ConfigMap>]) -> Vec<String> {
        let name = |object: &ConfigMap| {
            let ObjectMeta { name, uid, .. } = &object.metadata;
            format!("{}/{}", name.as_deref().unwrap(), uid.as_deref().unwrap())
        };
        let mut told: Vec<_> = changes
            .iter()
            .map(|change| match change {
                Change::Applied(object) => format!("+{}", name(object)),
                Change::Deleted(object) => format!("-{}", name(object)),
            })
            .collect();
        told.sort();
        told
    }

    fn ready(merge: &Merge<ConfigMap>) -> bool {
        merge.store().wait_until_ready().now_or_never().is_some()
    }

    fn list(merge: &mut Merge<ConfigMap>, source: usize, objects: Vec<ConfigMap>) -> Vec<String> {
        let mut changes = merge.take(source, Event::Init);
        for object in objects {
            changes.extend(merge.take(source, Event::InitApply(object)));
        }
        changes.extend(merge.take(source, Event::InitDone));
        told(&changes)
    }

    #[test]
    fn is_ready_once_every_namespace_was_listed() {
        let mut merge = Merge::new(vec![Some("north".to_owned()), Some("south".to_owned())]);
        assert_eq!(list(&mut merge, 0, vec![object("north", "a", "u1", 1)]), [""; 0]);
        for event in [
            Event::Apply(object("north", "b", "u2", 2)),
            Event::Apply(object("north", "d", "u4", 2)),
            Event::Delete(object("north", "d", "u4", 3)),
        ] {
            assert_eq!(told(&merge.take(0, event)), [""; 0]);
        }
        assert!(!ready(&merge));
        let all = list(&mut merge, 1, vec![object("south", "c", "u3", 3)]);
        assert_eq!(all, ["+a/u1", "+b/u2", "+c/u3"]);
        assert!(ready(&merge));
    }

    #[test]
    fn fault_05_a_deletion_that_nobody_watched_is_told_by_the_next_list() {
        let mut merge = Merge::new(vec![Some("north".to_owned()), Some("south".to_owned())]);
        let _ = list(&mut merge, 0, vec![object("north", "a", "u1", 1), object("north", "b", "u2", 2)]);
        let _ = list(&mut merge, 1, vec![object("south", "c", "u3", 3)]);
        let again = list(&mut merge, 0, vec![object("north", "b", "u2", 2)]);
        assert_eq!(again, ["+b/u2", "-a/u1"], "and nothing of the other namespace");
        assert_eq!(merge.store().len(), 2);
    }

    #[test]
    fn fault_08_events_that_come_twice_or_late_change_nothing() {
        let mut merge = Merge::new(vec![None]);
        let _ = list(&mut merge, 0, vec![object("north", "a", "u1", 5)]);
        assert_eq!(told(&merge.take(0, Event::Apply(object("north", "a", "u1", 7)))), ["+a/u1"]);
        assert_eq!(told(&merge.take(0, Event::Apply(object("north", "a", "u1", 6)))), [""; 0]);
        assert_eq!(told(&merge.take(0, Event::Delete(object("north", "a", "u0", 4)))), [""; 0]);
        assert_eq!(told(&merge.take(0, Event::Delete(object("north", "a", "u1", 8)))), ["-a/u1"]);
        assert_eq!(told(&merge.take(0, Event::Delete(object("north", "a", "u1", 8)))), [""; 0]);
    }

    #[test]
    fn fault_13_the_same_name_with_another_uid_is_another_object() {
        let mut merge = Merge::new(vec![None]);
        let _ = list(&mut merge, 0, vec![object("north", "a", "u1", 5)]);
        let changed = merge.take(0, Event::Apply(object("north", "a", "u2", 9)));
        assert_eq!(told(&changed), ["+a/u2", "-a/u1"]);
    }
}
