//! `relayd local` of this user: where it says it is, whether it lives, how it is started and stopped.

pub(crate) mod calls;
mod findings;
mod port;
mod process;
mod settings;
mod start;
mod stop;

use files::{Lock, Places, ReadError};
use serde::Deserialize;

pub(crate) use self::findings::{Aside, Model, free_bytes, model, set_aside};
pub(crate) use self::port::holder as port_holder;
pub(crate) use self::process::Process;
use self::process::{ProgramOf, is_relayd, program_of};
pub(crate) use self::settings::{of_process, own, unused};
pub(crate) use self::start::{Started, find_program, start};
pub(crate) use self::stop::{Stopped, Telling, stop};

/// Longest `endpoint.json`, in bytes.
const MAX_ENDPOINT: u64 = 64 << 10;

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
    /// A file speaks of one that is not there, or is not the daemon of this home; says how that is known.
    Crashed(String),
    /// It lives.
    Runs(Endpoint),
}

/// Looks at the files.
pub(crate) fn look(places: &Places) -> State {
    match (judge(places, &program_of), holder(places)) {
        // It runs, and nobody can find it by its file.
        (State::Crashed(how), Some(pid)) => State::Crashed(format!(
            "{how}; process {pid} holds the lock, and `relayctl down` ends it"
        )),
        (state, _) => state,
    }
}

fn judge(places: &Places, program_of: ProgramOf<'_>) -> State {
    let shown = places.endpoint().display().to_string();
    let endpoint = match Endpoint::read(places) {
        Ok(None) => return State::Absent,
        Ok(Some(endpoint)) => endpoint,
        Err(error) => return State::Crashed(format!("{shown} {error}")),
    };
    if let Some(why) = endpoint.process.fault(program_of) {
        return State::Crashed(format!("{shown}: {why}"));
    }
    // A copied home names the daemon of another one. Asked last, so that no daemon that just starts is disturbed.
    if is_locked(places) {
        State::Runs(endpoint)
    } else {
        let pid = endpoint.process.pid;
        State::Crashed(format!(
            "{shown}: process {pid} does not hold {}",
            lock(places).display()
        ))
    }
}

fn lock(places: &Places) -> std::path::PathBuf {
    places.daemon().join("lock")
}

fn is_locked(places: &Places) -> bool {
    Lock::is_held(&lock(places)).unwrap_or(false)
}

/// The process that holds the daemon's lock by the note in it, if it lives. It may just be starting.
pub(crate) fn holder(places: &Places) -> Option<u32> {
    noted(places, &program_of)
}

fn noted(places: &Places, program_of: ProgramOf<'_>) -> Option<u32> {
    let note = files::read_text(&lock(places), 64).ok()?;
    let pid: u32 = note.text.trim().parse().ok()?;
    let program = program_of(pid)?;
    (is_relayd(&program) && is_locked(places)).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use files::process_start;

    use super::*;

    fn relayd(_: u32) -> Option<PathBuf> {
        Some("/usr/bin/relayd".into())
    }

    fn home() -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().to_owned(),
            agent: folder.path().join("agent"),
        };
        std::fs::create_dir_all(places.daemon()).unwrap();
        (folder, places)
    }

    #[test]
    fn a_daemon_is_known_by_its_number_its_start_its_program_and_its_lock() {
        let (_folder, places) = home();
        assert_eq!(look(&places), State::Absent);
        let pid = std::process::id();
        let start = process_start(pid).unwrap();
        let write = |text: &str| std::fs::write(places.endpoint(), text).unwrap();
        let good = format!(
            r#"{{"router":"http://127.0.0.1:1","pid":{pid},"pidStart":{start},"version":"1","more":true}}"#
        );
        write(&good);
        let told = |state: State| match state {
            State::Crashed(how) => how,
            other => panic!("{other:?}"),
        };
        assert!(told(judge(&places, &relayd)).contains("does not hold"));
        let lock = Lock::try_take(&lock(&places)).unwrap().unwrap();
        let State::Runs(endpoint) = judge(&places, &relayd) else {
            panic!("it runs")
        };
        assert_eq!(endpoint.router.as_deref(), Some("http://127.0.0.1:1"));
        assert!(told(look(&places)).contains("is no relayd"));
        for (text, how) in [
            (
                format!(r#"{{"pid":{pid},"pidStart":{}}}"#, start + 1),
                "is gone",
            ),
            (format!(r#"{{"pid":{},"pidStart":1}}"#, u32::MAX), "is gone"),
            (
                r#"{"pid":1,"url":"http://127.0.0.1:1"}"#.to_owned(),
                "may be anything",
            ),
            ("{".to_owned(), "is damaged"),
            (String::new(), "is damaged"),
        ] {
            write(&text);
            let said = told(judge(&places, &relayd));
            assert!(said.contains(how), "{text}: {said}");
        }
        drop(lock);
    }

    #[test]
    fn what_is_not_the_daemon_of_this_home_is_never_signalled() {
        use std::os::unix::process::ExitStatusExt;
        let (_folder, places) = home();
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = child.id();
        let start = process_start(pid).unwrap();
        std::fs::write(lock(&places), format!("{pid}\n")).unwrap();
        for text in [
            format!(r#"{{"pid":{pid}}}"#),
            format!(r#"{{"pid":{pid},"pidStart":{start}}}"#),
        ] {
            std::fs::write(places.endpoint(), text).unwrap();
            let stopped = stop(&places, Telling::Signal, Some(std::time::Duration::ZERO)).unwrap();
            assert!(matches!(stopped, Stopped::Nothing(Some(_))), "{stopped:?}");
        }
        // Still there: this signal is the first that it gets.
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn the_lock_names_its_holder_only_while_that_is_a_relayd_and_holds_it() {
        let (_folder, places) = home();
        assert_eq!(holder(&places), None);
        let pid = std::process::id();
        std::fs::write(lock(&places), format!("{pid}\n")).unwrap();
        assert_eq!(noted(&places, &relayd), None, "nobody holds it");
        let taken = Lock::try_take(&lock(&places)).unwrap().unwrap();
        assert_eq!(noted(&places, &relayd), Some(pid));
        assert_eq!(holder(&places), None, "a test is no relayd");
        drop(taken);
    }
}
