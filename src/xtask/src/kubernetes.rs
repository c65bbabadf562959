//! A Kubernetes API of our own for tests, which `tests/engines/kubernetes.sh` builds, starts and stops.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::command::{output, root, run};

/// What the script ends with where there is no Go toolchain and nothing was built before.
const NO_TOOLCHAIN: i32 = 3;

/// A server that runs.
pub(crate) struct Kubernetes {
    folder: PathBuf,
    /// Path of the administrator's kubeconfig.
    pub(crate) kubeconfig: String,
    /// Path of the kubectl of the same version.
    pub(crate) kubectl: PathBuf,
}

fn script() -> Command {
    Command::new(root().join("tests/engines/kubernetes.sh"))
}

/// Builds what is missing and starts a server; none on a developer's machine without Go, which was told then.
///
/// The server belongs to this process: when it is killed, the next start of anybody stops what it left.
pub(crate) fn start() -> Result<Option<Kubernetes>, String> {
    let owner = std::process::id().to_string();
    let folder = std::env::temp_dir().join(format!("relay-kubernetes-{owner}"));
    let mut command = script();
    // Minutes of building are told as they pass.
    command.arg("start").arg(&folder).arg(&owner);
    let started = command.stderr(Stdio::inherit()).output();
    let started = started.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if started.status.code() == Some(NO_TOOLCHAIN) {
        eprintln!("SKIPPED: every test that needs a Kubernetes API. CI does not skip them.");
        return Ok(None);
    }
    if !started.status.success() {
        return Err(format!("{command:?} ended with {}", started.status));
    }
    let kubeconfig = String::from_utf8_lossy(&started.stdout).trim().to_owned();
    let programs = output(script().arg("build"))?;
    Ok(Some(Kubernetes {
        folder,
        kubeconfig,
        kubectl: PathBuf::from(programs.trim()).join("kubectl"),
    }))
}

impl Kubernetes {
    /// Stops it and removes what it wrote.
    pub(crate) fn stop(self) -> Result<(), String> {
        run(script().arg("stop").arg(self.folder))
    }
}
