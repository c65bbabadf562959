//! An engine of a test's own, beside the one all tests share: it can be stopped, killed and started.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{docker_at, fault_image, host};

/// An engine with its own folder, bridge and socket. It is stopped and its folder removed with the test.
pub(crate) struct Engine {
    folder: tempfile::TempDir,
    /// What it is called with.
    flags: String,
    /// Tells it from others, of this process and of those beside it.
    number: u32,
    /// What ran in containers when the engine was killed, and runs on without it.
    orphans: Mutex<Vec<u32>>,
}

/// Engines of this process so far.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl Engine {
    /// Starts it, with the fault image.
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// The same, with flags of the engine beside those it needs.
    pub(crate) fn start_with(flags: &str) -> Self {
        let before = STARTED.fetch_add(1, Ordering::Relaxed);
        let engine = Self {
            folder: tempfile::tempdir().unwrap(),
            flags: format!("--iptables=false --ip6tables=false {flags}"),
            number: (std::process::id() + before) % 200,
            orphans: Mutex::default(),
        };
        engine.up();
        let archive = engine.folder.path().join("image.tar");
        let archive = archive.to_str().unwrap();
        for (host, arguments) in [
            (
                host(),
                ["save", "--output", archive, &fault_image()].as_slice(),
            ),
            (engine.host(), ["load", "--input", archive].as_slice()),
        ] {
            let output = docker_at(&host, arguments);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "docker {arguments:?}: {err}");
        }
        engine
    }

    /// Starts it again.
    pub(crate) fn up(&self) {
        self.script("start");
    }

    /// Stops it as a service manager does.
    pub(crate) fn down(&self) {
        self.script("stop");
    }

    /// Kills it with everything that watches its containers, so that nobody knows how they end.
    pub(crate) fn kill(&self) {
        let below = self.root().display().to_string();
        let all = processes(&below);
        self.orphans.lock().unwrap().extend(children(&all));
        for pid in all {
            kill(pid);
        }
    }

    /// Its address.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.root().join("run/docker.sock").display())
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("docker")
    }

    fn script(&self, word: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/docker.sh");
        let number = self.number;
        let output = Command::new(script)
            .arg(word)
            .env("RELAY_ENGINES", self.folder.path())
            .env("RELAY_ENGINE_BRIDGE", format!("relaytest{}", number + 1))
            .env("RELAY_ENGINE_SUBNET", format!("172.30.{number}.1/24"))
            .env("RELAY_ENGINE_FLAGS", &self.flags)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker.sh {word}: {err}");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.script("stop");
        // What a killed engine left mounted and running below its own folder.
        let below = self.root().display().to_string();
        let orphans = std::mem::take(&mut *self.orphans.lock().unwrap());
        for pid in processes(&below).into_iter().chain(orphans) {
            kill(pid);
        }
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mut targets: Vec<&str> = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|target| target.starts_with(&below))
            .collect();
        targets.sort_unstable();
        for target in targets.into_iter().rev() {
            let _ = Command::new("umount").args(["--lazy", target]).status();
        }
    }
}

/// Processes whose command line names something below a folder.
fn processes(below: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(below) && pid != std::process::id() {
            found.push(pid);
        }
    }
    found
}

/// Children of these processes that are none of them.
fn children(parents: &[u32]) -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| !parents.contains(pid))
        .filter(|pid| parent_of(*pid).is_some_and(|parent| parents.contains(&parent)))
        .collect()
}

/// Kills one process by its id.
fn kill(pid: u32) {
    // One that is gone already is what is wanted.
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
}
