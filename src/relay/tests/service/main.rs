//! The commands of `relay` that ask a router, as a person runs them; the router is a fake that says what the test needs.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod connect;
mod explain;
mod fake_router;
mod memory;
mod migrate;
mod outcomes;
mod report;
mod route;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A user's home.
pub(crate) struct Home(tempfile::TempDir);

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn agent(&self, name: &str) -> PathBuf {
        self.0.path().join("agent").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.agent(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.agent(name)).ok()
    }

    /// Names in the agent folder but those of locks.
    pub(crate) fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.agent("")) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        names.sort();
        names
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `relay` with an environment that has nothing but this home.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relay"));
        command
            .env_clear()
            .env("RELAY_HOME", self.path())
            .stdin(Stdio::null())
            .args(arguments);
        command
    }

    /// The same, with a router in the environment.
    pub(crate) fn run(&self, url: &str, arguments: &[&str]) -> Ended {
        end(self.command(arguments).env("LAYA_BASE_URL", url))
    }
}

pub(crate) fn end(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs it with something on standard input.
pub(crate) fn with_input(command: &mut Command, input: &str) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A decision as `relay route` makes it in process.
pub(crate) fn decision(text: &str) -> serde_json::Value {
    let home = Home::new();
    let ended = home.run("http://127.0.0.1:9", &["route", "-o", "json", text]);
    serde_json::from_str(&ended.out).unwrap()
}

/// Nothing that a terminal would obey.
pub(crate) fn assert_harmless(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(bad), "{text:?}");
}
