//! `relayctl down`: stops `relayd local`. What is stored stays.

use std::time::Duration;

use crate::call::Call;
use crate::daemon::{self, Stopped};
use crate::error::CliError;
use api::exit::Exit;

/// A drain takes at most 25 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// Stops it.
pub(crate) fn run(call: &Call) -> Result<Exit, CliError> {
    super::up::only_local(call, "down")?;
    let patience = call.waits(true).then(|| call.patience(PATIENCE));
    match daemon::stop(&call.places()?, patience)? {
        Stopped::Nothing(None) => call.tell("`relayd local` is not running"),
        Stopped::Nothing(Some(how)) => {
            call.tell(&format!("`relayd local` is not running ({how})"));
        }
        Stopped::Told(pid) => call.tell(&format!("`relayd local` (process {pid}) was told to end")),
        Stopped::Gone(pid) => call.tell(&format!("stopped `relayd local` (process {pid})")),
    }
    Ok(Exit::Done)
}
