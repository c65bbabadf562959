//! Tasks of a model as they are called (`laya fetch|verify|prune`, control-plane 13). Pure.

use api::kinds::LayaModel;
use api::kinds::laya_model::OnDelete;
use api::label::Task;
use backend::{Network, StagedFile, TaskArguments, TaskKey, TaskSpec, VolumeRole, Writes};
use decision::contract::Digest;

use super::inputs::Checked;
use super::retry::seconds_left;
use super::source::{Source, Wanted};
use crate::clock::Now;

/// Where volumes with models are, inside.
const MODELS: &str = "/data/models";
/// The list of files, inside.
const MANIFEST: &str = "/run/relay/manifest.json";
/// The name of the list.
const MANIFEST_NAME: &str = "manifest.json";
/// Credentials, inside.
const AUTH: &str = "/run/secrets/relay/auth";
/// The name of the credentials.
const AUTH_NAME: &str = "auth";
/// Most bytes of memory: tokenizer and headers are read, weights are streamed.
const MEMORY_BYTES: u64 = 1 << 30;
/// Longest verification: 1 TiB at 300 MB/s.
const VERIFY_SECONDS: u32 = 3600;
/// Longest cleaning.
pub(super) const PRUNE_SECONDS: u32 = 600;

/// Fetches attempt `attempt`; `repair` keeps what is right of the files that lie there.
pub(super) fn fetch(
    model: &LayaModel,
    checked: &Checked,
    wanted: &Wanted,
    attempt: u32,
    repair: bool,
    now: &Now,
) -> TaskSpec {
    let spec = &model.spec;
    let mut arguments = Arguments::of("fetch");
    let mut files = Vec::new();
    let mut secrets = Vec::new();
    let mut credentials = |arguments: &mut Arguments, auth: &Option<_>| {
        if let Some(auth) = auth {
            arguments.pair("--auth-file", AUTH);
            secrets.push((Clone::clone(auth), AUTH_NAME.to_owned()));
        }
    };
    match &wanted.source {
        Source::Http {
            manifest,
            // It may carry credentials, which arguments show to everybody; the file has it.
            base_url: _,
            auth,
        } => {
            arguments.pair("--manifest", MANIFEST);
            credentials(&mut arguments, auth);
            files.push(StagedFile {
                name: MANIFEST_NAME.to_owned(),
                content: manifest.clone(),
            });
        }
        Source::Oci { reference, auth } => {
            arguments.pair("--oci", reference);
            credentials(&mut arguments, auth);
        }
        // Neither is fetched.
        Source::Volume { .. } | Source::Run { .. } => {}
    }
    if let Some(digest) = &wanted.digest {
        arguments.pair("--digest", digest);
    }
    if let Some(contract) = &spec.contract {
        arguments.pair("--contract", &contract.0);
    }
    let status = model.status.as_ref();
    let fetch = status.and_then(|status| status.fetch.as_ref());
    let seconds = seconds_left(fetch, &spec.fetch, now);
    arguments.pair("--deadline-seconds", &seconds.to_string());
    arguments.pair(
        "--min-bytes-per-second",
        &spec.fetch.min_bytes_per_second.to_string(),
    );
    for digest in &checked.prunable {
        arguments.pair("--prunable", digest);
    }
    if repair {
        arguments.0.push("--repair".to_owned());
    }
    TaskSpec {
        files,
        secrets,
        network: Network::Egress,
        volumes: vec![(VolumeRole::Models, Writes::Yes)],
        ..task(checked, Task::Fetch, attempt, arguments, seconds)
    }
}

/// Hashes everything and reads its meaning.
pub(super) fn verify(
    model: &LayaModel,
    checked: &Checked,
    wanted: &Wanted,
    digest: &str,
    attempt: u32,
) -> TaskSpec {
    let mut arguments = Arguments::of("verify");
    if let Source::Volume { path, .. } = &wanted.source {
        arguments.pair("--path", path);
    }
    arguments.pair("--digest", digest);
    if let Some(contract) = &model.spec.contract {
        arguments.pair("--contract", &contract.0);
    }
    TaskSpec {
        volumes: vec![(wanted.role().clone(), Writes::No)],
        ..task(checked, Task::Verify, attempt, arguments, VERIFY_SECONDS)
    }
}

/// Removes the files of a model that is being deleted, or marks them so that no prune takes them.
pub(super) fn prune(model: &LayaModel, checked: &Checked, digest: &str, attempt: u32) -> TaskSpec {
    let mut arguments = Arguments::of("prune");
    match model.spec.storage.on_delete {
        OnDelete::Delete => arguments.pair("--delete", digest),
        OnDelete::Retain => arguments.pair("--keep", digest),
    }
    TaskSpec {
        volumes: vec![(VolumeRole::Models, Writes::Yes)],
        ..task(checked, Task::Prune, attempt, arguments, PRUNE_SECONDS)
    }
}

fn task(
    checked: &Checked,
    task: Task,
    attempt: u32,
    arguments: Arguments,
    seconds: u32,
) -> TaskSpec {
    TaskSpec {
        key: TaskKey { task, attempt },
        image: checked.image.clone(),
        arguments: TaskArguments(arguments.0),
        volumes: Vec::new(),
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: MEMORY_BYTES,
        gpu: None,
        deadline_seconds: seconds,
    }
}

struct Arguments(Vec<String>);

impl Arguments {
    fn of(word: &str) -> Self {
        Self([word, "--models", MODELS].map(str::to_owned).into())
    }

    fn pair(&mut self, name: &str, value: &str) {
        self.0.push(name.to_owned());
        self.0.push(value.to_owned());
    }
}

/// The number of the verification that a nonce asks for, so that the end of one that an earlier nonce asked for is not
/// taken for it.
pub(super) fn verification(nonce: Option<&str>) -> u32 {
    let digest = Digest::of(nonce.unwrap_or_default().as_bytes()).hex();
    let number = u32::from_str_radix(digest.get(..5).unwrap_or_default(), 16);
    number.unwrap_or(0).saturating_add(1)
}
