//! `relayctl model verify`: one full hash check, asked for by the annotation `relay.dev/verify` and done when the status has
//! its nonce.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{fetch, find, say};
use crate::call::{Call, DryRun};
use crate::conditions;
use crate::error::CliError;
use crate::facts::{Model, is_deleting, text};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::server::Write;
use api::exit::Exit;
use api::field_manager::RELAYCTL_USE;
use api::label;

/// Hashing 10 GB from a slow disk, and a queue before it.
const PATIENCE: Duration = Duration::from_secs(900);

/// Verifies it.
pub(super) async fn run(call: &Call, name: &str) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let object = find(&server, name).await?;
    let kind = kinds::laya_model();
    let full = kind.full(name);
    if is_deleting(&object) {
        return Err(CliError::new(
            Exit::Conflict,
            format!("{full} is being deleted"),
        ));
    }
    if call.dry_run() == DryRun::Client {
        return say(call, &object, &format!("{full} verified (client dry run)"));
    }
    let nonce = nonce();
    let patch = json!({"metadata": {"annotations": {label::VERIFY: nonce}}});
    let changed = server
        .change(kind, name, RELAYCTL_USE, &patch, call.write())
        .await?;
    if call.write() == Write::DryRun {
        return say(call, &changed, &format!("{full} verified (server dry run)"));
    }
    if !call.waits(true) {
        return say(call, &changed, &format!("{full} is being verified"));
    }
    let before = object["status"].clone();
    let done = follow(
        call,
        &server,
        kind,
        name,
        call.patience(PATIENCE),
        |object| judge(object, &nonce, &before),
    )
    .await?;
    say(call, &done, &right(&done))
}

/// Another one each time.
pub(super) fn nonce() -> String {
    format!(
        "{:x}-{:x}",
        Timestamp::now().as_nanosecond(),
        std::process::id()
    )
}

/// Whether it was done, and how it ended. A state of before that has not changed since says nothing.
fn judge(object: &Value, nonce: &str, before: &Value) -> Step<Value> {
    let model = Model(object);
    let verified = conditions::find(object, "Verified");
    if text(&object["status"]["verifyNonce"]) == Some(nonce) {
        return match verified.filter(|verified| verified.status == "False") {
            Some(wrong) => Step::Failed(fetch::refused(model, &wrong)),
            None => Step::Done(object.clone()),
        };
    }
    let is_news = object["status"] != *before;
    match verified.filter(|verified| verified.status == "False" && model.phase() == "Failed") {
        Some(wrong) if is_news => Step::Failed(fetch::refused(model, &wrong)),
        _ => Step::Waits(match model.phase() {
            "Repairing" | "Fetching" => fetch::line(model, Timestamp::now()),
            phase => Line::Stays(format!("{}: {}", model.name(), phase.to_lowercase())),
        }),
    }
}

fn right(object: &Value) -> String {
    let model = Model(object);
    let at = text(&object["status"]["verifiedAt"]).unwrap_or("now");
    format!(
        "{}: every file is right, {} at {at}",
        model.name(),
        model
            .digest()
            .as_deref()
            .map_or("hashed", crate::facts::short)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_asked_check_is_an_answer() {
        let verified = |status: &str| json!([{"type": "Verified", "status": status, "reason": "ModelDamaged", "message": "a differs"}]);
        let before = json!({"phase": "Failed", "conditions": verified("False")});
        for (name, status, expected) in [
            ("as before", before.clone(), "waits"),
            (
                "an older nonce",
                json!({"phase": "Verifying", "verifyNonce": "old"}),
                "waits",
            ),
            (
                "right",
                json!({"phase": "Published", "verifyNonce": "n", "conditions": verified("True")}),
                "done",
            ),
            (
                "repaired",
                json!({"phase": "Repairing", "conditions": verified("False")}),
                "waits",
            ),
            (
                "not ours to repair",
                json!({"phase": "Failed", "x": 1, "conditions": verified("False")}),
                "failed",
            ),
        ] {
            let object = json!({"metadata": {"name": "m"}, "status": status});
            let got = match judge(&object, "n", &before) {
                Step::Done(_) => "done",
                Step::Failed(_) => "failed",
                Step::Waits(_) => "waits",
            };
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn a_nonce_is_never_the_same() {
        assert_ne!(nonce(), nonce());
    }
}
