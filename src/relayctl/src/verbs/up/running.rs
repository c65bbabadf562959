//! `relayd local` that answers: the one that runs, or one that is started now.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Instant;

use files::{Lock, Places};

use super::{AGAIN, MAX_SOCKET};
use crate::call::Call;
use crate::daemon::{self, Endpoint, Started, State};
use crate::error::CliError;
use crate::verbs::version::VERSION;
use api::exit::Exit;

/// Exit code of a `relayd local` that found an address taken.
const ADDRESS_TAKEN: i32 = 3;
/// Exit code of a `relayd local` that found another one.
const ALREADY_RUNS: i32 = 4;
/// SIGTERM.
const TERMINATED: i32 = 15;

/// A daemon that answers, and how it was started if that was now; nothing where nobody waits for one that was started.
pub(super) async fn running(
    call: &Call,
    places: &Places,
    flags: &[&str],
    ends: Instant,
) -> Result<Option<(Endpoint, Option<Started>)>, CliError> {
    check_socket(places)?;
    for folder in [&places.relay, &places.daemon()] {
        files::make_private_folder(folder).map_err(|error| unusable(folder, &error))?;
    }
    // Two at once: the second waits for the first, and finds what that started.
    let lock = places.daemon().join("up.lock");
    let left = ends.saturating_duration_since(Instant::now());
    let held = Lock::take_within(&lock, left).map_err(|error| unusable(&lock, &error))?;
    if held.is_none() {
        let line = "another `relayctl up` is still waiting for `relayd local`";
        return Err(CliError::new(Exit::TimedOut, line));
    }
    if let Some(found) = found(call, places, ends).await? {
        return Ok(Some(found));
    }
    let program = daemon::find_program()?;
    let started = daemon::start(places, &program, flags)?;
    call.tell(&format!(
        "starting {} local (process {}, log {})",
        program.display(),
        started.child.id(),
        started.log().display()
    ));
    if !call.waits(true) {
        return Ok(None);
    }
    match answering(call, places, Some(started), ends).await? {
        Some(answers) => Ok(Some(answers)),
        None => Err(stopped()),
    }
}

/// One that is there already and answers; nothing where a new one has to be started, also because what was there went away
/// before it answered, as one does that was killed just now.
async fn found(
    call: &Call,
    places: &Places,
    ends: Instant,
) -> Result<Option<(Endpoint, Option<Started>)>, CliError> {
    match daemon::look(places) {
        State::Runs(endpoint) => tell_found(call, &endpoint),
        // It has not said yet where it listens, or what it said is damaged.
        State::Crashed(how) => match daemon::holder(places) {
            Some(pid) => tell_waits(call, pid),
            None => {
                call.tell(&format!(
                    "a `relayd local` ended without cleaning up ({how}); a new one is started"
                ));
                return Ok(None);
            }
        },
        State::Absent => match daemon::holder(places) {
            Some(pid) => tell_waits(call, pid),
            None => return Ok(None),
        },
    }
    let found = answering(call, places, None, ends).await?;
    if found.is_none() {
        call.tell("the `relayd local` that was found has ended; a new one is started");
    }
    Ok(found)
}

fn tell_waits(call: &Call, pid: u32) {
    call.tell(&format!(
        "`relayd local` (process {pid}) is starting or ending; waiting for it"
    ));
}

fn tell_found(call: &Call, endpoint: &Endpoint) {
    if endpoint.version != VERSION {
        call.tell(&format!(
            "`relayd local` is of version {}, this program of {VERSION}; `relayctl down` and `relayctl up` start the one beside it",
            endpoint.version
        ));
    }
    let own = daemon::own();
    let theirs = daemon::of_process(endpoint.process.pid);
    let unused = theirs.map_or(Vec::new(), |theirs| daemon::unused(&own, &theirs));
    if !unused.is_empty() {
        call.tell(&format!(
            "`relayd local` runs already and does not use {}; `relayctl down` and the same command again start it with that",
            unused.join(", ")
        ));
    }
}

/// A socket has a shorter path than files may have; said before a daemon is started that cannot listen.
fn check_socket(places: &Places) -> Result<(), CliError> {
    let socket = places.socket();
    let length = socket.as_os_str().len();
    if length <= MAX_SOCKET {
        return Ok(());
    }
    let why = format!("its path has {length} bytes, and that of a socket has at most {MAX_SOCKET}");
    Err(CliError::file(&socket, why).hint("set RELAY_HOME to a shorter folder"))
}

/// A folder or file of the home that cannot be had, with what helps.
fn unusable(path: &Path, error: &std::io::Error) -> CliError {
    use std::io::ErrorKind;
    let hint = match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a file stands where a folder has to be; move it away, or set RELAY_HOME to a folder of yours"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "set RELAY_HOME to a folder that you can write to"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or set RELAY_HOME to a folder on another disk"
        }
        _ => "`relayctl doctor` looks closer",
    };
    CliError::file(path, error).hint(hint)
}

/// Waits until the object API answers; nothing where the daemon that was waited for, and was not started here, is gone.
async fn answering(
    call: &Call,
    places: &Places,
    mut started: Option<Started>,
    ends: Instant,
) -> Result<Option<(Endpoint, Option<Started>)>, CliError> {
    let server = call.connect().await?;
    let mut last = "it has not said yet where it listens".to_owned();
    loop {
        if let State::Runs(endpoint) = daemon::look(places) {
            match server.read("/version").await {
                Ok(_) => return Ok(Some((endpoint, started))),
                Err(error) => last = error.to_string(),
            }
        }
        if let Some(daemon) = &mut started
            && let Some(status) = daemon.ended()
        {
            if status.code() != Some(ALREADY_RUNS) {
                return Err(ended(daemon, status));
            }
            // Somebody started one by hand just now.
            started = None;
        }
        // One that was found and is told to end never answers.
        if started.is_none()
            && !matches!(daemon::look(places), State::Runs(_))
            && daemon::holder(places).is_none()
        {
            return Ok(None);
        }
        if Instant::now() >= ends {
            let log = places.daemon().join("log");
            return Err(CliError::new(
                Exit::TimedOut,
                format!("`relayd local` does not answer: {last}"),
            )
            .hint(format!(
                "`relayctl down` and `relayctl up` start it anew; its log is {}",
                log.display()
            )));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// By `relayctl down` in another terminal, or a signal.
fn stopped() -> CliError {
    CliError::new(
        Exit::Failed,
        "`relayd local` was stopped while it was waited for, as `relayctl down` does",
    )
    .hint("`relayctl up` starts it again")
}

fn ended(daemon: &Started, status: std::process::ExitStatus) -> CliError {
    if status.success() || status.signal() == Some(TERMINATED) {
        return stopped();
    }
    let line = format!(
        "`relayd local` ended with {status}: {}",
        daemon.last_words()
    );
    let log = format!("its log is {}", daemon.log().display());
    let hint = match status.code() {
        Some(ADDRESS_TAKEN) => format!(
            "`relayctl doctor` tells which ports are taken; RELAYD_LISTEN, RELAYD_ADMIN_LISTEN and RELAYD_DAEMON_PORT name others, for example `RELAYD_LISTEN=127.0.0.1:0 relayctl up`; {log}"
        ),
        _ => log,
    };
    CliError::new(Exit::Failed, line).hint(hint)
}
