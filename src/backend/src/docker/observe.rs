//! One look at an owner: lists by label, inspects its children, and reads what else was asked. Where a part could not be
//! seen the result says so (`complete`).

use std::sync::Arc;
use std::time::Duration;

use api::label::{self, Task};
use api::reason::Reason;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, InspectContainerOptions, ListContainersOptionsBuilder,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use super::Inner;
use super::engine::LOOK;
use super::gpu;
use super::labels::{self, Identity};
use super::map::{self, Seen};
use super::render::WORK;
use crate::task_protocol::{MAX_RESULT_BYTES, MAX_TAIL_BYTES, Said, read, result_file};
use crate::{
    BackendError, Observed, Owner, Question, Room, RunState, Stranger, TaskSeen, VolumeRole,
};

/// Most children of one owner that are inspected: 16 replicas of three revisions and its tasks are far fewer.
const MAX_CHILDREN: usize = 256;
/// Most containers of ours on an engine.
const MAX_OURS: usize = 4096;
/// Most strangers that are named.
const MAX_STRANGERS: usize = 16;
/// Calls to the engine at once.
const AT_ONCE: usize = 8;
/// Bytes of output of a task that runs; the last PROGRESS is in them.
const RUNNING_BYTES: usize = 64 << 10;
/// Bytes of output of a task that ended: a RESULT and what came before it.
const ENDED_BYTES: usize = MAX_RESULT_BYTES + RUNNING_BYTES;

/// A container of ours, as a list shows it.
#[derive(Debug)]
pub(super) struct Listed {
    pub id: String,
    pub name: String,
    pub running: bool,
    pub identity: Option<Identity>,
    pub owner: Option<Owner>,
}

/// A container that is not ours and has a name that begins as ours do.
struct Other {
    name: String,
    holder: String,
}

impl Inner {
    /// Containers of ours: those of one owner, or all.
    pub(super) async fn children(
        &self,
        owner: Option<&Owner>,
    ) -> Result<Vec<Listed>, BackendError> {
        let mut wanted = vec![format!("{}={}", label::INSTANCE, self.instance().as_str())];
        if let Some(owner) = owner {
            wanted.push(format!("{}={}", label::UID, owner.uid));
        }
        let listed = self.list("label", wanted).await?;
        Ok(listed.into_iter().filter_map(listed_of).collect())
    }

    /// Containers by a filter of the engine.
    pub(super) async fn list(
        &self,
        key: &str,
        values: Vec<String>,
    ) -> Result<Vec<ContainerSummary>, BackendError> {
        let filters = [(key.to_owned(), values)].into_iter().collect();
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        self.engine
            .call("list containers", LOOK, |docker| async move {
                docker.list_containers(Some(options)).await
            })
            .await
    }

    async fn others(&self) -> Result<Vec<Other>, BackendError> {
        let instance = self.instance();
        let pattern = format!("^/?{}", instance.prefix());
        let listed = self.list("name", vec![pattern]).await?;
        let other = |container: ContainerSummary| {
            let labels = container.labels.unwrap_or_default();
            if labels::is_ours(&labels, &instance) {
                return None;
            }
            let name = container.names.unwrap_or_default().into_iter().next()?;
            let id: String = container.id.unwrap_or_default().chars().take(12).collect();
            Some(Other {
                name: name.trim_start_matches('/').to_owned(),
                holder: format!(
                    "container {id} of image {}",
                    container.image.unwrap_or_default()
                ),
            })
        };
        Ok(listed.into_iter().filter_map(other).collect())
    }

    /// What a container is, `None` where it is gone.
    pub(super) async fn inspect(
        &self,
        name: &str,
    ) -> Result<Option<bollard::models::ContainerInspectResponse>, BackendError> {
        let what = format!("inspect container {name}");
        let name = name.to_owned();
        self.engine
            .find(&what, |docker| async move {
                docker
                    .inspect_container(&name, None::<InspectContainerOptions>)
                    .await
            })
            .await
    }

