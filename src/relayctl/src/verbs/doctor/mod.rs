//! `relayctl doctor`: what Relay needs, checked in order, each ok, warn or fail with what helps. What a check means is
//! pure where it can be; asking is not.

mod api;
mod engine;
mod machine;

use serde::Serialize;
use serde_json::json;

use crate::call::Call;
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{self, CLI_VERSION};
use crate::terminal;
use ::api::exit::Exit;

const GIB: u64 = 1 << 30;
/// Less free space is a failure, in bytes.
pub(crate) const TOO_LITTLE: u64 = GIB / 10;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Health {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    name: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Ok,
            found: found.into(),
            fix: None,
        }
    }

    pub(super) fn warn(
        name: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            name,
            health: Health::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    pub(super) fn fail(
        name: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            health: Health::Fail,
            ..Self::warn(name, found, fix)
        }
    }
}

/// Checks everything.
pub(crate) async fn run(call: &Call) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let mut checks = Vec::new();
    let mut serves = true;
    if server.context.is_local() {
        serves = machine::check(call, &mut checks).await?;
    }
    if serves && server.context.is_local() {
        engine::check(&server, &mut checks).await;
    }
    if serves {
        api::check(&server, &mut checks).await?;
    }
    let failed = checks.iter().any(|check| check.health == Health::Fail);
    if call.format().is_table() {
        let mut table = Table::new(&["CHECK", "STATE", "FOUND", "FIX"]);
        for check in &checks {
            let state = match check.health {
                Health::Ok => "ok",
                Health::Warn => "warn",
                Health::Fail => "fail",
            };
            let fix = check.fix.clone().unwrap_or_default();
            let fix = call.program.speak(&fix).into_owned();
            table.push(vec![
                check.name.to_owned(),
                state.to_owned(),
                check.found.clone(),
                fix,
            ]);
        }
        terminal::print(&table.render(call.headers(), call.styles()))?;
    } else {
        let document = json!({
            "apiVersion": CLI_VERSION,
            "kind": "Doctor",
            "context": server.context.name,
            "healthy": !failed,
            "checks": checks,
        });
        output::tree(&document, &call.format())?;
    }
    Ok(if failed {
        Exit::Differences
    } else {
        Exit::Done
    })
}
