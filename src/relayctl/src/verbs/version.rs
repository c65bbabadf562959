//! `relayctl version`: of this program, and of what it talks to if that answers.

use clap::Args;
use serde_json::json;

use crate::call::Call;
use crate::error::CliError;
use crate::output::{self, CLI_VERSION};
use crate::terminal;
use api::exit::Exit;

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Arguments of `relayctl version`.
#[derive(Debug, Args)]
pub(crate) struct VersionArguments {
    /// Only of this program; nobody is asked
    #[arg(long)]
    client: bool,
}

/// Shows versions.
pub(crate) async fn run(call: &Call, arguments: &VersionArguments) -> Result<Exit, CliError> {
    let mut document = json!({"apiVersion": CLI_VERSION, "kind": "Version", "client": VERSION});
    let mut text = format!("relayctl {VERSION}\n");
    if !arguments.client {
        let server = call.connect().await?;
        let name = &server.context.name;
        match server.read("/version").await {
            Ok(version) => {
                let version = version["gitVersion"].as_str().unwrap_or("unknown");
                text.push_str(&format!("context {name}: {version}\n"));
                document["context"] = name.as_str().into();
                document["server"] = version.into();
            }
            Err(error) => {
                let error = server.failed(error);
                call.tell(&format!("note: {}", error.line()));
            }
        }
    }
    if call.format().is_table() {
        terminal::print(&output::visible(&text))?;
    } else {
        output::tree(&document, &call.format())?;
    }
    Ok(Exit::Done)
}
