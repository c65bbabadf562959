//! What this process remembers of models between passes. All of it may be lost: it delays a decision or saves a write, and
//! never causes anything.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::kinds::LayaModel;
use backend::{TaskKey, TaskSeen};
use jiff::Timestamp;
use kube::ResourceExt;

/// Progress is written at most this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// What is remembered, by uid.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The begin of the fetch and when this process saw it first; `None` where it was there at the first look.
    fetch: Option<(Option<Timestamp>, Option<Duration>)>,
    /// When progress was written last.
    wrote: Option<Duration>,
    /// Bytes of a task that are counted.
    counted: Option<(TaskKey, u64)>,
    /// A task whose failure is counted.
    failed: Option<TaskKey>,
    /// Since when the volume is seen unbound.
    unbound: Option<Duration>,
}

impl Memory {
    /// How long this process has known that the fetch in status began; `None` when it may have begun before the first look.
    pub(super) fn fetch_age(&self, model: &LayaModel, boot: Duration) -> Option<Duration> {
        let started = model
            .status
            .as_ref()?
            .fetch
            .as_ref()
            .and_then(|fetch| fetch.started_at);
        let mut all = self.lock();
        let known = all.entry(model.uid().unwrap_or_default()).or_default();
        let first = match known.fetch {
            Some((known, first)) if known == started => first,
            // It began while this process ran.
            Some(_) => Some(boot),
            None => None,
        };
        known.fetch = Some((started, first));
        first.map(|first| boot.saturating_sub(first))
    }

    /// Whether progress may be written again.
    pub(super) fn progress_due(&self, model: &LayaModel, boot: Duration) -> bool {
        let all = self.lock();
        let wrote = all
            .get(&model.uid().unwrap_or_default())
            .and_then(|known| known.wrote);
        wrote.is_none_or(|wrote| boot.saturating_sub(wrote) >= PROGRESS_EVERY)
    }

    /// Progress is about to be written.
    pub(super) fn wrote_progress(&self, uid: &str, boot: Duration) {
        self.lock().entry(uid.to_owned()).or_default().wrote = Some(boot);
    }

    /// Bytes that a task brought since it was asked last.
    pub(super) fn more_bytes(&self, uid: &str, task: &TaskSeen) -> u64 {
        let bytes = task
            .progress
            .as_ref()
            .and_then(|progress| progress.bytes)
            .unwrap_or(0);
        let mut all = self.lock();
        let known = all.entry(uid.to_owned()).or_default();
        let more = match &known.counted {
            Some((key, counted)) if *key == task.key => bytes.saturating_sub(*counted),
            // What an earlier attempt left is not brought again, and nobody knows how much that is: from here on it counts.
            _ => 0,
        };
        known.counted = Some((task.key.clone(), bytes));
        more
    }

    /// Whether the failure of a task is new.
    pub(super) fn failed_first(&self, uid: &str, task: &TaskSeen) -> bool {
        let mut all = self.lock();
        let known = all.entry(uid.to_owned()).or_default();
        let is_new = known.failed.as_ref() != Some(&task.key);
        known.failed = Some(task.key.clone());
        is_new
    }

    /// How long this process has seen the volume unbound.
    pub(super) fn unbound_for(&self, uid: &str, unbound: bool, boot: Duration) -> Option<Duration> {
        let mut all = self.lock();
        let known = all.entry(uid.to_owned()).or_default();
        known.unbound = unbound.then(|| known.unbound.unwrap_or(boot));
        known.unbound.map(|since| boot.saturating_sub(since))
    }

    /// The task is gone; another one may have its number.
    pub(super) fn task_gone(&self, uid: &str) {
        if let Some(known) = self.lock().get_mut(uid) {
            known.failed = None;
        }
    }

    /// The object is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn model(status: &Value) -> LayaModel {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "a", "uid": "u"},
            "spec": {"source": {"oci": {"reference": format!("r@sha256:{}", "0".repeat(64))}}}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn fault_16_what_began_before_the_process_has_no_age_and_what_began_later_has() {
        let memory = Memory::default();
        let at = Duration::from_secs;
        let old = model(&json!({"fetch": {"startedAt": "2026-11-30T10:00:00Z"}}));
        assert_eq!(memory.fetch_age(&old, at(5)), None);
        assert_eq!(memory.fetch_age(&old, at(500)), None);
        let new = model(&json!({"fetch": {"startedAt": "2026-11-30T11:00:00Z"}}));
        assert_eq!(memory.fetch_age(&new, at(600)), Some(at(0)));
        assert_eq!(memory.fetch_age(&new, at(660)), Some(at(60)));
    }

    #[test]
    fn progress_is_written_every_ten_seconds_at_most() {
        let memory = Memory::default();
        let model = model(&json!({}));
        assert!(memory.progress_due(&model, Duration::from_secs(5)));
        memory.wrote_progress("u", Duration::from_secs(5));
        assert!(!memory.progress_due(&model, Duration::from_secs(14)));
        assert!(memory.progress_due(&model, Duration::from_secs(15)));
    }
}
