//! `relayctl logs`: only what runs processes of its own has logs.

use clap::Args;

use crate::call::{Call, block_on};
use crate::error::CliError;
use crate::kinds;
use crate::server::Form;
use api::exit::Exit;

/// Kinds that containers run for.
const WITH_LOGS: [&str; 2] = ["LayaServer", "TrainingRun"];

/// Arguments of `relayctl logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "LayaServers and TrainingRuns have logs, as soon as something runs for them. That of `relayd local` is\n<RELAY_HOME>/daemon/log."
)]
pub(crate) struct LogsArguments {
    /// Which object
    #[arg(value_name = "KIND/NAME")]
    object: String,
}

/// Shows logs.
pub(crate) fn run(call: &Call, arguments: &LogsArguments) -> Result<Exit, CliError> {
    let (kind, name) = kinds::object(&arguments.object)?;
    let daemon = call.places()?.daemon().join("log");
    let hint = format!("that of `relayd local` is {}", daemon.display());
    if !WITH_LOGS.contains(&kind.kind) {
        let line = format!(
            "a {} runs nothing and has no logs; {} have",
            kind.kind,
            WITH_LOGS.join(" and ")
        );
        return Err(CliError::usage(line).hint(hint));
    }
    block_on(Box::pin(async {
        let server = call.connect().await?;
        server
            .get(kind, &server.namespace, &name, Form::Objects)
            .await
            .map_err(|error| server.failed(error))?;
        let line = format!("nothing runs for {}, so it has no logs", kind.brief(&name));
        Err(CliError::new(Exit::NotFound, line).hint(hint))
    }))
}
