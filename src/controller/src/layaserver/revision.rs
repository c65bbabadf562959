//! Revisions: what the spec asks for as inputs, and how a version that status names is rendered.

use api::kinds::laya_server::Version;
use api::kinds::shared::Device;
use backend::{CheckpointPlace, RENDER_VERSION, RevisionInputs, ServerSpec, VolumeRole};

use super::observation::ModelView;
use super::view::View;

/// What the spec asks for, with this checkpoint.
pub(super) fn wished(view: &View<'_>, digest: &str, contract: Option<&str>) -> RevisionInputs {
    let spec = view.spec;
    let image = spec
        .image
        .clone()
        .filter(|_| view.checked.capabilities.images);
    RevisionInputs {
        owner_uid: view.object.metadata.uid.clone().unwrap_or_default(),
        digest: digest.to_owned(),
        contract: contract.map(str::to_owned),
        image: image.unwrap_or_else(|| view.checked.default_image.clone()),
        server_api: spec.server_api,
        device: view.cut.device,
        device_policy: spec.device_policy,
        gpu: view.cut.gpu.clone(),
        resources: spec.resources.clone(),
        serving: spec.serving.clone(),
        pod: view.cut.pod.clone(),
        render_version: RENDER_VERSION,
    }
}

/// The version that these inputs make of a model.
pub(super) fn version(view: &View<'_>, model: &str, inputs: &RevisionInputs) -> Version {
    Version {
        model: Some(model.to_owned()),
        digest: Some(inputs.digest.clone()),
        short_digest: Some(short(&inputs.digest)),
        contract: inputs.contract.clone(),
        revision: Some(inputs.revision()),
        // An engine without images makes servers of no image, whatever the inputs say.
        image: Some(inputs.image.clone()).filter(|_| view.checked.capabilities.images),
        since: Some(view.now()),
        ..Version::default()
    }
}

fn short(digest: &str) -> String {
    digest
        .trim_start_matches("sha256:")
        .chars()
        .take(12)
        .collect()
}

/// Where the inputs of a revision are known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// From its document.
    Yes,
    /// From elsewhere; the document is to be stored.
    NotYet,
}

/// What made a revision: its document, else the labels of what runs of it, else the spec where that asks for it.
pub(super) fn inputs(view: &View<'_>, version: &Version) -> Option<(RevisionInputs, Stored)> {
    let revision = version.revision.as_deref()?;
    if let Some(inputs) = view.checked.documents.get(revision) {
        return Some((inputs.clone(), Stored::Yes));
    }
    let asked = || {
        let digest = version.digest.as_deref()?;
        Some(wished(view, digest, version.contract.as_deref()))
    };
    labelled(view, revision)
        .or_else(|| asked().filter(|inputs| inputs.revision() == revision))
        .map(|inputs| (inputs, Stored::NotYet))
}

/// What made a revision, by the labels of what there is of it.
fn labelled(view: &View<'_>, revision: &str) -> Option<RevisionInputs> {
    let mut of = view.observed?.of_revision(revision);
    let inputs = of.find_map(|server| server.inputs.as_ref())?;
    (inputs.revision() == revision).then(|| inputs.clone())
}

/// How a version is rendered: from its document, else from the labels of what there is of it. Nothing is guessed: the error
/// says what is missing.
pub(super) fn server(view: &View<'_>, version: &Version) -> Result<ServerSpec, String> {
    let revision = version.revision.as_deref().unwrap_or_default();
    let stored = view.checked.documents.get(revision).cloned();
    let inputs = stored.or_else(|| labelled(view, revision)).ok_or_else(|| {
        format!(
            "what made revision {revision} is neither stored nor on the labels of anything that is left of it. Wish for its model again, or for another"
        )
    })?;
    let model = version.model.clone().unwrap_or_default();
    let place = place(view, &model, revision, &inputs.digest).ok_or_else(|| {
        format!(
            "LayaModel {model} does not say where {} lies and how large it is, and nothing that is left of revision {revision} does. Look at that LayaModel",
            short(&inputs.digest)
        )
    })?;
    Ok(ServerSpec {
        revision: revision.to_owned(),
        model,
        volume: place.volume,
        path: place.path,
        checkpoint_bytes: place.bytes,
        image_id: version.image_id.clone(),
        drain_seconds: view.drain_seconds(),
        wants_gpu: wants_gpu(view, &inputs),
        inputs,
    })
}

/// Where a checkpoint lies, and how large it is: as its model says, else as the labels of what there is of the revision do.
fn place(view: &View<'_>, model: &str, revision: &str, digest: &str) -> Option<CheckpointPlace> {
    let known = view.checked.models.get(model);
    let known = known.filter(|known| known.digest.as_deref() == Some(digest));
    known
        .and_then(|known| said_place(known, digest))
        .or_else(|| {
            let mut of = view.observed?.of_revision(revision);
            of.find_map(|server| server.checkpoint.clone())
        })
}

/// Under its digest on volumes of ours, where its model says on others.
fn said_place(model: &ModelView, digest: &str) -> Option<CheckpointPlace> {
    let bytes = model.size_bytes;
    if model.foreign_volume {
        let location = model.location.as_ref()?;
        return Some(CheckpointPlace {
            volume: VolumeRole::Foreign {
                name: location.volume.clone()?,
            },
            path: location.path.clone().unwrap_or_else(|| ".".to_owned()),
            bytes,
        });
    }
    let hex = digest.trim_start_matches("sha256:");
    Some(CheckpointPlace {
        volume: VolumeRole::Models,
        path: format!("sha256-{hex}"),
        bytes,
    })
}

/// A GPU is asked for when the spec says so, and for `Auto` once a check found one.
fn wants_gpu(view: &View<'_>, inputs: &RevisionInputs) -> bool {
    let found = || {
        let memory = view.observed.and_then(|seen| seen.gpu_memory_bytes);
        memory.is_some_and(|bytes| bytes > 0)
    };
    view.checked.capabilities.gpu
        && match inputs.device {
            Device::Cuda => true,
            Device::Auto => found(),
            Device::Cpu => false,
        }
}
