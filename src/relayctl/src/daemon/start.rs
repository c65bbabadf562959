//! Starting `relayd local` so that it outlives this program and its terminal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use files::{PRIVATE, Places};

use super::{findings, settings};
use crate::error::CliError;
use api::exit::Exit;

/// A log that is longer begins anew; the old one is kept beside it.
const MAX_LOG: u64 = 10 << 20;
/// Names the agent's folder, if it is not in the home.
const AGENT: &str = "RELAY_CODING_AGENT_DIR";
/// Less space than this is none, in bytes.
const NOTHING: u64 = 64 << 10;
/// What is read of its end when the daemon failed.
const TAIL: u64 = 16 << 10;

/// A daemon that was started and its log.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
    log: PathBuf,
    /// Where the log stood before.
    from: u64,
}

/// `relayd` beside this program, else on `PATH`.
///
/// # Errors
/// There is none.
pub(crate) fn find_program() -> Result<PathBuf, CliError> {
    let beside = std::env::current_exe()
        .ok()
        // Through the link that `kubectl relay` is.
        .and_then(|program| program.canonicalize().ok())
        .map(|program| program.with_file_name("relayd"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("relayd"));
    beside
        .into_iter()
        .chain(on_path)
        .find(|program| is_program(program))
        .ok_or_else(|| {
            CliError::new(
                Exit::NotFound,
                "there is no program `relayd` beside relayctl or on PATH",
            )
            .hint("build it with `cargo build --release -p relayd`, or put its folder on PATH")
        })
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Starts it in a process group of its own, so that an interrupt of this terminal does not reach it, with its log in
/// `<RELAY_HOME>/daemon/log`.
///
/// # Errors
/// The folder or the log cannot be made, or the program does not start.
pub(crate) fn start(places: &Places, program: &Path, flags: &[&str]) -> Result<Started, CliError> {
    let folder = places.daemon();
    for folder in [&places.relay, &folder] {
        files::make_private_folder(folder).map_err(|error| CliError::file(folder, error))?;
    }
    let log = folder.join("log");
    let file = open_log(&log).map_err(|error| CliError::file(&log, error))?;
    let from = file.metadata().map_or(0, |metadata| metadata.len());
    let errors = file
        .try_clone()
        .map_err(|error| CliError::file(&log, error))?;
    // Only where it is named: else the daemon finds it in the home by itself.
    let agent = std::env::var_os(AGENT)
        .filter(|named| !named.is_empty())
        .map(|_| (AGENT, &places.agent));
    let child = Command::new(program)
        .arg("local")
        .args(flags)
        // It must not keep the folder it was started in.
        .current_dir(&places.relay)
        // So what is named relative to that one is named whole.
        .env("RELAY_HOME", &places.relay)
        .envs(settings::own())
        .envs(agent)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(|error| {
            CliError::new(
                Exit::Failed,
                format!("cannot start {}: {error}", program.display()),
            )
        })?;
    Ok(Started { child, log, from })
}

fn open_log(path: &Path) -> io::Result<File> {
    let too_long = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_LOG);
    if too_long {
        std::fs::rename(path, path.with_extension("1"))?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(PRIVATE)
        .open(path)
}

impl Started {
    /// The exit code, if it ended.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What it said last, for the error that it ended.
    pub(crate) fn last_words(&self) -> String {
        let words = self.tail().unwrap_or_default();
        let lines = || words.lines().filter(|line| !line.trim().is_empty());
        // Its own error, if it had one; the hint after it is for its own arguments.
        let own = lines().rev().find_map(|line| line.strip_prefix("relayd: "));
        own.or_else(|| lines().next_back())
            .map_or_else(|| self.silence(), str::to_owned)
    }

    /// A full disk takes the log too.
    fn silence(&self) -> String {
        match findings::free_bytes(&self.log) {
            Ok(bytes) if bytes < NOTHING => format!("the disk of {} is full", self.log.display()),
            _ => "it said nothing".to_owned(),
        }
    }

    /// What becomes of the model inside, by what it said since it was started.
    pub(crate) fn model(&self) -> Option<findings::Model> {
        findings::model(&self.log, self.from)
    }

    fn tail(&self) -> io::Result<String> {
        findings::tail(&self.log, self.from, TAIL)
    }

    /// For a hint.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }
}
