//! Waiting for the model: first until its files are here, then until it serves. Whatever keeps it from that is missing, and
//! no failure of `up`: rules answer meanwhile.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::objects::Made;
use crate::call::Call;
use crate::conditions;
use crate::error::CliError;
use crate::facts::{Laya, Model};
use crate::follow::{Line, Step, follow};
use crate::kinds;
use crate::server::Server;
use crate::verbs::model::{fetch_line, model_refused};
use crate::verbs::rollout::going;
use crate::verbs::status::Missing;
use api::exit::Exit;

/// For a controller to look at the server at all.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// For 700 MB on a slow line.
const FETCH_PATIENCE: Duration = Duration::from_secs(1800);
/// For a container to be made, to load and to be probed.
const SERVE_PATIENCE: Duration = Duration::from_secs(300);
/// How long a server that is not ours is waited for: nothing has to be fetched or loaded for it.
const EXTERNAL_PATIENCE: Duration = Duration::from_secs(20);

/// Waits, and says what kept it.
pub(super) async fn until_served(
    call: &Call,
    server: &Server,
    made: &Made,
) -> Result<Vec<Missing>, CliError> {
    let Some(name) = made.server.as_deref().filter(|_| call.waits(true)) else {
        return Ok(Vec::new());
    };
    let kind = kinds::laya_server();
    let found = server.find(kind, &server.namespace, name).await;
    let Some(object) = found.map_err(|error| server.failed(error))? else {
        return Ok(Vec::new());
    };
    let laya = Laya(&object);
    if laya.is_suspended() || !can_come(server, laya).await? {
        return Ok(Vec::new());
    }
    let external = laya.external();
    let whole = whole(call.global.timeout, external.is_some());
    let ends = whole.map(|whole| Instant::now() + whole);
    let within = |own: Duration| {
        ends.map_or(own, |ends| {
            ends.saturating_duration_since(Instant::now()).min(own)
        })
    };
    if let (Some(url), Some(whole)) = (external, whole) {
        call.tell(&waiting_for(name, url, whole));
    }
    let looked = follow(call, server, kind, name, within(LOOK_PATIENCE), |object| {
        match object["status"]["observedGeneration"].is_null() {
            true => Step::Waits(Line::Stays(format!("{name}: waiting for its controller"))),
            false => Step::Done(object.clone()),
        }
    });
    let looked = looked.await;
    // A model that serves is not waited for, even if its files were damaged since.
    if let Ok(object) = &looked
        && matches!(serves(object), Step::Done(()))
    {
        if let Some(url) = external {
            call.tell(&served_by(name, url));
        }
        return Ok(Vec::new());
    }
    if let Some(missing) = kept(looked, name)? {
        return Ok(vec![missing]);
    }
    if external.is_none()
        && let Some(model) = laya.wished()
    {
        let here = follow(
            call,
            server,
            kinds::laya_model(),
            model,
            within(FETCH_PATIENCE),
            is_here,
        );
        match here.await {
            Err(error) if matches!(error.exit, Exit::Unreachable | Exit::Forbidden) => {
                return Err(error);
            }
            // The server would wait for what never comes by itself.
            Err(error) if error.exit == Exit::Refused => {
                return Ok(kept::<()>(Err(error), name)?.into_iter().collect());
            }
            Ok(()) | Err(_) => {}
        }
    }
    let Some(url) = external else {
        let patience = within(SERVE_PATIENCE);
        let served = follow(call, server, kind, name, patience, serves).await;
        return Ok(kept(served, name)?.into_iter().collect());
    };
    let patience = within(EXTERNAL_PATIENCE);
    match follow(call, server, kind, name, patience, serves).await {
        Ok(()) => {
            call.tell(&served_by(name, url));
            Ok(Vec::new())
        }
        // Not that the time is over is what matters, but how it stands.
        Err(error) if error.exit == Exit::TimedOut => {
            let found = server.find(kind, &server.namespace, name).await;
            let object = found.map_err(|error| server.failed(error))?;
            let Some(object) = object else {
                return Ok(Vec::new());
            };
            let missing = not_served(&object, url);
            if missing.is_none() {
                call.tell(&served_by(name, url));
            }
            Ok(missing.into_iter().collect())
        }
        Err(error) => Ok(kept::<()>(Err(error), name)?.into_iter().collect()),
    }
}

/// For all looks together, where that is bounded: what is said of a server that is not ours is what is kept to.
fn whole(timeout: Option<Duration>, is_external: bool) -> Option<Duration> {
    let own = is_external.then_some(EXTERNAL_PATIENCE);
    timeout.into_iter().chain(own).min()
}

/// What a server that is not ours is waited for, said at once.
fn waiting_for(name: &str, url: &str, patience: Duration) -> String {
    format!(
        "{name}: waiting at most {} s until the Laya server at {url}, which is not ours, answers the probe question right; \
         rules answer meanwhile",
        patience.as_secs()
    )
}

