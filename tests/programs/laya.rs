//! `laya serve` with a tiny checkpoint of random weights.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Answer, Home, Http, Running, program, run, until};

/// A tiny checkpoint with random weights, written into a home.
pub(crate) fn checkpoint(home: &Home) -> PathBuf {
    let folder = home.path().join("checkpoint");
    let mut command = Command::new(program("laya"));
    command
        .env_clear()
        .arg("random-checkpoint")
        .arg(&folder)
        .args(["--shape", "tiny"]);
    let ended = run(command.stdin(Stdio::null()));
    assert_eq!(ended.code, 0, "{ended:?}");
    folder
}

/// A Laya server that runs.
pub(crate) struct Laya {
    child: Running,
    port: u16,
}

impl Laya {
    /// Starts it on a port and waits until it is ready. What it logs is put behind what is in the file.
    pub(crate) fn start(checkpoint: &Path, port: u16, log: &Path) -> Self {
        let mut options = std::fs::OpenOptions::new();
        let log = options.create(true).append(true).open(log).unwrap();
        let mut command = Command::new(program("laya"));
        command
            .env_clear()
            .env("LAYA_DEVICE", "cpu")
            .args(["serve", "--port", &port.to_string(), "--model"])
            .arg(checkpoint)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = Running::spawn(&mut command);
        let laya = Self { child, port };
        let http = Http::new(Duration::from_secs(5));
        let ready = format!("{}/ready", laya.url());
        until("a Laya server is ready", || match http.get(&ready) {
            Ok(Answer { status: 200, .. }) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        laya
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills it, as the kernel would.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }
}
