//! The default objects of a laptop (control-plane 18), each kind only where there is no object of it at all. What a person
//! made is never changed, but for one thing: a policy `default` without a server is given the one that is made now.

use serde_json::{Value, json};

use crate::call::Call;
use crate::connect::loopback;
use crate::daemon::Endpoint;
use crate::error::CliError;
use crate::facts::{self, Model};
use crate::kinds::{self, Kind};
use crate::manifest::{Manifest, SHIPPED_NAME};
use crate::server::{Force, Form, Selection, Server, Write};
use crate::terminal;
use crate::verbs::adopt;
use crate::verbs::model::{MAIN, unsuspend};
use crate::verbs::status::Missing;
use api::field_manager::RELAYCTL_USE;

/// More is asked for first, in bytes.
const LARGE: u64 = 100_000_000;
/// The router's own port (design 7).
const PORT: &str = "127.0.0.1:8737";
const DEFAULT: &str = "default";

/// What there is now.
pub(super) struct Made {
    /// Name of the policy that counts.
    pub(super) policy: String,
    /// Name of the LayaServer to wait for.
    pub(super) server: Option<String>,
    pub(super) missing: Vec<Missing>,
}

/// Every object of a kind.
pub(super) async fn all(server: &Server, kind: &'static Kind) -> Result<Vec<Value>, CliError> {
    let list = server
        .list(kind, &Selection::within(&server.namespace), Form::Objects)
        .await;
    let mut list = list.map_err(|error| server.failed(error))?;
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

/// Makes what is not there.
pub(super) async fn defaults(
    call: &Call,
    server: &Server,
    endpoint: &Endpoint,
) -> Result<Made, CliError> {
    let mut missing = Vec::new();
    let mut served = None;
    let mut made_server = false;
    // Whoever names a model by a variable needs none from objects.
    if !super::has_own_model(endpoint) {
        let servers = all(server, kinds::laya_server()).await?;
        let theirs = match servers.is_empty() {
            true => theirs(endpoint).await,
            false => None,
        };
        let models = models(call, server, theirs.is_some()).await?;
        if servers.is_empty() {
            make_server(call, server, &models, theirs.as_deref()).await?;
            made_server = true;
        } else if let Some(url) = usable(&servers, endpoint).await {
            missing.push(Missing::new(
                format!("no use of the Laya server at {url}, which answers"),
                "relayctl adopt",
            ));
        }
        served = servers
            .iter()
            .map(facts::name)
            .find(|name| *name == MAIN)
            .or(servers.first().map(facts::name))
            .or(made_server.then_some(MAIN))
            .map(str::to_owned);
    }
    let policy = policy(call, server, served.as_deref().filter(|_| made_server)).await?;
    Ok(Made {
        policy,
        server: served,
        missing,
    })
}

/// The address of a Laya server that has the router's port and may be used as it is.
async fn theirs(endpoint: &Endpoint) -> Option<String> {
    let ours = endpoint
        .router
        .as_deref()
        .and_then(|url| loopback(url).ok());
    if super::has_own_address(endpoint) || ours.as_deref() == Some(PORT) {
        return None;
    }
    adopt::is_usable(PORT)
        .await
        .then(|| format!("http://{PORT}"))
}

/// The same where no server of ours uses it yet.
async fn usable(servers: &[Value], endpoint: &Endpoint) -> Option<String> {
    let has_model = |object: &Value| {
        let laya = facts::Laya(object);
        laya.external().is_some() || laya.champion().is_some()
    };
    if servers.iter().any(has_model) {
        return None;
    }
    theirs(endpoint).await
}

/// Every LayaModel; the shipped one is made where there is none.
async fn models(call: &Call, server: &Server, is_served: bool) -> Result<Vec<Value>, CliError> {
    let kind = kinds::laya_model();
    let mut models = all(server, kind).await?;
    if models.is_empty() {
        let shipped = Manifest::shipped();
        let fetch = !is_served && may_fetch(call, &shipped)?;
        let object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": SHIPPED_NAME},
            "spec": {"source": {"http": shipped.to_source()}, "suspend": !fetch},
        });
        models.push(make(server, kind, SHIPPED_NAME, &object).await?);
        call.tell(&format!(
            "made layamodel/{SHIPPED_NAME}, the shipped version{}",
            if fetch {
                ", which is fetched now"
            } else {
                ", not fetched yet"
            }
        ));
        return Ok(models);
    }
    // A yes that was given later.
    for model in &mut models {
        let it = Model(model);
        if call.global.yes && it.is_shipped() && it.is_suspended() && !it.is_ready() && !is_served {
            call.tell(&format!("layamodel/{} is fetched now", it.name()));
            *model = unsuspend(call, server, model).await?;
        }
    }
    Ok(models)
}

