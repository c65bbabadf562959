//! A user's home, and the commands that run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::program;

/// A user's home: everything a program reads or writes of its own is below it, and it is gone with the test.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below the home and gives its path.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The same, for its owner alone.
    pub(crate) fn private_file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Text of a file below the home.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let path = self.path().join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Every file below the home that holds these bytes.
    pub(crate) fn files_with(&self, marker: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                // What is gone meanwhile holds nothing; sockets cannot be read.
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let bytes = std::fs::read(&path).unwrap_or_default();
                        let mut windows = bytes.windows(marker.len());
                        if windows.any(|window| window == marker.as_bytes()) {
                            found.push(path);
                        }
                    }
                }
            }
        }
        found.sort();
        found
    }

    /// Writes `laya.*` of the user's settings.
    pub(crate) fn settings(&self, laya: &Value) {
        let settings = json!({ "laya": laya }).to_string();
        self.file("agent/settings.json", settings);
    }

    /// Without exploration, which only a router with a store does, and by chance: decisions of two routers can be compared.
    pub(crate) fn without_exploration(self) -> Self {
        self.settings(&json!({"exploration": 0}));
        self
    }

    /// `relay` with a router's base URL and nothing of this machine's environment.
    pub(crate) fn relay(&self, router: &str, arguments: &[&str]) -> Command {
        let mut command = self.relay_alone(arguments);
        command.env("LAYA_BASE_URL", router);
        command
    }

    /// `relay` that must find its router by itself.
    pub(crate) fn relay_alone(&self, arguments: &[&str]) -> Command {
        self.command("relay", arguments)
    }

    /// `relayd router` on free ports of loopback.
    pub(crate) fn relayd(&self, arguments: &[&str]) -> Command {
        self.router("router", arguments)
    }

    /// `relayd local` on free ports of loopback.
    pub(crate) fn local(&self, arguments: &[&str]) -> Command {
        self.router("local", arguments)
    }

    fn router(&self, word: &str, arguments: &[&str]) -> Command {
        let mut all = vec![word, "--admin-listen", "127.0.0.1:0"];
        all.extend(["--log-format", "json"]);
        if !arguments.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        all.extend(arguments);
        self.command("relayd", &all)
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command
            .env_clear()
            .env("RELAY_HOME", self.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }
}
