//! Doing one thing. Everything is idempotent: first it is looked whether it is so already. What takes long (a stop with its
//! grace) goes on in the background, and is seen as `Stopping` until it ends.

use std::time::Duration;

use api::reason::Reason;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
    StopContainerOptionsBuilder,
};

use super::drain::drain;
use super::engine::{CHANGE, refused};
use super::error::start_reason;
use super::gpu::Checked;
use super::labels::{self, Identity};
use super::map::{self, Seen, compare};
use super::memory::UnderWay;
use super::volumes::taken;
use super::{Docker, Inner};
use crate::{Action, BackendError, Hint, Ordinals, Owner, RunState, ServerSpec};

/// What a stop has beyond its grace.
const STOP_SLACK: Duration = Duration::from_secs(10);

/// What has the name of a container that is wanted.
pub(super) enum Named {
    Nothing,
    Ours(Box<Seen>),
}

/// What follows a stop.
#[derive(Clone)]
pub(super) enum After {
    Keep,
    Remove,
    /// Another one is made in its place.
    Replace(Box<ContainerCreateBody>),
}

impl Docker {
    /// Does one thing, or starts it.
    pub(super) async fn act(&self, owner: &Owner, action: &Action) -> Result<(), BackendError> {
        let inner = &self.inner;
        match action {
            Action::EnsureVolume { role, .. } => inner.ensure_volume(owner, role).await,
            Action::EnsureImage {
                image,
                pull_secrets,
            } => self.ensure_image(owner, image, pull_secrets).await,
            Action::EnsureServer { server, ordinals } => {
                inner.ensure_serving(server).await?;
                let mut first = Ok(());
                for ordinal in ordinals {
                    // Boxed: it creates, compares and replaces, and is large.
                    let done = Box::pin(self.ensure_replica(owner, server, *ordinal)).await;
                    first = first.and(done);
                }
                first
            }
            Action::RecreateServer { server, ordinal } => {
                inner.ensure_serving(server).await?;
                self.recreate_replica(owner, server, *ordinal).await
            }
            // Only on engines with a stable address of their own.
            Action::PointService { .. } => Ok(()),
            Action::Drain { url } => drain(url).await,
            Action::StopServer {
                revision,
                ordinals,
                grace_seconds,
            } => {
                let after = &After::Keep;
                self.end_replicas(owner, revision, ordinals, *grace_seconds, after)
                    .await
            }
            Action::DeleteServer {
                revision,
                ordinals,
                grace_seconds,
            } => {
                let after = &After::Remove;
                self.end_replicas(owner, revision, ordinals, *grace_seconds, after)
                    .await
            }
            Action::RunTask(task) => self.run_task(owner, task).await,
            Action::StopTask {
                task,
                grace_seconds,
            } => self.stop_task(owner, task, *grace_seconds).await,
            Action::DeleteTask { task } => inner.delete_task(owner, task).await,
            Action::DeleteVolume { role } => inner.delete_volume(owner, role).await,
        }
    }

    async fn ensure_replica(
        &self,
        owner: &Owner,
        server: &ServerSpec,
        ordinal: u32,
    ) -> Result<(), BackendError> {
        let inner = &self.inner;
        let renderer = inner.renderer();
        let name = renderer.instance.server(owner, &server.revision, ordinal);
        if inner.memory.is_under_way(&name) {
            return Ok(());
        }
        let seen = match inner.named(&name, owner).await? {
            Named::Nothing => return self.make(owner, server, ordinal, &name).await,
            Named::Ours(seen) => seen,
        };
        if compare(&renderer, &seen, Some(server)).differs() {
            return self.replace(owner, server, ordinal, &seen).await;
        }
        match seen.state() {
            RunState::Running | RunState::Restarting => Ok(()),
            // Its end is seen first.
            RunState::Stopping => Ok(()),
            // One that does not run is made from what is wanted now: without a GPU, perhaps, that it could not get. It never
            // waits for a check: it may be what a rollout goes back to.
            RunState::Created | RunState::Exited => {
                let server = self.on_device_as_before(server, had_gpu(&seen)).await?;
                let wanted = renderer.server(owner, &server, ordinal);
                if map::outdated(&seen, &wanted) {
                    return self.replace(owner, &server, ordinal, &seen).await;
                }
                inner.start(&name).await
            }
        }
    }