    /// Everything of an owner.
    pub(super) async fn observe(
        &self,
        owner: &Owner,
        question: &Question,
    ) -> Result<Observed, BackendError> {
        let live = self.engine.live().await?;
        let all = self.children(None).await?;
        let mut observed = Observed {
            complete: all.len() <= MAX_OURS,
            ..Observed::default()
        };
        let own: Vec<&Listed> = all
            .iter()
            .filter(|listed| listed.owner.as_ref() == Some(owner))
            .collect();
        observed.complete &= own.len() <= MAX_CHILDREN;
        let mut ids: Vec<String> = own.iter().map(|listed| listed.id.clone()).collect();
        ids.truncate(MAX_CHILDREN);
        let seen: Vec<Seen> = stream::iter(ids)
            .map(|id| async move { self.inspect(&id).await })
            .buffer_unordered(AT_ONCE)
            .try_filter_map(|inspected| async { Ok(inspected.and_then(Seen::read)) })
            .try_collect()
            .await?;
        for seen in &seen {
            self.memory
                .remember_limit(seen.id().to_owned(), seen.memory_bytes());
            match &seen.identity {
                Identity::Server { .. } => self.add_server(seen, &mut observed).await?,
                Identity::Task(_) => self.add_task(seen, &mut observed).await?,
            }
        }
        observed
            .servers
            .sort_by(|a, b| (&a.revision, a.ordinal).cmp(&(&b.revision, b.ordinal)));
        observed
            .tasks
            .sort_by_key(|task| (task.key.task, task.key.attempt));
        self.add_volumes(&question.volumes, &mut observed).await?;
        for image in &question.images {
            let image = self.image_seen(image, &live.facts).await?;
            observed.images.push(image);
        }
        self.add_strangers(owner, &mut observed).await?;
        observed.room = Some(
            self.room(&all, live.facts.memory_bytes, live.facts.local)
                .await?,
        );
        let checked = self.memory.gpu(live.since);
        observed.gpu_memory_bytes = checked.and_then(gpu::Checked::memory_bytes);
        Ok(observed)
    }

    fn state_of(&self, seen: &Seen) -> RunState {
        if self.memory.is_under_way(seen.name()) && seen.state() != RunState::Exited {
            RunState::Stopping
        } else {
            seen.state()
        }
    }

    async fn add_server(&self, seen: &Seen, observed: &mut Observed) -> Result<(), BackendError> {
        let tail = match seen.state() {
            RunState::Exited | RunState::Restarting => {
                // One that is gone by now was there when it was listed, and said nothing.
                let said = self.ended(seen).await?;
                said.map(|said| said.tail.clone()).unwrap_or_default()
            }
            RunState::Created | RunState::Running | RunState::Stopping => String::new(),
        };
        let last_exit = self.memory.exit(seen.id());
        let state = self.state_of(seen);
        let server = map::server(&self.renderer(), seen, state, last_exit, tail);
        observed.servers.extend(server);
        Ok(())
    }

    async fn add_task(&self, seen: &Seen, observed: &mut Observed) -> Result<(), BackendError> {
        let Some(mut task) = map::task(seen, self.state_of(seen)) else {
            return Ok(());
        };
        match seen.state() {
            RunState::Exited => {
                let Some(said) = self.ended(seen).await? else {
                    return Ok(());
                };
                task.progress = said.progress.clone();
                task.result = said.result.clone();
                task.log_tail = said.tail.clone();
            }
            RunState::Running => match self.output(seen.id(), RUNNING_BYTES).await {
                Ok(output) => task.progress = read(&output).progress,
                Err(error) if error.is_blind() => return Err(error),
                // Gone meanwhile, or a log driver that reads nothing: it runs, and that is known.
                Err(error) => tracing::debug!(%error, "no progress is seen"),
            },
            RunState::Created | RunState::Restarting | RunState::Stopping => {}
        }
        if task.key.task == Task::GpuCheck {
            self.learn_gpu(&task);
        }
        observed.tasks.push(task);
        Ok(())
    }

    /// What one that ended said; read once. `None` for a task that is gone by now.
    ///
    /// A log that cannot be read (a driver that keeps none, a file that was removed) hides nothing else of the owner: a
    /// task may have left its result in a file, else its exit code says how it ended.
    async fn ended(&self, seen: &Seen) -> Result<Option<Arc<Said>>, BackendError> {
        let key = seen.ended_key();
        if let Some(said) = self.memory.ended(&key) {
            return Ok(Some(said));
        }
        let mut was_read = true;
        let mut said = match self.output(seen.id(), ENDED_BYTES).await {
            Ok(output) => match seen.identity {
                Identity::Task(_) => read(&output),
                Identity::Server { .. } => Said {
                    tail: Self::shown(&output, MAX_TAIL_BYTES),
                    ..Said::default()
                },
            },
            Err(error) if error.is_blind() => return Err(error),
            Err(error) => {
                let is_task = matches!(seen.identity, Identity::Task(_));
                if is_task && self.inspect(seen.id()).await?.is_none() {
                    return Ok(None);
                }
                tracing::warn!(%error, "the log of a container that ended cannot be read");
                was_read = false;
                Said::default()
            }
        };
        if said.result.is_none() && has_work(seen) {
            said.result = self.result_file(seen.id()).await?;
        }
        let said = Arc::new(said);
        // What could not be read now may be read at the next look.
        if was_read {
            self.memory.remember_ended(key, said.clone());
        }
        Ok(Some(said))
    }

