//! `relayd local` of this user: where it says it is, whether it lives, how it is started and stopped.

mod start;
mod stop;

use std::path::Path;

use files::{Places, ReadError, process_start};
use serde::Deserialize;

pub(crate) use self::start::{Started, find_program, start};
pub(crate) use self::stop::{Stopped, stop};

/// Longest `endpoint.json`, in bytes.
const MAX_ENDPOINT: u64 = 64 << 10;

/// A process that a file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// When it started; another process with the same number started at another time.
    start: Option<u64>,
}

impl Process {
    /// Whether it is the one that was meant, and still there.
    pub(crate) fn lives(self) -> bool {
        match (process_start(self.pid), self.start) {
            (Some(now), Some(then)) => now == then,
            (found, None) => found.is_some(),
            (None, Some(_)) => false,
        }
    }
}

/// `<RELAY_HOME>/daemon/endpoint.json`. A newer daemon may say more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Daemon and object API.
    pub(crate) url: Option<String>,
    /// Router.
    pub(crate) router: Option<String>,
    pub(crate) version: String,
    pub(crate) process: Process,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    router: Option<String>,
    pid: u32,
    #[serde(default)]
    pid_start: Option<u64>,
    #[serde(default)]
    version: String,
}

/// An `endpoint.json` that says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is damaged.
    #[error("is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

impl Endpoint {
    /// Reads it; nothing where there is none.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    pub(crate) fn read(places: &Places) -> Result<Option<Self>, EndpointError> {
        let text = match files::read_text(&places.endpoint(), MAX_ENDPOINT) {
            Ok(file) => file.text,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Written {
            url,
            router,
            pid,
            pid_start,
            version,
        } = serde_json::from_str(&text)?;
        Ok(Some(Self {
            url,
            router,
            version,
            process: Process {
                pid,
                start: pid_start,
            },
        }))
    }
}

/// What is known of the daemon without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing says that there is one.
    Absent,
    /// It ended without cleaning up; says how that is known.
    Crashed(String),
    /// It lives.
    Runs(Endpoint),
}

/// Looks at the files.
pub(crate) fn look(places: &Places) -> State {
    match Endpoint::read(places) {
        Ok(None) => State::Absent,
        Ok(Some(endpoint)) if endpoint.process.lives() => State::Runs(endpoint),
        Ok(Some(endpoint)) => State::Crashed(format!(
            "process {} of {} is gone",
            endpoint.process.pid,
            places.endpoint().display()
        )),
        Err(error) => State::Crashed(format!("{} {error}", places.endpoint().display())),
    }
}

/// The process that holds the daemon's lock by the note in it, if it lives. It may just be starting.
pub(crate) fn holder(places: &Places) -> Option<u32> {
    let note = files::read_text(&places.daemon().join("lock"), 64).ok()?;
    let pid: u32 = note.text.trim().parse().ok()?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    is_relayd(&program).then_some(pid)
}

fn is_relayd(program: &Path) -> bool {
    // A program that was replaced since has ` (deleted)` behind its name.
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.split(' ').next() == Some("relayd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_number_and_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().to_owned(),
            agent: folder.path().join("agent"),
        };
        std::fs::create_dir_all(places.daemon()).unwrap();
        assert_eq!(look(&places), State::Absent);
        let pid = std::process::id();
        let start = process_start(pid).unwrap();
        let write = |text: String| std::fs::write(places.endpoint(), text).unwrap();
        write(format!(
            r#"{{"router":"http://127.0.0.1:1","pid":{pid},"pidStart":{start},"version":"1","more":true}}"#
        ));
        let State::Runs(endpoint) = look(&places) else {
            panic!("it runs")
        };
        assert_eq!(endpoint.router.as_deref(), Some("http://127.0.0.1:1"));
        for text in [
            format!(r#"{{"pid":{pid},"pidStart":{}}}"#, start + 1),
            format!(r#"{{"pid":{},"pidStart":1}}"#, u32::MAX),
            "{".to_owned(),
            String::new(),
        ] {
            write(text.clone());
            assert!(matches!(look(&places), State::Crashed(_)), "{text}");
        }
    }

    #[test]
    fn one_that_ended_is_dead_before_its_parent_has_noticed() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let process = Process {
            pid: child.id(),
            start: process_start(child.id()),
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while process.lives() {
            assert!(std::time::Instant::now() < deadline, "still alive");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!process.lives());
    }

    #[test]
    fn the_lock_names_its_holder_only_while_that_is_a_relayd() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().to_owned(),
            agent: folder.path().join("agent"),
        };
        std::fs::create_dir_all(places.daemon()).unwrap();
        assert_eq!(holder(&places), None);
        std::fs::write(
            places.daemon().join("lock"),
            format!("{}\n", std::process::id()),
        )
        .unwrap();
        assert_eq!(holder(&places), None, "a test is no relayd");
        assert!(
            is_relayd(Path::new("/usr/bin/relayd (deleted)"))
                && !is_relayd(Path::new("/bin/relay"))
        );
    }
}
