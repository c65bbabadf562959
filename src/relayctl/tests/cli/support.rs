//! Runs the program in a home of its own, with nothing of the machine's around it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home that ends with the test.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file below the home and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program with its surroundings.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("RELAY_HOME", self.path("relay"))
            .env("KUBECONFIG", self.path("kubeconfig"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_relayctl")));
        self.ran(command.args(arguments).output().unwrap())
    }

    /// What a run said, with this home's own path redacted.
    pub(crate) fn ran(&self, output: Output) -> Ran {
        let own = self.folder.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&own, "~");
        Ran {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// The first line of the talk.
pub(crate) fn first(ran: &Ran) -> &str {
    ran.err.lines().next().unwrap_or_default()
}