    /// `/work/result.json`, which outlives a log.
    async fn result_file(&self, id: &str) -> Result<Option<serde_json::Value>, BackendError> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(&format!("{WORK}/result.json"))
            .build();
        let id = id.to_owned();
        let found = self
            .engine
            .find("read result.json of a task", |docker| async move {
                let mut stream = std::pin::pin!(docker.download_from_container(&id, Some(options)));
                let mut bytes = Vec::new();
                while let Some(piece) = stream.next().await {
                    bytes.extend_from_slice(&piece?);
                    if bytes.len() > MAX_RESULT_BYTES + 4096 {
                        break;
                    }
                }
                Ok(bytes)
            })
            .await?;
        Ok(found
            .as_deref()
            .and_then(super::archive::first_file)
            .and_then(result_file))
    }

    /// What a GPU check found that ended. One that could not start told its starter.
    fn learn_gpu(&self, task: &TaskSeen) {
        let at = task.finished_at.filter(|_| task.waiting.is_none());
        let Some(at) = at else { return };
        let checked = gpu::judge(task.exit_code, task.result.as_ref());
        let age = Timestamp::now().duration_since(at);
        let age = Duration::try_from(age).unwrap_or_default();
        self.memory.remember_gpu(checked, age);
    }

    async fn add_strangers(
        &self,
        owner: &Owner,
        observed: &mut Observed,
    ) -> Result<(), BackendError> {
        let instance = self.instance();
        let strangers = self
            .others()
            .await?
            .into_iter()
            .filter(|other| instance.is_name_of(owner, &other.name))
            .map(|other| Stranger {
                name: other.name,
                reason: Reason::NameTaken,
                holder: other.holder,
            });
        observed.strangers.extend(strangers);
        observed.strangers.truncate(MAX_STRANGERS);
        Ok(())
    }

    /// Memory of the engine, what our containers that run may use, and what the kernel has left.
    async fn room(
        &self,
        all: &[Listed],
        engine_bytes: u64,
        local: bool,
    ) -> Result<Room, BackendError> {
        let mut ours_bytes: u64 = 0;
        for listed in all.iter().filter(|listed| listed.running) {
            let limit = match self.memory.limit(&listed.id) {
                Some(limit) => Some(limit),
                None => self.inspect(&listed.id).await?.map(|inspected| {
                    let host = inspected.host_config.unwrap_or_default();
                    let limit = u64::try_from(host.memory.unwrap_or_default()).unwrap_or_default();
                    self.memory.remember_limit(listed.id.clone(), limit);
                    limit
                }),
            };
            ours_bytes = ours_bytes.saturating_add(limit.unwrap_or_default());
        }
        Ok(Room {
            engine_bytes,
            ours_bytes,
            available_bytes: local.then(available).flatten(),
        })
    }
}

fn listed_of(container: ContainerSummary) -> Option<Listed> {
    let labels = container.labels.unwrap_or_default();
    let name = container.names.unwrap_or_default().into_iter().next()?;
    let state = container.state.map(|state| state.to_string());
    Some(Listed {
        id: container.id?,
        name: name.trim_start_matches('/').to_owned(),
        running: matches!(state.as_deref(), Some("running" | "paused" | "restarting")),
        identity: labels::identity(&labels),
        owner: labels::owner(&labels),
    })
}

fn has_work(seen: &Seen) -> bool {
    let mounts = seen.inspected.mounts.iter().flatten();
    mounts
        .into_iter()
        .any(|mount| mount.destination.as_deref() == Some(WORK))
}

/// `MemAvailable` of this machine.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1024)
}

impl Inner {
    async fn add_volumes(
        &self,
        roles: &[VolumeRole],
        observed: &mut Observed,
    ) -> Result<(), BackendError> {
        for role in roles {
            match self.volume_seen(role).await? {
                Some(super::volumes::Found::Ours { seen, .. }) => observed.volumes.push(seen),
                Some(super::volumes::Found::Stranger(stranger)) => {
                    observed.strangers.push(stranger);
                }
                None => {}
            }
        }
        Ok(())
    }
}
