//! The object API of any context: version, clock, kinds, schemas, rights.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;
use serde_json::{Value, json};

use super::Check;
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::server::Server;
use crate::verbs::validate;

/// Clocks that differ more make deadlines and ages wrong.
const MAX_SKEW_SECONDS: i64 = 5;
/// What a person who runs Relay does with objects.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// What the object API of any context must do.
pub(super) async fn check(server: &Server, checks: &mut Vec<Check>) -> Result<(), CliError> {
    match server.read("/version").await {
        Ok(version) => {
            let version = version["gitVersion"]
                .as_str()
                .unwrap_or("of unknown version");
            checks.push(Check::ok(
                "api",
                format!("context {}, {version}", server.context.name),
            ));
        }
        Err(error) => {
            let error = server.failed(error);
            checks.push(Check::fail(
                "api",
                error.line(),
                error.hint_text().unwrap_or("relayctl context show"),
            ));
            return Ok(());
        }
    }
    if !server.context.is_local() {
        checks.extend(clock(server).await);
    }
    checks.push(served(server).await);
    if !server.context.is_local() {
        checks.push(schemas(server).await?);
        checks.push(rights(server).await);
    }
    Ok(())
}

/// The server's clock against ours.
async fn clock(server: &Server) -> Option<Check> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let response = tokio::time::timeout(server.timeout, server.client.send(request))
        .await
        .ok()?
        .ok()?;
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(judge_clock(
        Timestamp::now().duration_since(theirs).as_secs(),
    ))
}

fn judge_clock(ahead: i64) -> Check {
    if ahead.abs() <= MAX_SKEW_SECONDS {
        return Check::ok("clock", "as the server's");
    }
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let found = format!("this clock is {} s {direction} the server's", ahead.abs());
    Check::warn("clock", found, "synchronise both clocks")
}

/// Whether every kind is there.
async fn served(server: &Server) -> Check {
    let name = "kinds";
    let path = format!("/apis/{}/{}", kinds::GROUP, kinds::VERSION);
    let list = match server.read(&path).await {
        Ok(list) => list,
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => {
            return Check::fail(name, server.failed(error).line(), "relayctl context show");
        }
    };
    let resources = list["resources"].as_array().cloned().unwrap_or_default();
    let missing: Vec<_> = kinds::own()
        .filter(|kind| {
            !resources
                .iter()
                .any(|resource| resource["name"] == kind.plural)
        })
        .map(|kind| kind.kind)
        .collect();
    if missing.is_empty() {
        Check::ok(name, "all of them are served")
    } else {
        Check::fail(
            name,
            format!("not served: {}", missing.join(", ")),
            "install the CRDs of this release (crds/)",
        )
    }
}

/// Whether the CRDs of a cluster are those of this program.
async fn schemas(server: &Server) -> Result<Check, CliError> {
    let name = "schemas";
    let mut other = Vec::new();
    for kind in kinds::own() {
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
            kind.plural, kind.group
        );
        let theirs = match server.read(&path).await {
            Ok(theirs) => theirs,
            Err(error) if error.is_not_found() => continue,
            Err(error) => {
                let found = format!("cannot be compared: {}", server.failed(error).line());
                return Ok(Check::warn(
                    name,
                    found,
                    "ask for the right to get customresourcedefinitions",
                ));
            }
        };
        if let Some(ours) = validate::crd(kind)?
            && schema(&ours) != schema(&theirs)
        {
            other.push(kind.kind);
        }
    }
    Ok(if other.is_empty() {
        Check::ok(name, "those of this release")
    } else {
        let found = format!("other than in this program: {}", other.join(", "));
        Check::warn(name, found, "install CRDs and relayctl from one release")
    })
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// What may not be done, by asking.
async fn rights(server: &Server) -> Check {
    let name = "rights";
    let mut missing = Vec::new();
    for kind in kinds::own() {
        for verb in VERBS {
            match may(server, kind, verb).await {
                Ok(true) => {}
                Ok(false) => missing.push(format!("{verb} {}", kind.plural)),
                Err(error) => {
                    return Check::warn(
                        name,
                        format!("cannot be asked: {error}"),
                        "ask an administrator",
                    );
                }
            }
        }
    }
    if missing.is_empty() {
        return Check::ok(name, format!("all, in namespace {}", server.namespace));
    }
    let reads = missing
        .iter()
        .any(|right| right.starts_with("get ") || right.starts_with("list "));
    let found = format!(
        "missing in namespace {}: {}",
        server.namespace,
        missing.join(", ")
    );
    let fix = "ask for a role with these verbs on relay.dev";
    if reads {
        Check::fail(name, found, fix)
    } else {
        Check::warn(name, found, fix)
    }
}

async fn may(server: &Server, kind: &Kind, verb: &str) -> Result<bool, String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": server.namespace, "group": kind.group, "resource": kind.plural, "verb": verb,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = server
        .create(path, &review)
        .await
        .map_err(|error| error.to_string())?;
    Ok(answer["status"]["allowed"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::Health;

    #[test]
    fn clocks_are_judged() {
        for (seconds, health) in [
            (0, Health::Ok),
            (-5, Health::Ok),
            (6, Health::Warn),
            (-3600, Health::Warn),
        ] {
            assert_eq!(judge_clock(seconds).health, health, "{seconds}");
        }
        assert_eq!(
            judge_clock(-3600).found,
            "this clock is 3600 s behind the server's"
        );
    }
}