    async fn recreate_replica(
        &self,
        owner: &Owner,
        server: &ServerSpec,
        ordinal: u32,
    ) -> Result<(), BackendError> {
        let inner = &self.inner;
        let renderer = inner.renderer();
        let name = renderer.instance.server(owner, &server.revision, ordinal);
        match inner.named(&name, owner).await? {
            Named::Nothing => self.make(owner, server, ordinal, &name).await,
            Named::Ours(seen) => self.replace(owner, server, ordinal, &seen).await,
        }
    }

    /// A replica that is not there, unless a check of the GPU is under way: the next pass makes it then.
    async fn make(
        &self,
        owner: &Owner,
        server: &ServerSpec,
        ordinal: u32,
        name: &str,
    ) -> Result<(), BackendError> {
        let Some(server) = self.on_device(owner, server).await? else {
            return Ok(());
        };
        let body = self.inner.renderer().server(owner, &server, ordinal);
        self.inner.create_and_start(name, body).await
    }

    /// Another one in place of this one; in the background where this one still serves.
    async fn replace(
        &self,
        owner: &Owner,
        server: &ServerSpec,
        ordinal: u32,
        seen: &Seen,
    ) -> Result<(), BackendError> {
        let inner = &self.inner;
        let server = self.on_device_as_before(server, had_gpu(seen)).await?;
        let body = inner.renderer().server(owner, &server, ordinal);
        let name = seen.name().to_owned();
        if seen.state() == RunState::Running {
            let after = After::Replace(Box::new(body));
            self.end_later(owner, name, server.drain_seconds.saturating_add(10), after);
            return Ok(());
        }
        let Some(_mine) = inner.memory.take(&name) else {
            return Ok(());
        };
        inner.remove(&name).await?;
        inner.create_and_start(&name, body).await
    }

    async fn end_replicas(
        &self,
        owner: &Owner,
        revision: &str,
        ordinals: &Ordinals,
        grace_seconds: u32,
        after: &After,
    ) -> Result<(), BackendError> {
        let children = self.inner.children(Some(owner)).await?;
        for listed in children {
            let Some(Identity::Server {
                revision: of,
                ordinal,
            }) = listed.identity
            else {
                continue;
            };
            let meant = match ordinals {
                Ordinals::All => true,
                Ordinals::Only(these) => these.contains(&ordinal),
            };
            if of != revision || !meant {
                continue;
            }
            match after {
                _ if listed.running => {
                    self.end_later(owner, listed.name, grace_seconds, after.clone());
                }
                After::Remove => {
                    let Some(_mine) = self.inner.memory.take(&listed.name) else {
                        continue;
                    };
                    self.inner.remove(&listed.name).await?;
                }
                After::Keep | After::Replace(_) => {}
            }
        }
        Ok(())
    }

    /// Stops a container in the background, and does what follows. Nothing where that is under way.
    pub(super) fn end_later(&self, owner: &Owner, name: String, grace_seconds: u32, after: After) {
        let Some(mine) = self.inner.memory.take(&name) else {
            return;
        };
        let inner = self.inner.clone();
        let owner = owner.clone();
        self.spawn(async move {
            let ended = inner.end(&name, grace_seconds, after, &mine).await;
            drop(mine);
            if let Err(error) = ended {
                // The next look shows what is left to do.
                tracing::warn!(%error, container = %name, "a container was not ended");
            }
            inner.hint(Hint::Owner(owner));
        });
    }
}

/// Whether a replica was made with a GPU.
fn had_gpu(seen: &Seen) -> bool {
    seen.made_from().is_some_and(|spec| spec.wants_gpu)
}

impl Inner {
    async fn end(
        &self,
        name: &str,
        grace_seconds: u32,
        after: After,
        _mine: &UnderWay,
    ) -> Result<(), BackendError> {
        let grace = i32::try_from(grace_seconds).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::default().t(grace).build();
        let within = Duration::from_secs(u64::from(grace_seconds)) + STOP_SLACK;
        let what = format!("stop container {name}");
        let stopped = self
            .engine
            .ask(&what, within, |docker| async move {
                docker.stop_container(name, Some(options)).await
            })
            .await?;
        match stopped {
            // 304: it does not run.
            Ok(()) | Err((304 | 404, _)) => {}
            Err((status, message)) => return Err(refused(&what, status, message)),
        }
        match after {
            After::Keep => Ok(()),
            After::Remove => self.remove(name).await,
            After::Replace(body) => {
                self.remove(name).await?;
                self.create_and_start(name, *body).await
            }
        }
    }

