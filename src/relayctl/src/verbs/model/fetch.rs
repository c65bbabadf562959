//! `relayctl model fetch`: a version is fetched, with what comes of it said as it comes.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{find, say, verify};
use crate::call::{Call, DryRun};
use crate::conditions;
use crate::error::CliError;
use crate::facts::{self, Model, foreign_owners, is_deleting};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::refusal::one_line;
use crate::server::{Server, Write};
use crate::verbs::rollout::minute;
use api::exit::Exit;
use api::field_manager::RELAYCTL_USE;
use api::label;
use api::reason::Reason;

/// Default of `spec.fetch.deadlineSeconds`, and what publishing takes beyond it.
const DEADLINE_SECONDS: u64 = 3600;
const MORE_SECONDS: u64 = 120;

/// Fetches it.
pub(super) async fn run(call: &Call, name: &str) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let object = find(&server, name).await?;
    let model = Model(&object);
    let full = kinds::laya_model().full(name);
    if is_deleting(&object) {
        return Err(CliError::new(
            Exit::Conflict,
            format!("{full} is being deleted"),
        ));
    }
    if model.is_ready() {
        return say(call, &object, &ready(&object));
    }
    // A spec that cannot be read is not tried again before it is another one.
    let given_up = model.phase() == "Failed"
        && model
            .given_up()
            .is_none_or(|why| why.reason != Reason::InvalidSpec.as_str());
    if call.dry_run() == DryRun::Client {
        return say(call, &object, &format!("{full} fetched (client dry run)"));
    }
    // Where nothing is asked for, what it says now is the answer.
    let before = match model.is_suspended() || given_up {
        true => object["status"].clone(),
        false => Value::Null,
    };
    let changed = match (model.is_suspended(), given_up) {
        (false, false) => object.clone(),
        (suspended, given_up) => ask(call, &server, &object, suspended, given_up).await?,
    };
    if call.write() == Write::DryRun {
        return say(call, &changed, &format!("{full} fetched (server dry run)"));
    }
    if !call.waits(true) {
        return say(call, &changed, &format!("{full} is being fetched"));
    }
    let seconds = object["spec"]["fetch"]["deadlineSeconds"]
        .as_u64()
        .unwrap_or(DEADLINE_SECONDS);
    let patience = call.patience(Duration::from_secs(seconds + MORE_SECONDS));
    let here = follow(
        call,
        &server,
        kinds::laya_model(),
        name,
        patience,
        |object| judge(object, &before),
    )
    .await?;
    say(call, &here, &ready(&here))
}

/// Takes `suspend` away, and asks a version that was given up to be tried again.
async fn ask(
    call: &Call,
    server: &Server,
    object: &Value,
    suspended: bool,
    given_up: bool,
) -> Result<Value, CliError> {
    let name = facts::name(object);
    let mut patch = json!({});
    if suspended {
        for manager in foreign_owners(object, &["spec", "suspend"]) {
            call.tell(&format!(
                "note: {manager} writes spec.suspend of {name} too, and what it says wins the next time it does"
            ));
        }
        patch["spec"] = json!({"suspend": false});
    }
    if given_up {
        patch["metadata"] = json!({"annotations": {label::VERIFY: verify::nonce()}});
    }
    let kind = kinds::laya_model();
    server
        .change(kind, name, RELAYCTL_USE, &patch, call.write())
        .await
}

/// Takes `suspend` away for `up`.
pub(crate) async fn unsuspend(
    call: &Call,
    server: &Server,
    object: &Value,
) -> Result<Value, CliError> {
    ask(call, server, object, true, false).await
}

/// Whether it is here. A state of before that has not changed since says nothing.
fn judge(object: &Value, before: &Value) -> Step<Value> {
    let model = Model(object);
    if model.is_ready() {
        return Step::Done(object.clone());
    }
    let is_news = object["status"] != *before;
    if let Some(why) = model.given_up().filter(|_| is_news) {
        return Step::Failed(refused(model, &why));
    }
    Step::Waits(line(model, Timestamp::now()))
}

