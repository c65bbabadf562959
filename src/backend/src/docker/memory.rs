//! What is remembered between two looks, none of which may cause an action by itself: what containers that ended said,
//! limits, exit codes that inspection no longer shows, the last GPU check, what lay in the volume of models, and names that
//! are being worked on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::gpu::Checked;
use crate::ModelsView;
use crate::task_protocol::Said;

/// Entries of each kind.
const MAX_ENTRIES: usize = 1024;
/// How long a GPU check counts.
const GPU_CHECK: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct Memory {
    ended: Mutex<BTreeMap<String, Arc<Said>>>,
    limits: Mutex<BTreeMap<String, u64>>,
    exits: Mutex<BTreeMap<String, i32>>,
    gpu: Mutex<Option<(Instant, Checked)>>,
    models: Mutex<Option<(Timestamp, ModelsView)>>,
    under_way: Arc<Mutex<BTreeSet<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember<V>(map: &Mutex<BTreeMap<String, V>>, key: String, value: V) {
    let mut map = lock(map);
    if map.len() >= MAX_ENTRIES && !map.contains_key(&key) {
        // Any: it is read again when it is needed.
        map.pop_first();
    }
    map.insert(key, value);
}

impl Memory {
    /// What a container said that ended then; neither changes any more.
    pub(super) fn ended(&self, key: &str) -> Option<Arc<Said>> {
        lock(&self.ended).get(key).cloned()
    }

    pub(super) fn remember_ended(&self, key: String, said: Arc<Said>) {
        remember(&self.ended, key, said);
    }

    /// Limit of memory of a container, by its id.
    pub(super) fn limit(&self, id: &str) -> Option<u64> {
        lock(&self.limits).get(id).copied()
    }

    pub(super) fn remember_limit(&self, id: String, bytes: u64) {
        remember(&self.limits, id, bytes);
    }

    /// How a container ended last that the engine started again since.
    pub(super) fn exit(&self, id: &str) -> Option<i32> {
        lock(&self.exits).get(id).copied()
    }

    pub(super) fn remember_exit(&self, id: String, code: i32) {
        remember(&self.exits, id, code);
    }

    /// What the last GPU check found, while it counts. What was found before `since` is of another life of the engine.
    pub(super) fn gpu(&self, since: Instant) -> Option<Checked> {
        let (at, checked) = (*lock(&self.gpu))?;
        (at >= since && at.elapsed() < GPU_CHECK).then_some(checked)
    }

    /// A check, or a start that failed for want of a GPU, said so `age` ago.
    pub(super) fn remember_gpu(&self, checked: Checked, age: Duration) {
        let Some(at) = Instant::now().checked_sub(age) else {
            return;
        };
        let mut gpu = lock(&self.gpu);
        if gpu.is_none_or(|(known, _)| known <= at) {
            *gpu = Some((at, checked));
        }
    }

    /// What a task found in the volume of models, and when; what was published since is not in it.
    pub(super) fn models(&self) -> Option<(Timestamp, ModelsView)> {
        lock(&self.models).clone()
    }

    pub(super) fn remember_models(&self, found: ModelsView) {
        *lock(&self.models) = Some((Timestamp::now(), found));
    }

    /// Takes a container for work in the background; `None` while somebody else has it.
    pub(super) fn take(&self, name: &str) -> Option<UnderWay> {
        let taken = lock(&self.under_way).insert(name.to_owned());
        taken.then(|| UnderWay {
            name: name.to_owned(),
            all: self.under_way.clone(),
        })
    }

    /// Whether somebody works on it.
    pub(super) fn is_under_way(&self, name: &str) -> bool {
        lock(&self.under_way).contains(name)
    }
}

/// Work on one container; it ends with this.
#[derive(Debug)]
pub(super) struct UnderWay {
    name: String,
    all: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_check_counts_for_ten_minutes_and_one_connection() {
        let memory = Memory::default();
        let since = Instant::now();
        let found = Checked::Present {
            memory_bytes: Some(8 << 30),
        };
        assert_eq!(memory.gpu(since), None);
        memory.remember_gpu(found, Duration::ZERO);
        assert_eq!(memory.gpu(since), Some(found));
        memory.remember_gpu(Checked::Absent, Duration::from_secs(60));
        assert_eq!(memory.gpu(since), Some(found), "an older one says nothing");
        assert_eq!(
            memory.gpu(Instant::now()),
            None,
            "the engine was connected anew"
        );
    }

    #[test]
    fn one_at_a_time_works_on_a_container() {
        let memory = Memory::default();
        let first = memory.take("a").unwrap();
        assert!(memory.take("a").is_none());
        assert!(memory.is_under_way("a"));
        drop(first);
        assert!(memory.take("a").is_some());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let memory = Memory::default();
        for number in 0..2 * MAX_ENTRIES {
            memory.remember_exit(number.to_string(), 1);
        }
        assert_eq!(lock(&memory.exits).len(), MAX_ENTRIES);
    }
}
