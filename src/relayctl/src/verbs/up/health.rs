//! What the router says of its model, and why there is none where a variable of the daemon asked for one.

use std::time::{Duration, Instant};

use files::Places;
use serde_json::Value;

use super::AGAIN;
use crate::daemon::{self, Endpoint, Model, Started};
use crate::router::Router;

/// How long a model that was asked for may take before `up` ends without it; rules answer meanwhile.
const MODEL_PATIENCE: Duration = Duration::from_secs(10);
/// How long a router may take to follow a LayaServer.
const FOLLOW_PATIENCE: Duration = Duration::from_secs(5);
/// What serves a model, or says where one is, beside the objects.
const MODEL_SETTINGS: [&str; 3] = ["RELAYD_CHECKPOINT", "RELAYD_CONFIG", "RELAYD_LAYA_URL"];

/// Whether variables of the daemon name a model, so that none is needed from objects.
pub(crate) fn has_own_model(endpoint: &Endpoint) -> bool {
    let variables = daemon::of_process(endpoint.process.pid).unwrap_or_default();
    MODEL_SETTINGS
        .iter()
        .any(|name| variables.contains_key(*name))
}

/// Whether they name an address of the router.
pub(crate) fn has_own_address(endpoint: &Endpoint) -> bool {
    daemon::of_process(endpoint.process.pid)
        .is_some_and(|variables| variables.contains_key("RELAYD_LISTEN"))
}

/// What the router says of itself, and why it has no model where a variable asked for one. `serves`: a LayaServer answers, so
/// that the router will follow in a moment.
pub(super) async fn look(
    places: &Places,
    endpoint: &Endpoint,
    started: Option<&Started>,
    serves: bool,
) -> (Option<Value>, Option<Model>) {
    let Some(router) = endpoint
        .router
        .as_deref()
        .and_then(|url| Router::at(url).ok())
    else {
        return (None, None);
    };
    let asked_for = has_own_model(endpoint);
    let patience = if asked_for {
        MODEL_PATIENCE
    } else {
        FOLLOW_PATIENCE
    };
    let ends = Instant::now() + patience;
    loop {
        let health = router.ask("/health").await.ok();
        let answers = health.as_ref().is_some_and(|health| health["ok"] == true);
        if answers || !(asked_for || serves) {
            return (health, None);
        }
        if !asked_for {
            if Instant::now() >= ends {
                return (health, None);
            }
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        let said = match started {
            Some(started) => started.model(),
            None => daemon::model(&places.daemon().join("log"), 0),
        };
        if matches!(said, Some(Model::Refused(_))) || Instant::now() >= ends {
            return (health, said);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// The same for a daemon that runs already, without waiting.
pub(crate) fn said(places: &Places, endpoint: &Endpoint) -> Option<Model> {
    has_own_model(endpoint)
        .then(|| daemon::model(&places.daemon().join("log"), 0))
        .flatten()
}