/// The error of a version that is not to be had.
pub(crate) fn refused(model: Model<'_>, why: &conditions::Condition) -> CliError {
    let brief = kinds::laya_model().brief(model.name());
    let line = format!("{brief} cannot be had ({}): {}", why.reason, why.message);
    let hint = match Reason::by_word(&why.reason) {
        Some(reason) => format!("{}; `relayctl explain {brief}` tells more", reason.remedy()),
        None => format!("`relayctl explain {brief}` tells what helps"),
    };
    CliError::refused(line).hint(hint)
}

/// One line of how far it is.
pub(crate) fn line(model: Model<'_>, now: Timestamp) -> Line {
    let name = model.name();
    let fetch = model.fetch();
    if let Some(fetch) = &fetch
        && let (Some((reason, message)), Some(next)) = (&fetch.error, fetch.next_attempt)
        && next > now
    {
        let attempt = match fetch.attempt {
            0 => "the fetch".to_owned(),
            attempt => format!("attempt {attempt}"),
        };
        return Line::Stays(one_line(&format!(
            "{name}: {attempt} failed ({reason}): {}; again at {}",
            message.trim_end(),
            minute(next)
        )));
    }
    match (model.phase(), fetch) {
        ("Fetching" | "Repairing", Some(fetch)) if fetch.total > 0 => Line::Moves(format!(
            "{name}: {} of {} ({} %)",
            facts::bytes(fetch.done),
            facts::bytes(fetch.total),
            fetch.percent().unwrap_or(0)
        )),
        (phase, _) => {
            let ready = conditions::find(model.0, "Ready").filter(|ready| !ready.is_true());
            let said = ready.map_or(String::new(), |ready| {
                format!(": {} ({})", ready.message, ready.reason)
            });
            Line::Stays(one_line(&format!("{name}: {}{said}", phase.to_lowercase())))
        }
    }
}

fn ready(object: &Value) -> String {
    let model = Model(object);
    let digest = model.digest();
    format!(
        "{}: {} is here, {}",
        model.name(),
        digest.as_deref().map_or("the checkpoint", facts::short),
        model
            .size()
            .map_or("of unknown size".to_owned(), facts::bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn progress_is_bytes_or_what_went_wrong() {
        for (status, expected) in [
            (
                json!({"phase": "Fetching", "fetch": {"bytesDone": 339_000_000, "bytesTotal": 678_000_000}}),
                Line::Moves("m: 339 MB of 678 MB (50 %)".into()),
            ),
            (
                json!({"phase": "Fetching", "fetch": {"attempt": 2, "bytesDone": 3, "bytesTotal": 6, "nextAttemptAt": "2026-11-30T10:01:00Z",
                "lastError": {"reason": "SourceBusy", "message": "503\n"}}}),
                Line::Stays(
                    "m: attempt 2 failed (SourceBusy): 503; again at 2026-11-30 10:01".into(),
                ),
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "reason": "VolumePending", "message": "not bound"}]}),
                Line::Stays("m: pending: not bound (VolumePending)".into()),
            ),
            (Value::Null, Line::Stays("m: pending".into())),
        ] {
            let object = json!({"metadata": {"name": "m"}, "status": status});
            assert_eq!(line(Model(&object), now()), expected, "{status}");
        }
    }

    #[test]
    fn an_old_failure_is_no_answer_and_a_new_one_is() {
        let status = |message: &str| {
            json!({"observedGeneration": 1, "phase": "Failed", "conditions": [
                {"type": "Stalled", "status": "True", "reason": "SourceNotFound", "message": message}]})
        };
        let object = |message: &str| json!({"metadata": {"name": "m", "generation": 1}, "status": status(message)});
        assert!(matches!(judge(&object("a"), &status("a")), Step::Waits(_)));
        let Step::Failed(error) = judge(&object("b"), &status("a")) else {
            panic!("goes on")
        };
        assert_eq!(error.exit, Exit::Refused);
        assert!(
            error
                .hint_text()
                .unwrap()
                .starts_with("correct the address"),
            "{error}"
        );
        let ready = json!({"metadata": {"name": "m", "generation": 1}, "status": {"observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(matches!(judge(&ready, &Value::Null), Step::Done(_)));
    }
}
