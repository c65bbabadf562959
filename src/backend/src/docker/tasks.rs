//! Tasks: a container of its own for each attempt, its files and secrets put into volumes that go with it.

use api::reason::Reason;
use bollard::query_parameters::UploadToContainerOptionsBuilder;

use super::apply::{After, Named};
use super::archive::pack;
use super::engine::CHANGE;
use super::render::{SECRETS, STAGED};
use super::{Docker, Inner};
use crate::{BackendError, Network, Owner, RunState, TaskKey, TaskSpec};

/// Staged files are no secret, and nobody changes them.
const FILE_MODE: u32 = 0o444;
/// Secrets are their owner's alone.
const SECRET_MODE: u32 = 0o400;

impl Docker {
    /// A task runs, or has run.
    pub(super) async fn run_task(
        &self,
        owner: &Owner,
        task: &TaskSpec,
    ) -> Result<(), BackendError> {
        let inner = &self.inner;
        let renderer = inner.renderer();
        let name = renderer.instance.task(owner, &task.key);
        if inner.memory.is_under_way(&name) {
            return Ok(());
        }
        let there = match inner.named(&name, owner).await {
            // Left by an object of the same name that was deleted since: its uid is another, and nobody asks for it.
            Err(error) if inner.is_left_over(&name, owner).await? => {
                tracing::info!(container = %name, %error, "a task of a deleted object makes room");
                inner.remove(&name).await?;
                false
            }
            Err(error) => return Err(error),
            Ok(Named::Nothing) => false,
            Ok(Named::Ours(seen)) => {
                if seen.state() != RunState::Created {
                    return Ok(());
                }
                true
            }
        };
        for (role, _) in &task.volumes {
            inner.volume_there(role).await?;
        }
        if task.network == Network::Egress {
            inner.ensure_network(renderer.egress_network()).await?;
        }
        // Before anything is made: a secret that is missing makes no container.
        let secrets = inner.read_secrets(owner, task)?;
        if !there {
            let body = renderer.task(owner, task, &task.image);
            inner.create(&name, body).await?;
        }
        let files: Vec<(String, Vec<u8>)> = task
            .files
            .iter()
            .map(|file| (file.name.clone(), file.content.clone()))
            .collect();
        inner.upload(&name, STAGED, &files, FILE_MODE).await?;
        inner.upload(&name, SECRETS, &secrets, SECRET_MODE).await?;
        inner.start(&name).await
    }

    pub(super) async fn stop_task(
        &self,
        owner: &Owner,
        task: &TaskKey,
        grace_seconds: u32,
    ) -> Result<(), BackendError> {
        let name = self.inner.instance().task(owner, task);
        if let Named::Ours(seen) = self.inner.named(&name, owner).await?
            && matches!(seen.state(), RunState::Running | RunState::Restarting)
        {
            self.end_later(owner, name, grace_seconds, After::Keep);
        }
        Ok(())
    }
}

impl Inner {
    pub(super) async fn delete_task(
        &self,
        owner: &Owner,
        task: &TaskKey,
    ) -> Result<(), BackendError> {
        let name = self.instance().task(owner, task);
        match self.named(&name, owner).await? {
            Named::Nothing => Ok(()),
            Named::Ours(_) => self.remove(&name).await,
        }
    }

    /// Whether a name is held by a child of the same object in an earlier life: same kind, namespace and name, another uid.
    async fn is_left_over(&self, name: &str, owner: &Owner) -> Result<bool, BackendError> {
        let Some(inspected) = self.inspect(name).await? else {
            return Ok(false);
        };
        let ours = inspected
            .config
            .as_ref()
            .and_then(|config| config.labels.as_ref())
            .is_some_and(|labels| super::labels::is_ours(labels, &self.instance()));
        let Some(seen) = super::map::Seen::read(inspected).filter(|_| ours) else {
            return Ok(false);
        };
        let of = &seen.owner;
        Ok(of.uid != owner.uid
            && (of.kind, &of.namespace, &of.name) == (owner.kind, &owner.namespace, &owner.name))
    }

    fn read_secrets(
        &self,
        owner: &Owner,
        task: &TaskSpec,
    ) -> Result<Vec<(String, Vec<u8>)>, BackendError> {
        let read = |(reference, file): &(api::kinds::shared::SecretRef, String)| {
            let content = (self.secrets)(&owner.namespace, reference).map_err(|why| {
                BackendError::Refused {
                    what: format!("give task {} its secrets", task.key),
                    reason: Reason::SecretMissing,
                    message: format!(
                        "key {} of secret {} cannot be read: {why}",
                        reference.key, reference.name
                    ),
                }
            })?;
            Ok((file.clone(), content))
        };
        task.secrets.iter().map(read).collect()
    }

    /// Puts files into a volume of a container that was made and not started.
    async fn upload(
        &self,
        name: &str,
        folder: &str,
        files: &[(String, Vec<u8>)],
        mode: u32,
    ) -> Result<(), BackendError> {
        if files.is_empty() {
            return Ok(());
        }
        let what = format!("put files into {folder} of container {name}");
        let entries = files
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_slice()));
        let packed = pack(entries, mode).map_err(|error| BackendError::Refused {
            what: what.clone(),
            reason: Reason::InvalidSpec,
            message: error.to_string(),
        })?;
        let options = UploadToContainerOptionsBuilder::default()
            .path(folder)
            .build();
        self.engine
            .call(&what, CHANGE, |docker| async move {
                docker
                    .upload_to_container(name, Some(options), bollard::body_full(packed.into()))
                    .await
            })
            .await
    }
}
