//! Objects that this process knows to be newer than its cache: it wrote them itself, or read them after a conflict. A
//! pass never decides by something older than its own last write, however late the watch is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Resource;

use crate::queue::Key;
use crate::watched::{Watched, is_newer};

/// At most one object per key, kept until the cache has it.
#[derive(Debug)]
pub(super) struct Fresh<K> {
    objects: Mutex<HashMap<Key, Arc<Watched<K>>>>,
}

impl<K> Default for Fresh<K> {
    fn default() -> Self {
        Self {
            objects: Mutex::default(),
        }
    }
}

impl<K: Resource> Fresh<K> {
    /// This is what the object is.
    pub(super) fn put(&self, object: Watched<K>) {
        self.lock().insert(Key::of(&object), Arc::new(object));
    }

    /// The newer one of what is cached and what is known. What the cache has caught up with is dropped.
    pub(super) fn newest(&self, cached: Arc<Watched<K>>) -> Arc<Watched<K>> {
        let key = Key::of(cached.as_ref());
        let mut objects = self.lock();
        let Some(known) = objects.get(&key) else {
            return cached;
        };
        if known.meta().uid == cached.meta().uid && is_newer(known.meta(), cached.meta()) {
            return known.clone();
        }
        objects.remove(&key);
        cached
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Watched<K>>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn object(uid: &str, version: u64) -> Watched<ConfigMap> {
        Watched::Parsed(ConfigMap {
            metadata: ObjectMeta {
                namespace: Some("space".to_owned()),
                name: Some("a".to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_string()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        })
    }

    #[test]
    fn fault_08_a_cache_behind_our_own_write_is_not_decided_by() {
        let fresh = Fresh::default();
        let version = |cached| {
            let newest = fresh.newest(Arc::new(cached));
            newest.meta().resource_version.clone().unwrap()
        };
        assert_eq!(version(object("u1", 4)), "4");
        fresh.put(object("u1", 7));
        assert_eq!(version(object("u1", 4)), "7", "the cache is behind");
        assert_eq!(version(object("u1", 5)), "7");
        assert_eq!(version(object("u1", 7)), "7");
        assert_eq!(version(object("u1", 4)), "4", "it had caught up, so nothing is kept");
        fresh.put(object("u1", 9));
        assert_eq!(version(object("u2", 8)), "8", "another object of the name");
    }
}