    /// What has this name: nothing, or one of ours that is this owner's.
    pub(super) async fn named(&self, name: &str, owner: &Owner) -> Result<Named, BackendError> {
        let Some(inspected) = self.inspect(name).await? else {
            return Ok(Named::Nothing);
        };
        let id: String = inspected
            .id
            .iter()
            .flat_map(|id| id.chars())
            .take(12)
            .collect();
        let config = inspected.config.as_ref();
        let image = config.and_then(|config| config.image.clone());
        let ours = config
            .and_then(|config| config.labels.as_ref())
            .is_some_and(|labels| labels::is_ours(labels, &self.instance()));
        let what = format!("use container {name}");
        if !ours {
            let holder = format!("container {id} of image {}", image.unwrap_or_default());
            return Err(taken(&what, name, &holder));
        }
        match Seen::read(inspected) {
            Some(seen) if seen.owner == *owner => Ok(Named::Ours(Box::new(seen))),
            // The same object deleted and made again: what is left of the first is removed, by whoever sweeps.
            Some(seen) => {
                let Owner {
                    kind,
                    namespace,
                    name: other,
                    uid,
                } = &seen.owner;
                let holder = format!("{} {namespace}/{other} with uid {uid}", kind.as_str());
                Err(taken(&what, name, &holder))
            }
            None => Err(taken(
                &what,
                name,
                &format!("container {id} with labels of ours that name no owner"),
            )),
        }
    }

    /// What a replica needs beside itself.
    async fn ensure_serving(&self, server: &ServerSpec) -> Result<(), BackendError> {
        self.volume_there(&server.volume).await?;
        self.ensure_network(self.renderer().serve_network()).await
    }

    /// Makes a container and starts it. A name that was taken in between is an error, and the next look tells whose it is.
    async fn create_and_start(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<(), BackendError> {
        self.create(name, body).await?;
        self.start(name).await
    }

    pub(super) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<(), BackendError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let image = body.image.clone().unwrap_or_default();
        let what = format!("create container {name} of image {image}");
        let created = self
            .engine
            .ask(&what, CHANGE, |docker| async move {
                docker.create_container(Some(options), body).await
            })
            .await?;
        match created {
            Ok(_) => Ok(()),
            Err((404, message)) if start_reason(&message) == Some(Reason::ImageNotFound) => {
                Err(BackendError::Refused {
                    what,
                    reason: Reason::ImageNotFound,
                    message: format!("{}; it is pulled or built first", map::message(&message)),
                })
            }
            Err((status, message)) => Err(refused(&what, status, map::message(&message))),
        }
    }

    pub(super) async fn start(&self, name: &str) -> Result<(), BackendError> {
        let what = format!("start container {name}");
        let started = self
            .engine
            .ask(&what, CHANGE, |docker| async move {
                docker
                    .start_container(name, None::<StartContainerOptions>)
                    .await
            })
            .await?;
        match started {
            // 304: it runs.
            Ok(()) | Err((304, _)) => Ok(()),
            Err((status, message)) => {
                if start_reason(&message) == Some(Reason::GpuUnavailable) {
                    self.memory.remember_gpu(Checked::Absent, Duration::ZERO);
                }
                Err(refused(&what, status, map::message(&message)))
            }
        }
    }

    /// Removes a container with the volumes that are its own. One that is gone is fine.
    pub(super) async fn remove(&self, name: &str) -> Result<(), BackendError> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let what = format!("remove container {name}");
        let removed = self
            .engine
            .ask(&what, CHANGE, |docker| async move {
                docker.remove_container(name, Some(options)).await
            })
            .await?;
        match removed {
            Ok(()) | Err((404, _)) => Ok(()),
            // Its removal is under way.
            Err((409, message)) if message.contains("already in progress") => Ok(()),
            Err((status, message)) => Err(refused(&what, status, map::message(&message))),
        }
    }
}
