//! `relayctl policy show`: the revision in force, whole.

use clap::Args;
use serde_json::json;

use super::source;
use crate::call::{Call, block_on};
use crate::conditions;
use crate::error::CliError;
use crate::kinds;
use crate::output::{self, to_yaml};
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl policy show`.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Which RoutingPolicy
    #[arg(default_value = "default")]
    name: String,
}

/// Shows it.
pub(super) fn run(call: &Call, arguments: &ShowArguments) -> Result<Exit, CliError> {
    let (_, name) = kinds::object(&format!("rp/{}", arguments.name))?;
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let (named, object) = source::in_force(&server, &name).await?;
        if !conditions::is_current(&object)
            || conditions::find(&object, "Accepted").is_some_and(|accepted| !accepted.is_true())
        {
            call.tell(&format!(
                "note: the object was edited since, and that is not in force; `relayctl explain rp/{name}` tells why"
            ));
        }
        let document = json!({
            "apiVersion": kinds::routing_policy().api_version(),
            "kind": "RoutingPolicy",
            "metadata": {"name": name},
            "spec": named.spec.tree(),
        });
        if call.format().is_table() {
            terminal::print(&format!(
                "# {}\n{}",
                output::visible(&named.title),
                to_yaml(&document)?
            ))?;
        } else {
            output::tree(&document, &call.format())?;
        }
        Ok(Exit::Done)
    }))
}
