//! What tasks do on an engine in memory: what a test says, or what they are called for.

use ::backend::{Owner, RunState, TaskSeen, TaskSpec, VolumeRole};
use api::label::Task;
use decision::contract::Digest;
use serde_json::{Value, json};

use super::{FakeBackend, State};

/// What a task does.
#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// It does at once what it is called for: fetch publishes, verify looks, prune removes.
    Obeys,
    /// It runs until the test ends it.
    Runs,
    /// It was made and does not start.
    Stays,
    /// It ends at once.
    Ends {
        /// Its code.
        code: i32,
        /// Its RESULT.
        result: Option<Value>,
    },
}

/// The value of an argument.
#[must_use]
pub fn argument(spec: &TaskSpec, name: &str) -> Option<String> {
    arguments(spec, name).into_iter().next()
}

/// All values of an argument.
#[must_use]
pub fn arguments(spec: &TaskSpec, name: &str) -> Vec<String> {
    let pairs = spec.arguments.0.windows(2).filter(|pair| pair[0] == name);
    pairs.map(|pair| pair[1].clone()).collect()
}

/// RESULT of a fetch or a verification that found a checkpoint.
#[must_use]
pub fn fetched(digest: &str) -> Value {
    json!({"ok": true, "digest": digest, "sizeBytes": 740, "fileCount": 6, "parents": [], "present": false})
}

/// RESULT of a task that refuses.
#[must_use]
pub fn refused(reason: &str, message: &str, code: i32) -> Script {
    Script::Ends {
        code,
        result: Some(json!({"ok": false, "reason": reason, "message": message, "code": code})),
    }
}

impl FakeBackend {
    /// A task of a number runs once.
    pub(super) fn run_task(&self, state: &mut State, owner: &Owner, spec: &TaskSpec) {
        let now = (state.time)();
        if let Some((_, seen)) = state
            .of(owner)
            .tasks
            .iter_mut()
            .find(|(_, seen)| seen.key == spec.key)
        {
            if seen.state == RunState::Created {
                seen.state = RunState::Running;
                seen.started_at = Some(now);
            }
            return;
        }
        let script = (state.script.clone())(owner, spec);
        let mut seen = TaskSeen {
            key: spec.key.clone(),
            state: RunState::Running,
            started_at: Some(now),
            finished_at: None,
            exit_code: None,
            oom_killed: false,
            progress: None,
            result: None,
            log_tail: String::new(),
            waiting: None,
        };
        let mut end = |code, result| {
            seen.state = RunState::Exited;
            seen.finished_at = Some(now);
            seen.exit_code = Some(code);
            seen.result = result;
        };
        match script {
            Script::Runs => {}
            Script::Stays => {
                seen.state = RunState::Created;
                seen.started_at = None;
            }
            Script::Ends { code, result } => {
                if code == 0 && spec.key.task == Task::Fetch {
                    let digest = result.as_ref().and_then(|result| result["digest"].as_str());
                    if let Some(digest) = digest {
                        self.publish(state, owner, digest);
                    }
                }
                end(code, result);
            }
            Script::Obeys => {
                let (code, result) = self.obey(state, owner, spec);
                end(code, Some(result));
            }
        }
        state.of(owner).tasks.push((spec.clone(), seen));
    }

    fn publish(&self, state: &mut State, owner: &Owner, digest: &str) {
        if let Some(volume) = state.volume(&self.capabilities, owner, &VolumeRole::Models) {
            state
                .published
                .entry(volume.uid)
                .or_default()
                .insert(digest.to_owned());
        }
    }

    fn obey(&self, state: &mut State, owner: &Owner, spec: &TaskSpec) -> (i32, Value) {
        match spec.key.task {
            Task::Fetch => {
                let reference = argument(spec, "--oci").unwrap_or_default();
                let digest = argument(spec, "--digest");
                let digest = digest.unwrap_or_else(|| Digest::of(reference.as_bytes()).to_string());
                self.publish(state, owner, &digest);
                (0, fetched(&digest))
            }
            Task::Verify => {
                let digest = argument(spec, "--digest").unwrap_or_default();
                let is_foreign = argument(spec, "--path").is_some();
                let is_there = state
                    .published
                    .values()
                    .any(|digests| digests.contains(&digest));
                if is_foreign || is_there {
                    (0, fetched(&digest))
                } else {
                    let message = "no folder of this digest";
                    (
                        3,
                        json!({"ok": false, "reason": "ModelDamaged", "message": message, "code": 3}),
                    )
                }
            }
            Task::Prune => {
                let keep = arguments(spec, "--keep");
                state.kept.extend(keep);
                let deleted = arguments(spec, "--delete");
                let kept = state.kept.clone();
                for digests in state.published.values_mut() {
                    digests.retain(|digest| kept.contains(digest) || !deleted.contains(digest));
                }
                (
                    0,
                    json!({"ok": true, "deleted": deleted, "freedBytes": 740, "unknown": []}),
                )
            }
            _ => (
                2,
                json!({"ok": false, "message": "not understood", "code": 2}),
            ),
        }
    }
}
