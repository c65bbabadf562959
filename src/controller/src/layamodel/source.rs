//! What a spec asks for: which files, under which digest, in which volume. Pure; the source of a LayaModel cannot change,
//! so it is worked out once.

use api::group::Kind;
use api::kinds::laya_model::{HttpModel, LayaModelSpec, ModelFile};
use api::kinds::shared::SecretRef;
use backend::{Capabilities, VolumeRole};
use decision::contract::Digest;
use serde_json::{Value, json};

/// The only name of `source.volume` that means our own volume of models.
pub const OWN_VOLUME: &str = "models";

/// Where a checkpoint comes from, checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Files below a URL.
    Http {
        /// What `laya fetch --manifest` reads.
        manifest: Vec<u8>,
        /// What paths are added to.
        base_url: String,
        /// Bearer token.
        auth: Option<SecretRef>,
    },
    /// An artifact in a registry.
    Oci {
        /// With its digest.
        reference: String,
        /// Credentials.
        auth: Option<SecretRef>,
    },
    /// A folder that is there already. It is never written to.
    Volume {
        /// Which volume.
        role: VolumeRole,
        /// Its name in the spec.
        name: String,
        /// Place in it.
        path: String,
    },
    /// What a TrainingRun is to make.
    Run {
        /// Its name.
        name: String,
    },
}

/// What a spec asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// From where.
    pub source: Source,
    /// Checkpoint digest, where it is known before the files are here.
    pub digest: Option<String>,
    /// Bytes of all files, where they are known.
    pub bytes: Option<u64>,
    /// Fields of the spec that this back end ignores.
    pub ignored: Vec<&'static str>,
}

impl Wanted {
    /// The volume that the files lie in.
    #[must_use]
    pub const fn role(&self) -> &VolumeRole {
        match &self.source {
            Source::Volume { role, .. } => role,
            _ => &VolumeRole::Models,
        }
    }

    /// Whether the files are used where they lie, and are not ours to write or remove.
    #[must_use]
    pub const fn in_place(&self) -> bool {
        matches!(self.source, Source::Volume { .. })
    }

    /// Bytes to ask a volume for: as the spec says, else 1.25 × files + 256 MiB (control-plane 2).
    #[must_use]
    pub fn volume_bytes(&self, spec: &LayaModelSpec) -> u64 {
        let asked = spec.storage.size.as_ref();
        let asked = asked.and_then(|size| backend::quantity(&size.0));
        let files = self.bytes.unwrap_or(0);
        asked.unwrap_or_else(|| files.saturating_add(files / 4).saturating_add(256 << 20))
    }
}

/// Works a spec out for a back end.
///
/// # Errors
/// What is wrong with the spec, and what to do.
pub fn wanted(spec: &LayaModelSpec, engine: &Capabilities) -> Result<Wanted, String> {
    let given = spec.manifest_digest.as_ref().map(|digest| digest.0.clone());
    let source = &spec.source;
    let wanted = if let Some(http) = &source.http {
        from_http(http, given)?
    } else if let Some(oci) = &source.oci {
        Wanted {
            source: Source::Oci {
                reference: oci.reference.0.clone(),
                auth: oci.pull_secret_ref.clone(),
            },
            digest: given,
            bytes: None,
            ignored: Vec::new(),
        }
    } else if let Some(volume) = &source.volume {
        let role = match volume.name.as_str() {
            OWN_VOLUME => VolumeRole::Models,
            name if engine.name == "embedded" => {
                return Err(format!(
                    "spec.source.volume.name: the embedded engine has no volume {name}, only {OWN_VOLUME}. Use that \
                     name, or an engine with volumes"
                ));
            }
            name => VolumeRole::Foreign {
                name: name.to_owned(),
            },
        };
        if given.is_none() {
            return Err(
                "spec.manifestDigest: is needed with source.volume. Make the object again with it"
                    .to_owned(),
            );
        }
        Wanted {
            source: Source::Volume {
                role,
                name: volume.name.clone(),
                path: volume.path.clone(),
            },
            digest: given,
            bytes: None,
            ignored: Vec::new(),
        }
    } else if let Some(run) = &source.training_run {
        Wanted {
            source: Source::Run {
                name: run.name.clone(),
            },
            digest: given,
            bytes: None,
            ignored: Vec::new(),
        }
    } else {
        return Err(
            "spec.source: must have exactly one of http, oci, volume, trainingRun. Add one"
                .to_owned(),
        );
    };
    Ok(Wanted {
        ignored: ignored(spec, engine),
        ..wanted
    })
}

fn from_http(http: &HttpModel, given: Option<String>) -> Result<Wanted, String> {
    let digest = manifest_digest(&http.files);
    if let Some(given) = given
        && given != digest
    {
        return Err(format!(
            "spec.manifestDigest: is {given}, but the files of spec.source.http have {digest}. Correct one of them"
        ));
    }
    let bytes = http
        .files
        .iter()
        .map(|file| file.size.max(0).unsigned_abs());
    Ok(Wanted {
        source: Source::Http {
            manifest: manifest_file(http),
            base_url: http.base_url.clone(),
            auth: http.auth_secret_ref.clone(),
        },
        digest: Some(digest),
        bytes: Some(bytes.fold(0, u64::saturating_add)),
        ignored: Vec::new(),
    })
}

/// The checkpoint digest: SHA-256 of the canonical manifest (control-plane 2).
#[must_use]
pub fn manifest_digest(files: &[ModelFile]) -> String {
    let mut files: Vec<_> = files.iter().collect();
    files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    let entries: Vec<Value> = files
        .into_iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256.0, "size": file.size}))
        .collect();
    // Keys are written sorted, which is the order that the page gives.
    let canonical = api::document::canonical(&Value::Array(entries));
    Digest::of(canonical.as_bytes()).to_string()
}

/// What the task is given as `/run/relay/manifest.json`.
fn manifest_file(http: &HttpModel) -> Vec<u8> {
    let file = json!({"baseUrl": http.base_url, "files": http.files});
    file.to_string().into_bytes()
}

fn ignored(spec: &LayaModelSpec, engine: &Capabilities) -> Vec<&'static str> {
    if engine.pods {
        return Vec::new();
    }
    let storage = &spec.storage;
    let class = storage
        .class_name
        .is_some()
        .then_some("spec.storage.className");
    let mode = (storage.access_mode != api::kinds::laya_model::AccessMode::default())
        .then_some("spec.storage.accessMode");
    class.into_iter().chain(mode).collect()
}

/// Name of a kind with the object's, for messages.
pub(super) fn named(name: &str) -> String {
    format!("{} {name}", Kind::LayaModel)
}
