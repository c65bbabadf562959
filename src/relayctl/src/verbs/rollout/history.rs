//! `relayctl rollout history`: the last rollouts of a server, newest first, and what was taken back.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::duration;
use crate::error::CliError;
use crate::facts::{Laya, short, text, time};
use crate::output::table::Table;
use crate::output::{self, CLI_VERSION};
use crate::terminal;
use crate::verbs::model::find_server;
use api::exit::Exit;

/// Shows it.
pub(super) async fn run(call: &Call, name: &str) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let object = find_server(&server, name).await?;
    let laya = Laya(&object);
    if !call.format().is_table() {
        let document = json!({
            "apiVersion": CLI_VERSION,
            "kind": "RolloutHistory",
            "server": laya.name(),
            "namespace": object["metadata"]["namespace"],
            "history": laya.history(),
            "rejected": laya.rejected(),
        });
        output::tree(&document, &call.format())?;
        return Ok(Exit::Done);
    }
    if laya.history().is_empty() && laya.rejected().is_empty() {
        call.tell(&format!("{name}: no rollout has ended yet"));
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    let history = history(laya);
    if !history.is_empty() {
        out.push_str(&history.render(call.headers(), call.styles()));
    }
    let rejected = rejected(laya, Timestamp::now());
    if !rejected.is_empty() {
        let gap = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!(
            "{gap}{}",
            rejected.render(call.headers(), call.styles())
        ));
    }
    terminal::print(&out)?;
    Ok(Exit::Done)
}

fn history(laya: Laya<'_>) -> Table {
    let mut table = Table::new(&["ID", "FROM", "TO", "OUTCOME", "REASON", "STARTED", "TOOK"]);
    let cell = |value: &Value| text(value).unwrap_or("-").to_owned();
    for entry in laya.history() {
        let took = match (time(&entry["startedAt"]), time(&entry["finishedAt"])) {
            (Some(began), Some(ended)) => duration::human(ended.duration_since(began).as_secs()),
            _ => "-".to_owned(),
        };
        let started = time(&entry["startedAt"]).map_or("-".to_owned(), minute);
        table.push(vec![
            cell(&entry["id"]),
            cell(&entry["from"]),
            cell(&entry["to"]),
            cell(&entry["outcome"]),
            cell(&entry["reason"]),
            started,
            took,
        ]);
    }
    table
}

fn rejected(laya: Laya<'_>, now: Timestamp) -> Table {
    let mut table = Table::new(&["REJECTED", "CHECKPOINT", "REASON", "AGE", "MESSAGE"]);
    for entry in laya.rejected() {
        let age = time(&entry["at"]).map_or("-".to_owned(), |at| {
            duration::human(now.duration_since(at).as_secs())
        });
        let cell = |name: &str| text(&entry[name]).unwrap_or("-").to_owned();
        table.push(vec![
            cell("revision"),
            text(&entry["digest"]).map_or("-", short).to_owned(),
            cell("reason"),
            age,
            cell("message"),
        ]);
    }
    table
}

/// A time to the minute, UTC.
pub(crate) fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::Headers;
    use crate::terminal::Styles;

    #[test]
    fn each_rollout_has_a_row() {
        let object = json!({"status": {"history": [
            {"id": "r2", "from": "aaaa", "to": "bbbb", "outcome": "RolledBack", "reason": "ProbeTimedOut",
                "startedAt": "2026-11-30T09:00:00Z", "finishedAt": "2026-11-30T09:02:30Z"},
            {"id": "r1", "to": "aaaa", "outcome": "Promoted"}],
            "rejected": [{"revision": "bbbb", "digest": "sha256:0123456789abcdef", "reason": "ProbeTimedOut",
                "message": "3 probes", "at": "2026-11-30T09:02:30Z"}]}});
        let laya = Laya(&object);
        assert_eq!(
            history(laya).render(Headers::Shown, Styles::PLAIN),
            "\
ID   FROM   TO     OUTCOME      REASON          STARTED            TOOK
r2   aaaa   bbbb   RolledBack   ProbeTimedOut   2026-11-30 09:00   2m30s
r1   -      aaaa   Promoted     -               -                  -
"
        );
        let now = "2026-11-30T09:03:00Z".parse().unwrap();
        assert_eq!(
            rejected(laya, now).render(Headers::Hidden, Styles::PLAIN),
            "bbbb       0123456789ab   ProbeTimedOut   30s   3 probes\n"
        );
    }
}