fn served_by(name: &str, url: &str) -> String {
    format!("{name}: served by the Laya server at {url}, which is not ours")
}

/// Why a server that is not ours does not serve; nothing where it does by now.
fn not_served(object: &Value, url: &str) -> Option<Missing> {
    let laya = Laya(object);
    if matches!(serves(object), Step::Done(())) {
        return None;
    }
    let why = match laya.condition("Ready") {
        Some(ready) => format!("{} ({})", ready.message, ready.reason),
        None => "its controller has not said anything of it yet".to_owned(),
    };
    Some(Missing::new(
        format!("no model that serves: not served by {url}: {why}"),
        format!("relayctl explain ls/{}", laya.name()),
    ))
}

/// Whether anything is on its way: a model that is not fetched never comes by itself.
async fn can_come(server: &Server, laya: Laya<'_>) -> Result<bool, CliError> {
    if laya.external().is_some() || laya.champion().is_some() {
        return Ok(true);
    }
    let Some(name) = laya.wished() else {
        return Ok(false);
    };
    let found = server
        .find(kinds::laya_model(), &server.namespace, name)
        .await;
    let found = found.map_err(|error| server.failed(error))?;
    Ok(found.is_some_and(|object| {
        let model = Model(&object);
        model.is_ready() || !model.is_suspended()
    }))
}

/// What kept it, where that is no failure of the control plane itself.
fn kept<T>(result: Result<T, CliError>, name: &str) -> Result<Option<Missing>, CliError> {
    match result {
        Ok(_) => Ok(None),
        Err(error) if matches!(error.exit, Exit::Unreachable | Exit::Forbidden) => Err(error),
        Err(error) => Ok(Some(Missing::new(
            format!("no model that serves: {}", error.line()),
            format!("relayctl explain ls/{name}"),
        ))),
    }
}

fn is_here(object: &Value) -> Step<()> {
    let model = Model(object);
    if model.is_ready() {
        return Step::Done(());
    }
    match model.given_up() {
        Some(why) => Step::Failed(model_refused(model, &why)),
        None => Step::Waits(fetch_line(model, Timestamp::now())),
    }
}

/// Whether a version serves, whatever else is not as it should be.
fn answers(laya: Laya<'_>) -> bool {
    let available = laya.condition("Available");
    laya.champion().is_some() && available.is_some_and(|available| available.is_true())
}

/// Whether it answers, or will not.
fn serves(object: &Value) -> Step<()> {
    let laya = Laya(object);
    if !conditions::is_current(object) {
        return Step::Waits(Line::Stays(format!(
            "{}: the controller has not looked at it yet",
            laya.name()
        )));
    }
    if laya.condition("Ready").is_some_and(|ready| ready.is_true()) {
        return Step::Done(());
    }
    match laya
        .condition("Stalled")
        .filter(|stalled| stalled.is_true())
    {
        Some(stalled) => Step::Failed(CliError::refused(format!(
            "{} ({}): {}",
            laya.name(),
            stalled.reason,
            stalled.message
        ))),
        None if answers(laya) => Step::Done(()),
        None => Step::Waits(going::line(laya)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_deadline_is_for_all_looks() {
        let seconds = |count| Some(Duration::from_secs(count));
        for (timeout, is_external, expected) in [
            (None, false, None),
            (None, true, seconds(20)),
            (seconds(5), true, seconds(5)),
            (seconds(60), true, seconds(20)),
            (seconds(60), false, seconds(60)),
        ] {
            assert_eq!(whole(timeout, is_external), expected, "{timeout:?}");
        }
    }

    #[test]
    fn a_server_that_is_not_ours_is_named_with_how_it_stands() {
        let url = "http://127.0.0.1:8737";
        let object = |status: &str, reason: &str, message: &str| {
            json!({"metadata": {"name": "main", "generation": 1}, "spec": {"external": {"url": url}},
                "status": {"observedGeneration": 1, "conditions": [
                    {"type": "Ready", "status": status, "reason": reason, "message": message}]}})
        };
        let ready = object("True", "Reconciled", "serves");
        assert!(not_served(&ready, url).is_none());
        let late = object(
            "False",
            "Starting",
            "the server at http://127.0.0.1:8737 does not serve: refused",
        );
        let missing = not_served(&late, url).unwrap();
        assert_eq!(
            missing.what,
            "no model that serves: not served by http://127.0.0.1:8737: the server at http://127.0.0.1:8737 does not serve: \
             refused (Starting)"
        );
        assert_eq!(missing.fix, "relayctl explain ls/main");
        let unseen = json!({"metadata": {"name": "main"}, "spec": {"external": {"url": url}}});
        let missing = not_served(&unseen, url).unwrap();
        assert!(
            missing.what.contains("has not said anything"),
            "{missing:?}"
        );
        assert!(waiting_for("main", url, EXTERNAL_PATIENCE).contains("at most 20 s"));
    }
}
