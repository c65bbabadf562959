//! What stands on the labels of our children (control-plane 1.4), written and read back. Pure. Labels of a live container
//! cannot change, so nothing that varies is put there.

use std::collections::HashMap;

use api::field_manager;
use api::group::Kind;
use api::label::{self, Component, Task};
use serde::{Deserialize, Serialize};

use super::names::Instance;
use crate::revision::RevisionInputs;
use crate::{CheckpointPlace, Owner, ServerSpec, TaskKey, VolumeRole};

/// Labels as the engine has them.
pub(super) type Labels = HashMap<String, String>;

/// Longest value of `relay.dev/inputs`, in bytes.
const MAX_INPUTS_BYTES: usize = 8 << 10;

/// What every thing of ours carries.
pub(super) fn ours(instance: &Instance) -> Labels {
    [
        (label::APP_NAME, label::APP),
        (label::PART_OF, label::RELAY),
        (label::MANAGED_BY, field_manager::CONTROLLER),
        (label::INSTANCE, instance.as_str()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// What every child of an owner carries.
pub(super) fn of_owner(instance: &Instance, owner: &Owner, component: Component) -> Labels {
    let mut labels = ours(instance);
    for (key, value) in [
        (label::APP_INSTANCE, owner.name.as_str()),
        (label::APP_COMPONENT, component.as_str()),
        (label::KIND, owner.kind.as_str()),
        (label::NAMESPACE, &owner.namespace),
        (label::NAME, &owner.name),
        (label::UID, &owner.uid),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    labels
}

/// Labels of a replica, without the hash.
pub(super) fn of_server(
    instance: &Instance,
    owner: &Owner,
    server: &ServerSpec,
    ordinal: u32,
) -> Labels {
    let mut labels = of_owner(instance, owner, Component::Serving);
    let digest = server.inputs.digest.trim_start_matches("sha256:");
    labels.insert(label::REVISION.to_owned(), server.revision.clone());
    labels.insert(label::ORDINAL.to_owned(), ordinal.to_string());
    labels.insert(label::MODEL.to_owned(), digest.chars().take(16).collect());
    let inputs = Inputs::of(server).to_label();
    // Selectors and tolerations, which mean nothing here, can be longer than a label may be. Such a server runs as any
    // other, and cannot be made an object again from its labels alone.
    if inputs.len() <= MAX_INPUTS_BYTES {
        labels.insert(label::INPUTS.to_owned(), inputs);
    }
    labels
}

/// Labels of a task, without the hash.
pub(super) fn of_task(instance: &Instance, owner: &Owner, key: &TaskKey) -> Labels {
    let component = match key.task {
        Task::Fetch | Task::Verify | Task::Prune => Component::Fetch,
        Task::Train => Component::Training,
        Task::Score | Task::Compare => Component::Evaluation,
        Task::GpuCheck => Component::Serving,
    };
    let mut labels = of_owner(instance, owner, component);
    labels.insert(label::TASK.to_owned(), key.task.as_str().to_owned());
    labels.insert(label::ATTEMPT.to_owned(), key.attempt.to_string());
    labels
}

/// Whether something is ours.
pub(super) fn is_ours(labels: &Labels, instance: &Instance) -> bool {
    labels
        .get(label::INSTANCE)
        .is_some_and(|value| value == instance.as_str())
}

/// Whose child something is, where its labels say so.
pub(super) fn owner(labels: &Labels) -> Option<Owner> {
    let get = |key: &str| labels.get(key).filter(|value| !value.is_empty()).cloned();
    let kind = get(label::KIND)?;
    Some(Owner {
        kind: Kind::ALL.into_iter().find(|known| known.as_str() == kind)?,
        namespace: get(label::NAMESPACE)?,
        name: get(label::NAME)?,
        uid: get(label::UID)?,
    })
}

/// Which child something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    Server { revision: String, ordinal: u32 },
    Task(TaskKey),
}

/// Which child something is, where its labels say so.
pub(super) fn identity(labels: &Labels) -> Option<Identity> {
    if let Some(revision) = labels.get(label::REVISION) {
        let ordinal = labels.get(label::ORDINAL)?.parse().ok()?;
        return Some(Identity::Server {
            revision: revision.clone(),
            ordinal,
        });
    }
    let word = labels.get(label::TASK)?;
    let task = Task::ALL.iter().find(|task| task.as_str() == word)?;
    Some(Identity::Task(TaskKey {
        task: *task,
        attempt: labels.get(label::ATTEMPT)?.parse().ok()?,
    }))
}

/// The label `relay.dev/inputs`: the revision's inputs and the model's name, for objects that are made again from it, and
/// what else the rendering was made from, so that a live container can be compared with it by whoever finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inputs {
    pub inputs: RevisionInputs,
    pub model: String,
    pub render: Beside,
}

/// What a rendering is made from beside the inputs of the revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Beside {
    volume: VolumeRole,
    path: String,
    checkpoint_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image_id: Option<String>,
    drain_seconds: u32,
    wants_gpu: bool,
}

impl Inputs {
    fn of(server: &ServerSpec) -> Self {
        Self {
            inputs: server.inputs.clone(),
            model: server.model.clone(),
            render: Beside {
                volume: server.volume.clone(),
                path: server.path.clone(),
                checkpoint_bytes: server.checkpoint_bytes,
                image_id: server.image_id.clone(),
                drain_seconds: server.drain_seconds,
                wants_gpu: server.wants_gpu,
            },
        }
    }

    fn to_label(&self) -> String {
        let tree = serde_json::to_value(self).unwrap_or_default();
        api::document::canonical(&tree)
    }

    /// What stands on the labels of a server, where this program can read it.
    pub(super) fn read(labels: &Labels) -> Option<Self> {
        serde_json::from_str(labels.get(label::INPUTS)?).ok()
    }

    /// Where the checkpoint lay when it was rendered.
    pub(super) fn checkpoint(&self) -> CheckpointPlace {
        CheckpointPlace {
            volume: self.render.volume.clone(),
            path: self.render.path.clone(),
            bytes: self.render.checkpoint_bytes,
        }
    }

    /// The spec that was rendered.
    pub(super) fn server(self, revision: &str) -> ServerSpec {
        let Self {
            inputs,
            model,
            render,
        } = self;
        ServerSpec {
            revision: revision.to_owned(),
            inputs,
            model,
            volume: render.volume,
            path: render.path,
            checkpoint_bytes: render.checkpoint_bytes,
            image_id: render.image_id,
            drain_seconds: render.drain_seconds,
            wants_gpu: render.wants_gpu,
        }
    }
}