/// Whether a large download may begin: a yes on the command line, or of somebody who is there.
fn may_fetch(call: &Call, shipped: &Manifest) -> Result<bool, CliError> {
    if call.global.yes || shipped.size() <= LARGE {
        return Ok(true);
    }
    if !terminal::can_ask() {
        return Ok(false);
    }
    let host: Option<http::Uri> = shipped.base_url.parse().ok();
    terminal::ask(&format!(
        "fetch the decision model {SHIPPED_NAME} ({} from {})",
        facts::bytes(shipped.size()),
        host.as_ref().and_then(|uri| uri.host()).unwrap_or_default()
    ))
}

async fn make_server(
    call: &Call,
    server: &Server,
    models: &[Value],
    external: Option<&str>,
) -> Result<(), CliError> {
    let kind = kinds::laya_server();
    let model = first_choice(models).unwrap_or(SHIPPED_NAME);
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": MAIN},
        "spec": {"modelRef": {"name": model}},
    });
    make(server, kind, MAIN, &object).await?;
    call.tell(&format!(
        "made layaserver/{MAIN}, which is to serve {model}"
    ));
    if let Some(url) = external {
        // Apart, by the manager of `adopt`: a later `up` does not take it away.
        object = json!({"spec": {"external": {"url": url}}});
        let patched = server.patch(
            kind,
            &server.namespace,
            MAIN,
            RELAYCTL_USE,
            &object,
            Write::Commit,
        );
        patched.await.map_err(|error| server.failed(error))?;
        call.tell(&format!(
            "layaserver/{MAIN} uses the server at {url}; `relayctl adopt --replace` puts ours there"
        ));
    }
    Ok(())
}

/// The model a new server is given: `v1`, else the shipped one, else one that is ready, else the first.
fn first_choice(models: &[Value]) -> Option<&str> {
    let by = |fits: &dyn Fn(Model<'_>) -> bool| models.iter().find(|model| fits(Model(model)));
    by(&|model| model.name() == SHIPPED_NAME)
        .or_else(|| by(&|model| model.is_shipped()))
        .or_else(|| by(&|model| model.is_ready()))
        .or(models.first())
        .map(facts::name)
}

async fn make(
    server: &Server,
    kind: &'static Kind,
    name: &str,
    object: &Value,
) -> Result<Value, CliError> {
    let applied = server
        .apply(
            kind,
            &server.namespace,
            name,
            object,
            Write::Commit,
            Force::No,
        )
        .await;
    applied.map(|applied| applied.object).map_err(|error| {
        server
            .failed(error)
            .attempting(format!("cannot make {}", kind.brief(name)))
    })
}

/// The policy that counts; `default` is made where there is none, and given a server that was made now.
async fn policy(
    call: &Call,
    server: &Server,
    made_server: Option<&str>,
) -> Result<String, CliError> {
    let kind = kinds::routing_policy();
    let policies = all(server, kind).await?;
    let default = policies
        .iter()
        .find(|policy| facts::name(policy) == DEFAULT);
    match (default, policies.first()) {
        (Some(default), _) => {
            if let Some(laya) = made_server.filter(|_| default["spec"]["serverRef"].is_null()) {
                let patch = json!({"spec": {"serverRef": {"name": laya}}});
                let patched = server.patch(
                    kind,
                    &server.namespace,
                    DEFAULT,
                    RELAYCTL_USE,
                    &patch,
                    Write::Commit,
                );
                patched.await.map_err(|error| server.failed(error))?;
                call.tell(&format!(
                    "routingpolicy/{DEFAULT} asks layaserver/{laya} from now on"
                ));
            }
            Ok(DEFAULT.to_owned())
        }
        (None, Some(first)) => Ok(facts::name(first).to_owned()),
        (None, None) => {
            let spec = match made_server {
                Some(laya) => json!({"serverRef": {"name": laya}}),
                None => json!({}),
            };
            let object = json!({
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "metadata": {"name": DEFAULT},
                "spec": spec,
            });
            make(server, kind, DEFAULT, &object).await?;
            call.tell("made routingpolicy/default, the built-in policy");
            Ok(DEFAULT.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_is_given_what_can_serve() {
        let model = |name: &str, ready: bool| {
            json!({"metadata": {"name": name, "generation": 1}, "status": {"observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}})
        };
        let mut shipped = model("base", false);
        shipped["spec"]["source"]["http"] = Manifest::shipped().to_source();
        for (models, expected) in [
            (vec![model("a", true), model("v1", false)], Some("v1")),
            (vec![model("a", true), shipped], Some("base")),
            (vec![model("a", false), model("b", true)], Some("b")),
            (vec![model("a", false)], Some("a")),
            (vec![], None),
        ] {
            assert_eq!(first_choice(&models), expected);
        }
    }
}
