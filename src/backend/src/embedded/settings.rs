//! What `laya serve` would be told in a container, as settings of the same server in this process: pure.

use std::path::{Component, Path, PathBuf};

use api::kinds::shared::Precision;
use api::reason::Reason;
use laya::Verify;
use serve::settings::{Extras, Settings, Values};

use crate::action::{ServerSpec, VolumeRole};
use crate::error::BackendError;

/// The only volume that `source.volume` may name here (control-plane 8.1).
pub const MODELS: &str = "models";

/// A folder of the models, by a volume and a path in it that come from an object.
///
/// # Errors
/// `InvalidSpec` for a volume that is not here, and for a path that is empty, absolute or climbs.
pub(super) fn folder(
    what: &str,
    models: &Path,
    volume: &VolumeRole,
    path: &str,
) -> Result<PathBuf, BackendError> {
    let refused = |message: String| BackendError::Refused {
        what: what.to_owned(),
        reason: Reason::InvalidSpec,
        message,
    };
    if !is_models(volume) {
        let name = match volume {
            VolumeRole::Foreign { name } => name.clone(),
            VolumeRole::Work { run } => format!("work of {run}"),
            VolumeRole::Gate { gate } => format!("rows of {gate}"),
            VolumeRole::Models => MODELS.to_owned(),
        };
        return Err(refused(format!(
            "spec.source.volume.name: the embedded engine knows only the volume `{MODELS}`, not `{name}`"
        )));
    }
    let parts = || Path::new(path).components();
    let plain = parts().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !plain {
        return Err(refused(format!(
            "spec.source.volume.path: `{path}` is no path below the folder of models"
        )));
    }
    Ok(models.join(path))
}

/// Whether it is the folder of models.
pub(super) fn is_models(volume: &VolumeRole) -> bool {
    match volume {
        VolumeRole::Models => true,
        VolumeRole::Foreign { name } => name == MODELS,
        VolumeRole::Work { .. } | VolumeRole::Gate { .. } => false,
    }
}

/// Bytes that loading needs: 1.6 × the checkpoint, as a container's limit is computed, and a little for requests. What a
/// container needs beside that for itself is here already.
pub(super) const fn need_bytes(checkpoint_bytes: u64) -> u64 {
    checkpoint_bytes.saturating_mul(8) / 5 + (64 << 20)
}

/// The settings, and lines to warn with. `threads` stands where the object leaves them to us.
///
/// # Errors
/// `InvalidSpec` where the server refuses one.
pub(super) fn of_spec(
    spec: &ServerSpec,
    folder: &Path,
    threads: Option<usize>,
) -> Result<(Settings, Vec<String>), BackendError> {
    let what = format!("revision {}", spec.revision);
    let refused = |message: String| BackendError::Refused {
        what: what.clone(),
        reason: Reason::InvalidSpec,
        message,
    };
    let text = folder
        .to_str()
        .ok_or_else(|| refused(format!("folder {} is not UTF-8", folder.display())))?;
    let serving = spec.serving();
    let mut given = vec![
        ("LAYA_HOST", "127.0.0.1".to_owned()),
        // A port of its own, which the system chooses: `--port 0` of the program.
        ("LAYA_DEVICE", "cpu".to_owned()),
        ("LAYA_REQUIRE_VERIFIED", "1".to_owned()),
        ("LAYA_MAX_CONCURRENT", serving.max_concurrent.to_string()),
        (
            "LAYA_BATCH_WINDOW_US",
            serving.batch_window_micros.to_string(),
        ),
        ("LAYA_PRECISION", precision(serving.precision).to_owned()),
        ("LAYA_DRAIN_TIMEOUT", spec.drain_seconds.max(1).to_string()),
    ];
    let wished = usize::try_from(serving.threads).unwrap_or(0);
    let threads = if wished > 0 { Some(wished) } else { threads };
    given.extend(threads.map(|threads| ("LAYA_THREADS", threads.to_string())));
    // The contract is not demanded here: a person may have said it of a checkpoint that names none.
    // No variable of this process reaches in here.
    let (values, _) = Values::new(given, std::iter::empty::<(String, String)>());
    let extras = Extras {
        model: Some(text.to_owned()),
        expect_digest: Some(spec.inputs.digest.clone()),
        verify: Verify::Size,
        ..Extras::default()
    };
    let read = Settings::read(&values, &extras);
    let (mut settings, warnings) = read.map_err(|error| refused(error.to_string()))?;
    settings.bind.port = 0;
    Ok((settings, warnings))
}

const fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::Bf16 => "bf16",
        Precision::Int8 => "int8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::tests::spec;

    #[test]
    fn a_server_is_told_what_its_container_would_be_told() {
        let mut wanted = spec("sha256-1", 7);
        wanted.inputs.serving.max_concurrent = 3;
        wanted.inputs.serving.batch_window_micros = 250;
        wanted.inputs.contract = Some(format!("sha256:{}", "c".repeat(64)));
        wanted.drain_seconds = 9;
        let folder = Path::new("/models/sha256-1");
        let (settings, _) = of_spec(&wanted, folder, Some(1)).unwrap();
        assert_eq!(settings.bind.host, "127.0.0.1");
        assert_eq!(settings.bind.port, 0);
        assert_eq!(settings.serving.max_concurrent, 3);
        assert_eq!(settings.passes.window.as_micros(), 250);
        assert_eq!(settings.passes.threads, Some(1));
        assert_eq!(settings.drain_timeout.as_secs(), 9);
        assert!(settings.loading.require_verified);
        assert_eq!(
            settings.loading.expect_digest,
            Some(wanted.inputs.digest.clone())
        );
        assert_eq!(settings.loading.contract, None);
        // What the object says of threads wins.
        wanted.inputs.serving.threads = 2;
        let (settings, _) = of_spec(&wanted, folder, Some(1)).unwrap();
        assert_eq!(settings.passes.threads, Some(2));
    }

    #[test]
    fn only_folders_below_the_models_are_served() {
        let foreign = |name: &str| VolumeRole::Foreign {
            name: name.to_owned(),
        };
        let work = VolumeRole::Work {
            run: "r".to_owned(),
        };
        for (name, volume, path, expected) in [
            ("ours", VolumeRole::Models, "sha256-1", Some("/m/sha256-1")),
            ("by name", foreign("models"), "a/b", Some("/m/a/b")),
            ("another", foreign("relay-laya-models"), "a", None),
            ("work", work, "a", None),
            ("climbs", VolumeRole::Models, "a/../../x", None),
            ("absolute", VolumeRole::Models, "/etc", None),
            ("empty", VolumeRole::Models, "", None),
        ] {
            let found = folder("x", Path::new("/m"), &volume, path);
            if let Err(error) = &found {
                assert!(!error.retryable(), "{name}: {error}");
            }
            assert_eq!(found.ok(), expected.map(PathBuf::from), "{name}");
        }
    }
}
