//! Revisions: what the spec asks for as inputs, and how a version that status names is rendered.

use api::kinds::laya_server::Version;
use api::kinds::shared::Device;
use backend::{RENDER_VERSION, RevisionInputs, ServerSpec, VolumeRole};

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
    let labelled = view.observed.and_then(|observed| {
        let mut of = observed.of_revision(revision);
        of.find_map(|server| server.inputs.clone())
    });
    let asked = || {
        let digest = version.digest.as_deref()?;
        Some(wished(view, digest, version.contract.as_deref()))
    };
    labelled
        .or_else(asked)
        .filter(|inputs| inputs.revision() == revision)
        .map(|inputs| (inputs, Stored::NotYet))
}

/// How a version is rendered; `None` where what made it is not stored.
pub(super) fn server(view: &View<'_>, version: &Version) -> Option<ServerSpec> {
    let revision = version.revision.as_deref()?;
    let inputs = view.checked.documents.get(revision)?.clone();
    let model = version.model.clone().unwrap_or_default();
    let known = view.checked.models.get(&model);
    let known = known.filter(|known| known.digest.as_deref() == Some(&inputs.digest));
    let (volume, path) = place(known, &inputs.digest);
    Some(ServerSpec {
        revision: revision.to_owned(),
        model,
        volume,
        path,
        checkpoint_bytes: known.map_or(0, |known| known.size_bytes),
        image_id: version.image_id.clone(),
        drain_seconds: view.drain_seconds(),
        wants_gpu: wants_gpu(view, &inputs),
        inputs,
    })
}

/// Where a checkpoint lies: under its digest on volumes of ours, where its model says on others.
fn place(model: Option<&ModelView>, digest: &str) -> (VolumeRole, String) {
    let location = model.and_then(|model| model.location.as_ref());
    let foreign = model.is_some_and(|model| model.foreign_volume);
    if let Some(location) = location.filter(|_| foreign) {
        let name = location.volume.clone().unwrap_or_default();
        let path = location.path.clone().unwrap_or_else(|| ".".to_owned());
        return (VolumeRole::Foreign { name }, path);
    }
    let hex = digest.trim_start_matches("sha256:");
    (VolumeRole::Models, format!("sha256-{hex}"))
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
