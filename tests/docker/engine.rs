//! The `docker` client against the engine under test, containers that do not outlive their test, and checkpoints.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use laya::checkpoint::{FileEntry, Manifest, checkpoint_digest};
use serde_json::Value;

/// Longest wait for anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test`"))
}

/// Name of the image under test.
pub(crate) fn image() -> String {
    variable("RELAY_LAYA_IMAGE")
}

/// Address of the engine under test.
pub(crate) fn host() -> String {
    variable("DOCKER_HOST")
}

/// Runs the client.
pub(crate) fn docker(arguments: &[&str]) -> Output {
    Command::new("docker")
        .env("DOCKER_HOST", host())
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs the client, which must succeed, and gives what it printed.
pub(crate) fn told(arguments: &[&str]) -> String {
    let output = docker(arguments);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {err}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A container that is removed with its test, on panic too.
pub(crate) struct Container(String);

impl Container {
    /// Starts the image with a read-only root and a checkpoint, its port published on a free port of loopback.
    pub(crate) fn start(checkpoint: &Path, arguments: &[&str]) -> Self {
        let mount = format!("{}:/data/models/checkpoint:ro", checkpoint.display());
        let image = image();
        let mut all = vec![
            "run",
            "--detach",
            "--read-only",
            "--tmpfs",
            "/tmp",
            "--memory",
            "256m",
        ];
        all.extend(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
        all.extend(["--publish", "127.0.0.1:0:8000", "--volume", &mount, &image]);
        all.extend(["serve", "--model", "/data/models/checkpoint"]);
        all.extend(arguments);
        Self(told(&all))
    }

    fn inspect(&self, format: &str) -> String {
        told(&["inspect", "--format", format, &self.0])
    }

    /// Waits for the end and gives the exit code.
    pub(crate) fn exit_code(&self) -> i32 {
        let started = Instant::now();
        while self.inspect("{{.State.Running}}") == "true" {
            assert!(
                started.elapsed() < PATIENCE,
                "still running: {}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        self.inspect("{{.State.ExitCode}}").parse().unwrap()
    }

    /// Everything it wrote.
    pub(crate) fn logs(&self) -> String {
        let output = docker(&["logs", &self.0]);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Address of its published port.
    fn address(&self) -> String {
        told(&["port", &self.0, "8000/tcp"])
            .lines()
            .next()
            .unwrap()
            .to_owned()
    }

    /// Asks a path with `curl`, which is what a person has.
    pub(crate) fn ask(&self, path: &str, body: Option<&str>) -> Option<(u16, Value)> {
        let url = format!("http://{}{path}", self.address());
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--max-time",
            "10",
            "--write-out",
            "\n%{http_code}",
            &url,
        ]);
        if let Some(body) = body {
            curl.args(["--data-binary", body]);
        }
        let text = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        let (answer, status) = text.rsplit_once('\n')?;
        let status = status.parse().ok().filter(|status| *status != 0)?;
        Some((status, serde_json::from_str(answer).unwrap_or(Value::Null)))
    }

    /// Waits until `/ready` says so.
    pub(crate) fn wait_ready(&self) {
        let started = Instant::now();
        loop {
            let seen = self.ask("/ready", None);
            if matches!(&seen, Some((200, _))) {
                return;
            }
            let running = self.inspect("{{.State.Running}}") == "true";
            assert!(
                running && started.elapsed() < PATIENCE,
                "not ready: {seen:?}; {}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command inside and gives its exit code.
    pub(crate) fn exec(&self, command: &[&str]) -> i32 {
        let mut all = vec!["exec", &self.0];
        all.extend(command);
        docker(&all).status.code().unwrap()
    }

    /// Asks it to stop.
    pub(crate) fn stop(&self) {
        told(&["stop", "--time", "30", &self.0]);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.0]);
    }
}

/// A copy of the tiny checkpoint with a manifest, and its digest. Everybody may read it: the container's user is 10001.
pub(crate) fn checkpoint(folder: &Path) -> (PathBuf, String) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/tiny-laya");
    let to = folder.join("tiny");
    let mut files = Vec::new();
    for path in [
        "encoder/config.json",
        "model.safetensors",
        "rl_agent_config.json",
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
    ] {
        let target = to.join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(from.join(path), &target).unwrap();
        files.push(FileEntry {
            path: path.to_owned(),
            size: std::fs::metadata(&target).unwrap().len(),
            sha256: sha256(&target),
        });
    }
    let digest = checkpoint_digest(&files);
    let manifest = Manifest {
        files,
        digest: digest.clone(),
        contract: None,
        probes: Vec::new(),
        more: serde_json::Map::new(),
    };
    std::fs::write(
        to.join("relay-manifest.json"),
        serde_json::to_vec(&manifest).unwrap(),
    )
    .unwrap();
    told_by(Command::new("chmod").args(["-R", "a+rX"]).arg(folder));
    (to, digest)
}

fn sha256(file: &Path) -> String {
    let text = told_by(Command::new("sha256sum").arg(file));
    text.split_whitespace().next().unwrap().to_owned()
}

fn told_by(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
