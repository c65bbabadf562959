//! A container of ours that no object owns: it does one thing with the volume of models for somebody who waits, and is
//! removed in any case. It goes on in the background when whoever asked for it goes away, and what a process that was
//! killed left is removed later.

use std::time::Duration;

use api::group::Kind;
use api::label::{self, Task};
use bollard::models::{ContainerCreateBody, ContainerSummary};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::oneshot;

use super::names::Instance;
use super::volumes::random_uid;
use super::{Docker, Inner, labels};
use crate::{BackendError, Owner, TaskSpec, task_protocol};

/// For one part of what it does: files on their way, or the task itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(1800);
/// A helper of this age is nobody's any more, in seconds: an import has [`PATIENCE`] twice.
const LEFT_OVER_SECONDS: i64 = 3600;
/// A check of the GPU of this age is nobody's any more, in seconds: it has some ten.
const CHECK_LEFT_OVER_SECONDS: i64 = 300;
/// Between two looks for what is left over.
const LEFT_OVER_EVERY: Duration = Duration::from_secs(3600);
/// Between two looks whether it has ended.
const AGAIN: Duration = Duration::from_millis(300);
/// Bytes of output that are read: a RESULT has at most 256 KiB.
const OUTPUT: usize = 512 << 10;

/// What a helper is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// A folder of this machine is published.
    Import,
    /// What lies in the volume is told.
    Look,
    /// Checkpoints are deleted.
    Prune,
}

impl Errand {
    const ALL: [Self; 3] = [Self::Import, Self::Look, Self::Prune];

    const fn word(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Look => "look",
            Self::Prune => "prune",
        }
    }

    /// What names of its helpers begin with.
    fn prefix(self, instance: &Instance) -> String {
        format!("{}{}-", instance.prefix(), self.word())
    }
}

/// A helper that is to be made.
pub(super) struct Helper {
    pub(super) name: String,
    /// What it does, for errors.
    pub(super) what: String,
    pub(super) body: ContainerCreateBody,
}

impl Docker {
    /// A helper that runs a task of nobody's.
    pub(super) fn helper(
        &self,
        errand: Errand,
        what: String,
        spec: &TaskSpec,
    ) -> Result<Helper, BackendError> {
        let renderer = self.inner.renderer();
        let mut body = renderer.task(&nobody(), spec, &spec.image);
        // It is nobody's child: no object is to claim it, and no sweep to find it.
        body.labels = Some(labels::ours(&renderer.instance));
        Ok(Helper {
            name: format!("{}{}", errand.prefix(&renderer.instance), random_uid()?),
            what,
            body,
        })
    }

    /// Goes on in the background, also when whoever waits for it goes away.
    pub(super) async fn in_background(
        &self,
        what: String,
        work: impl Future<Output = Result<Value, BackendError>> + Send + 'static,
    ) -> Result<Value, BackendError> {
        let (tell, told) = oneshot::channel();
        let work = Box::pin(work);
        self.spawn(async move {
            let result = work.await;
            // Nobody may wait for it any more.
            let _ = tell.send(result);
        });
        told.await.map_err(|_| BackendError::Failed {
            what,
            message: "it was given up, since the process ends".to_owned(),
        })?
    }
}

impl Inner {
    /// Makes a helper, fills it, runs it to its end and removes it: the RESULT of its task.
    pub(super) async fn run_helper(
        &self,
        helper: Helper,
        fill: impl Future<Output = Result<(), BackendError>> + Send,
    ) -> Result<Value, BackendError> {
        let Helper { name, what, body } = helper;
        let result = match self.create(&name, body).await {
            Ok(()) => match fill.await {
                Ok(()) => self.result_of(&name, &what).await,
                Err(error) => Err(error),
            },
            // One may be there all the same, where the answer alone was lost.
            Err(error) => Err(error),
        };
        // Also where it failed: it is of no use to anybody. What it did in the volume stays done.
        if let Err(error) = self.remove(&name).await {
            tracing::warn!(%error, container = name, "a helper was not removed; it is tried again later");
        }
        result
    }

    async fn result_of(&self, name: &str, what: &str) -> Result<Value, BackendError> {
        self.start(name).await?;
        let ended = tokio::time::timeout(PATIENCE, self.until_ended(name)).await;
        let code = ended.map_err(|_| BackendError::TimedOut {
            what: what.to_owned(),
            after: PATIENCE,
        })??;
        let output = self.output(name, OUTPUT).await?;
        let said = task_protocol::read(&output);
        said.result.ok_or_else(|| BackendError::Failed {
            what: what.to_owned(),
            message: format!(
                "the task ended with code {code} and no result: {}",
                said.tail
            ),
        })
    }

