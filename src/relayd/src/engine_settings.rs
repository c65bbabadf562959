//! Settings of the engine that models and servers live on (control-plane 8, design.md 7): the same for `relayd local` and
//! `relayd controller`, but for what only one of them has.

use clap::Args;
use service::config::{ConfigError, Layers, Setting};

use crate::engine_choice::BackendName;
use crate::settings::one;

/// The image that `cargo xtask image laya` builds: on a laptop without a registry it is there, or nothing is.
pub(crate) const LAYA_IMAGE: &str = "relay-laya-native:latest";
/// Trained models that are kept, the champion counted (training 9).
const KEEP_TRAINED: usize = 3;

/// Flags of the engine.
#[derive(Debug, Args)]
pub(crate) struct EngineFlags {
    /// Where models and servers live: docker, embedded (in this process) or, for `relayd controller` alone, kubernetes
    /// [default: kubernetes there; in `relayd local` what was chosen at the first start, docker if an engine answered]
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Image of servers and tasks whose object names none [default: relay-laya-native:latest, which
    /// `cargo xtask image laya` builds]
    #[arg(long, value_name = "IMAGE")]
    laya_image: Option<String>,
    /// Trained models that are kept, the one that serves among them [default: 3]
    #[arg(long, value_name = "N")]
    keep_trained: Option<String>,
}

impl EngineFlags {
    /// As layers take them.
    pub(crate) fn given(self) -> [(&'static str, Vec<String>); 3] {
        let Self {
            backend,
            laya_image,
            keep_trained,
        } = self;
        [
            ("backend", one(backend)),
            ("laya_image", one(laya_image)),
            ("keep_trained", one(keep_trained)),
        ]
    }
}

/// What is used of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineSettings {
    /// Where nobody said it, it is what was chosen before.
    pub(crate) backend: Option<BackendName>,
    pub(crate) laya_image: String,
    pub(crate) keep_trained: usize,
}

impl EngineSettings {
    /// Of layers that have the flags. With `no_docker` it is the embedded one.
    pub(crate) fn read(layers: &mut Layers, of: EngineOf) -> Result<Self, ConfigError> {
        let backend: Option<Setting<BackendName>> = layers.optional("backend")?;
        let no_docker = match of {
            EngineOf::Laptop => layers.with_default("no_docker", false)?.value,
            EngineOf::Controller => false,
        };
        let backend = match backend {
            Some(backend) => Some(allowed(backend, of, no_docker)?),
            None if no_docker => Some(BackendName::Embedded),
            None => None,
        };
        let laya_image = layers.with_default("laya_image", LAYA_IMAGE.to_owned())?;
        let keep_trained = layers.with_default("keep_trained", KEEP_TRAINED)?;
        if keep_trained.value == 0 {
            return Err(ConfigError::Invalid {
                key: "keep_trained".to_owned(),
                value: "0".to_owned(),
                from: keep_trained.source,
                reason: "the one that serves counts, so at least 1".to_owned(),
            });
        }
        Ok(Self {
            backend,
            laya_image: laya_image.value,
            keep_trained: keep_trained.value,
        })
    }
}

/// EngineOf engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineOf {
    /// One user's own: `relayd local`.
    Laptop,
    /// `relayd controller`.
    Controller,
}

fn allowed(
    backend: Setting<BackendName>,
    of: EngineOf,
    no_docker: bool,
) -> Result<BackendName, ConfigError> {
    let reason = match backend.value {
        BackendName::Kubernetes if of == EngineOf::Laptop => {
            "a laptop has docker or embedded; `relayd controller` reconciles a cluster"
        }
        BackendName::Docker if no_docker => "no_docker says the opposite; keep one of them",
        known => return Ok(known),
    };
    Err(ConfigError::Invalid {
        key: "backend".to_owned(),
        value: backend.value.to_string(),
        from: backend.source,
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(of: EngineOf, flags: &[(&'static str, &str)]) -> Result<EngineSettings, String> {
        let given = |(key, value): &(&'static str, &str)| (*key, vec![(*value).to_owned()]);
        let flags: BTreeMap<_, _> = flags.iter().map(given).collect();
        let nothing = std::iter::empty::<(String, String)>();
        let mut layers = Layers::new(flags, "RELAYD_", nothing, None).unwrap();
        EngineSettings::read(&mut layers, of).map_err(|error| error.to_string())
    }

    #[test]
    fn a_laptop_has_docker_or_the_engine_inside_and_no_contradictions() {
        use BackendName::{Docker, Embedded, Kubernetes};
        let laptop = |flags: &[_]| read(EngineOf::Laptop, flags).map(|settings| settings.backend);
        assert_eq!(laptop(&[]), Ok(None));
        assert_eq!(laptop(&[("no_docker", "true")]), Ok(Some(Embedded)));
        assert_eq!(laptop(&[("backend", "docker")]), Ok(Some(Docker)));
        let both = [("backend", "embedded"), ("no_docker", "true")];
        assert_eq!(laptop(&both), Ok(Some(Embedded)));
        for (flags, says) in [
            (
                &[("backend", "docker"), ("no_docker", "true")][..],
                "no_docker",
            ),
            (&[("backend", "kubernetes")], "relayd controller"),
            (&[("backend", "podman")], "expected docker"),
            (&[("keep_trained", "0")], "at least 1"),
        ] {
            let error = laptop(flags).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let cluster = read(EngineOf::Controller, &[("backend", "kubernetes")]).unwrap();
        assert_eq!(cluster.backend, Some(Kubernetes));
        assert_eq!(cluster.laya_image, LAYA_IMAGE);
        assert_eq!(cluster.keep_trained, KEEP_TRAINED);
    }
}
