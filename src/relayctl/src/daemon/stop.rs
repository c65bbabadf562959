//! Stopping `relayd local`: the very process that `endpoint.json` names, or that holds the lock.

use std::time::{Duration, Instant};

use files::{Places, process_start};
use rustix::process::{Pid, Signal, kill_process};

use super::{State, holder, look};
use crate::error::CliError;
use api::exit::Exit;

/// Between two looks whether it is gone.
const AGAIN: Duration = Duration::from_millis(20);

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nothing ran; with what a file says of a process that is left alone.
    Nothing(Option<String>),
    /// It was told, and nobody waited.
    Told(u32),
    /// It is gone.
    Gone(u32),
}

/// Whether the daemon needs to be told by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It does.
    Signal,
    /// It was told by a call.
    Told,
}

/// Tells it to end, and waits until it has; without patience it is only told.
///
/// # Errors
/// It may not be told, or does not end in time.
pub(crate) fn stop(
    places: &Places,
    telling: Telling,
    patience: Option<Duration>,
) -> Result<Stopped, CliError> {
    let pid = match look(places) {
        State::Runs(endpoint) => endpoint.process.pid,
        state @ (State::Absent | State::Crashed(_)) => match (holder(places), state) {
            (Some(pid), _) => pid,
            (None, State::Crashed(how)) => return Ok(Stopped::Nothing(Some(how))),
            (None, _) => return Ok(Stopped::Nothing(None)),
        },
    };
    // Whoever has the number later started at another time.
    let Some(start) = process_start(pid) else {
        return Ok(Stopped::Nothing(None));
    };
    let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(target) = target else {
        return Ok(Stopped::Nothing(None));
    };
    if telling == Telling::Signal
        && let Err(error) = kill_process(target, Signal::TERM)
        && process_start(pid) == Some(start)
    {
        let line = format!("cannot stop `relayd local` (process {pid}): {error}");
        return Err(CliError::new(Exit::Failed, line));
    }
    match patience {
        Some(patience) => until_gone(pid, start, patience),
        None => Ok(Stopped::Told(pid)),
    }
}

/// Waits for the end of a process that was told.
fn until_gone(pid: u32, start: u64, patience: Duration) -> Result<Stopped, CliError> {
    let began = Instant::now();
    while process_start(pid) == Some(start) {
        if began.elapsed() >= patience {
            let line = format!(
                "`relayd local` (process {pid}) was told to end and has not within {patience:?}"
            );
            return Err(CliError::new(Exit::TimedOut, line).hint(format!(
                "it drains its requests; `kill -9 {pid}` ends it at once"
            )));
        }
        std::thread::sleep(AGAIN);
    }
    Ok(Stopped::Gone(pid))
}