    async fn until_ended(&self, name: &str) -> Result<i64, BackendError> {
        loop {
            let inspected = self.inspect(name).await?;
            let Some(state) = inspected.and_then(|inspected| inspected.state) else {
                return Err(BackendError::Failed {
                    what: format!("wait for container {name}"),
                    message: "somebody removed it".to_owned(),
                });
            };
            let ended = state
                .finished_at
                .as_deref()
                .is_some_and(|at| !at.starts_with("0001-"));
            if state.running == Some(false) && ended {
                return Ok(state.exit_code.unwrap_or(-1));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Removes what was left behind now, and every hour: what is too young yet, or could not be removed.
    pub(super) async fn keep_removing_left_over_helpers(&self) {
        loop {
            self.remove_left_over_helpers().await;
            tokio::time::sleep(LEFT_OVER_EVERY).await;
        }
    }

    /// Removes helpers, and checks of the GPU, that a process left behind which was killed.
    async fn remove_left_over_helpers(&self) {
        let instance = self.instance();
        let ours = format!("{}={}", label::INSTANCE, instance.as_str());
        let listed = match self.list("label", vec![ours]).await {
            Ok(listed) => listed,
            Err(error) => {
                return tracing::debug!(%error, "old helpers cannot be looked for");
            }
        };
        let prefixes = Errand::ALL.map(|errand| errand.prefix(&instance));
        let now = Timestamp::now().as_second();
        let old: Vec<String> = listed
            .into_iter()
            .filter(|container| {
                is_left_over(container, &prefixes, now) || is_old_check(container, now)
            })
            .filter_map(|container| container.id)
            .collect();
        for id in old {
            match self.remove(&id).await {
                Ok(()) => tracing::info!(container = id, "an old helper was removed"),
                Err(error) => tracing::warn!(%error, "an old helper was not removed"),
            }
        }
    }
}

/// Whether a container of ours is a helper that nobody waits for any more.
fn is_left_over(container: &ContainerSummary, prefixes: &[String], now_seconds: i64) -> bool {
    let labels = container.labels.as_ref();
    // A server may have such a name; it has an owner.
    let is_nobodys = labels.is_some_and(|labels| !labels.contains_key(label::UID));
    let names = container.names.iter().flatten();
    let mut names = names.map(|name| name.trim_start_matches('/'));
    let is_old = is_older(container, LEFT_OVER_SECONDS, now_seconds);
    let is_helper = |name: &str| {
        prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
    };
    is_nobodys && is_old && names.any(is_helper)
}

/// Whether a container of ours is a check of the GPU that nobody waits for any more. It has an owner, and its name is used
/// again only by a check for the same one.
fn is_old_check(container: &ContainerSummary, now_seconds: i64) -> bool {
    let labels = container.labels.as_ref();
    let word = labels.and_then(|labels| labels.get(label::TASK));
    word.is_some_and(|word| word == Task::GpuCheck.as_str())
        && is_older(container, CHECK_LEFT_OVER_SECONDS, now_seconds)
}

fn is_older(container: &ContainerSummary, seconds: i64, now_seconds: i64) -> bool {
    container
        .created
        .is_some_and(|at| now_seconds.saturating_sub(at) > seconds)
}

/// Owner of what has none.
pub(super) fn nobody() -> Owner {
    Owner {
        kind: Kind::LayaModel,
        namespace: "default".to_owned(),
        name: "import".to_owned(),
        uid: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_helpers_of_nobody_are_left_over() {
        let cases = [
            ("/relay-012345-import-aabb", None, 0, true),
            ("/relay-012345-prune-aabb", None, 0, true),
            ("/relay-012345-look-aabb", None, 0, true),
            ("/relay-012345-import-aabb", None, 6000, false),
            (
                "/relay-012345-import-aabbccddee-0",
                Some("a server's"),
                0,
                false,
            ),
            ("/relay-012345-prune-lm-v1-1", Some("a model's"), 0, false),
            ("/relay-012345-fetch-lm-import-1", None, 0, false),
            ("/relay-999999-import-aabb", None, 0, false),
        ];
        for (name, uid, created, expected) in cases {
            let labels = uid.map(|uid| (label::UID.to_owned(), uid.to_owned()));
            let container = ContainerSummary {
                names: Some(vec![name.to_owned()]),
                labels: Some(labels.into_iter().collect()),
                created: Some(created),
                ..ContainerSummary::default()
            };
            let instance = Instance::parse("0123456789ab").unwrap();
            let prefixes = Errand::ALL.map(|errand| errand.prefix(&instance));
            let found = is_left_over(&container, &prefixes, 7200);
            assert_eq!(found, expected, "{name} {uid:?} {created}");
        }
    }

    #[test]
    fn old_checks_of_the_gpu_are_left_over() {
        for (task, created, expected) in [
            (Some("gpu-check"), 0, true),
            (Some("gpu-check"), 100, false),
            (Some("fetch"), 0, false),
            (None, 0, false),
        ] {
            let labels = task.map(|task| (label::TASK.to_owned(), task.to_owned()));
            let container = ContainerSummary {
                labels: Some(labels.into_iter().collect()),
                created: Some(created),
                ..ContainerSummary::default()
            };
            let found = is_old_check(&container, 400);
            assert_eq!(found, expected, "{task:?} {created}");
        }
    }
}
