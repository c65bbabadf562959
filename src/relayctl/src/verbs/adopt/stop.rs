//! Stopping the container that publishes a port, with the `docker` of this machine: only after a yes, and only the one that
//! `docker` itself names. Where that is not possible, the command is told.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `docker stop` waits ten seconds before it kills.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(20);
/// Longest name of a container that is believed, in bytes.
const MAX_NAME: usize = 128;

/// `docker`, by where it is.
#[derive(Debug, Clone)]
pub(super) struct Docker(PathBuf);

impl Docker {
    /// That of `PATH`.
    pub(super) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let all = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let is_program = |program: &Path| {
            rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok() && program.is_file()
        };
        all.map(|folder| folder.join("docker"))
            .find(|program| is_program(program))
            .map(Self)
    }

    /// The one container that publishes a port of this machine.
    ///
    /// # Errors
    /// It cannot be asked, or there is none or more than one.
    pub(super) fn publisher(&self, port: u16) -> Result<String, String> {
        let filter = format!("publish={port}");
        let said = self.run(&["ps", "--filter", &filter, "--format", "{{.Names}}"])?;
        let names: Vec<_> = said
            .lines()
            .map(str::trim)
            .filter(|name| is_name(name))
            .collect();
        match names[..] {
            [name] => Ok(name.to_owned()),
            [] => Err(format!("no container publishes port {port}")),
            _ => Err(format!(
                "several containers publish port {port}: {}",
                names.join(", ")
            )),
        }
    }

    /// Stops a container.
    ///
    /// # Errors
    /// What `docker` says.
    pub(super) fn stop(&self, container: &str) -> Result<(), String> {
        self.run(&["stop", container]).map(|_| ())
    }

    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let child = Command::new(&self.0)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.map_err(|error| format!("cannot run {}: {error}", self.0.display()))?;
        let child = ended(child)?;
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("docker {}: {}", arguments[0], said.trim()))
    }
}

/// Waits for a child, which writes too little to fill a pipe, and kills it when it takes too long.
fn ended(mut child: Child) -> Result<Child, String> {
    let ends = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(child),
            Ok(None) if Instant::now() < ends => std::thread::sleep(AGAIN),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("docker does not end within {PATIENCE:?}"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// What may be a name, and is no flag.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= MAX_NAME
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// What a person types instead.
pub(super) fn command(port: u16) -> String {
    format!("docker stop $(docker ps -q --filter publish={port})")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn docker(script: &str) -> (tempfile::TempDir, Docker) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, Docker(path))
    }

    #[test]
    fn only_the_one_publisher_is_named() {
        for (script, expected) in [
            ("echo relay-laya", Ok("relay-laya")),
            ("echo", Err("no container publishes port 8737")),
            ("echo --force", Err("no container publishes port 8737")),
            (
                "printf 'a\\nb\\n'",
                Err("several containers publish port 8737: a, b"),
            ),
            ("echo no daemon >&2; exit 1", Err("docker ps: no daemon")),
        ] {
            let (_folder, docker) = docker(script);
            let got = docker.publisher(8737);
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{script}");
        }
    }

    #[test]
    fn it_is_stopped_by_its_name() {
        let (folder, docker) = docker("echo \"$@\" > \"$(dirname \"$0\")/said\"");
        docker.stop("relay-laya").unwrap();
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert_eq!(said, "stop relay-laya\n");
    }
}
