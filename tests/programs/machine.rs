//! A machine of a user who has nothing but `relayctl`: it starts the daemon, and the daemon ends with the test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Ended, Home, program, run};

/// A machine whose daemon ends with the test.
pub(crate) struct Machine {
    pub(crate) home: Home,
    /// More variables of every command.
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            home: Home::new(),
            variables: Vec::new(),
        }
    }

    /// With one more variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.home.path().join("relay")
    }

    pub(crate) fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("RELAY_HOME", self.folder())
            // Nothing that other tests or this machine have.
            .env("RELAYD_LISTEN", "127.0.0.1:0")
            .env("RELAYD_ADMIN_LISTEN", "127.0.0.1:0")
            .env("RELAYD_DAEMON_PORT", "0")
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn relayctl(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command("relayctl", arguments))
    }

    pub(crate) fn endpoint(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.folder().join("daemon/endpoint.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn pid(&self) -> i32 {
        let endpoint = self.endpoint().unwrap();
        i32::try_from(endpoint["pid"].as_i64().unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.endpoint().is_some() {
            let _ = self.relayctl(&["down"]);
        }
    }
}

/// Whether a process has ended.
pub(crate) fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}
