//! `relayctl down`: stops `relayd local`, and by its own call the servers or leaves them. What is stored stays.

use std::time::Duration;

use clap::Args;

use crate::call::{Call, block_on};
use crate::daemon::calls::{self, Servers};
use crate::daemon::{self, State, Stopped, Telling};
use crate::error::CliError;
use api::exit::Exit;

/// A drain takes at most 25 s, and servers have their own before it.
const PATIENCE: Duration = Duration::from_secs(90);

/// Arguments of `relayctl down`.
#[derive(Debug, Args)]
#[command(after_help = "\
Servers drain and stop too; with --keep-servers they go on, and the next `relayctl up` finds them. Volumes stay in any case.")]
pub(crate) struct DownArguments {
    /// Leave the servers that run
    #[arg(long)]
    keep_servers: bool,
}

/// Stops it.
pub(crate) fn run(call: &Call, arguments: &DownArguments) -> Result<Exit, CliError> {
    let DownArguments { keep_servers } = *arguments;
    super::up::only_local(call, "down")?;
    let servers = if keep_servers {
        Servers::Keep
    } else {
        Servers::Stop
    };
    let telling = tell(call, servers)?;
    let patience = call.waits(true).then(|| call.patience(PATIENCE));
    match daemon::stop(&call.places()?, telling, patience)? {
        Stopped::Nothing(None) if telling == Telling::Told => call.tell("stopped `relayd local`"),
        Stopped::Nothing(None) => call.tell("`relayd local` is not running"),
        Stopped::Nothing(Some(how)) => {
            call.tell(&format!("`relayd local` is not running ({how})"));
        }
        Stopped::Told(pid) => call.tell(&format!("`relayd local` (process {pid}) was told to end")),
        Stopped::Gone(pid) => call.tell(&format!("stopped `relayd local` (process {pid})")),
    }
    Ok(Exit::Done)
}

/// By its own call, where it answers; else a signal has to do, which leaves the servers.
fn tell(call: &Call, servers: Servers) -> Result<Telling, CliError> {
    if !matches!(daemon::look(&call.places()?), State::Runs(_)) {
        return Ok(Telling::Signal);
    }
    block_on(Box::pin(async {
        let server = call.connect().await?;
        match calls::shutdown(&server, servers).await {
            Ok(()) => Ok(Telling::Told),
            Err(error) => {
                if servers == Servers::Stop && !error.is_not_found() {
                    let why = server.failed(error);
                    call.tell(&format!("note: servers that run are left: {}", why.line()));
                }
                Ok(Telling::Signal)
            }
        }
    }))
}
