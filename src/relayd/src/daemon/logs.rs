//! `GET /api/logs/{namespace}/{plural}/{name}`: the last output of a server or of the tasks of a model; of a revision that was
//! taken back and deleted, what was kept of it.

use api::group::Kind;
use api::kept_log::{self, KeptLog};
use api::kinds::{LayaModel, LayaServer};
use api::label;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use backend::{Child, Observed, Owner, Question, ServerSeen, task_protocol};
use http::{HeaderValue, StatusCode, header};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize;

use super::Daemon;
use super::answer::{Answer, Refusal};

/// Most bytes that are given, and as many as are given when nobody says (control-plane 8.1).
const MOST: usize = 64 << 10;

/// What may be said in the address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Of a server: which revision.
    revision: Option<String>,
    /// Bytes.
    tail: Option<String>,
}

pub(super) async fn logs(
    State(daemon): State<Daemon>,
    Path((namespace, plural, name)): Path<(String, String, String)>,
    query: Result<Query<Wanted>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let Query(wanted) = query.map_err(|error| Refusal::field("", error.body_text()))?;
    let tail = match &wanted.tail {
        None => MOST,
        Some(text) => text
            .parse()
            .ok()
            .filter(|bytes| *bytes <= MOST)
            .ok_or_else(|| Refusal::field("tail", format!("expected 0 to {MOST} bytes")))?,
    };
    let engine = daemon.engine()?;
    let client = daemon.0.client.clone();
    let owner = |kind, uid: Option<String>| Owner {
        kind,
        namespace: namespace.clone(),
        name: name.clone(),
        uid: uid.unwrap_or_default(),
    };
    let backend = &engine.parts.backend;
    let question = Question::default();
    let (owner, child) = match plural.as_str() {
        "layaservers" => {
            let servers: Api<LayaServer> = Api::namespaced(client, &namespace);
            let server = servers.get(&name).await?;
            let owner = owner(Kind::LayaServer, server.uid());
            let seen = backend.observe(&owner, &question).await;
            // Of an engine that is away nothing is known, and what is kept is there all the same.
            let child = match &seen {
                Ok(seen) => server_child(&server, seen, wanted.revision.as_deref()),
                Err(_) => None,
            };
            if child.is_none()
                && let Some(revision) = &wanted.revision
                && let Some(log) = kept(daemon.0.client.clone(), &server, revision).await?
            {
                return Ok(text(task_protocol::tail(&log, tail)));
            }
            seen?;
            (owner, child)
        }
        "layamodels" => {
            let models: Api<LayaModel> = Api::namespaced(client, &namespace);
            let owner = owner(Kind::LayaModel, models.get(&name).await?.uid());
            let seen = backend.observe(&owner, &question).await?;
            (owner, task_child(&seen))
        }
        "trainingruns" => {
            return Err(Refusal::not_found("nothing trains in this version yet"));
        }
        other => {
            return Err(Refusal::not_found(format!(
                "`{other}` have no logs; layaservers, layamodels and trainingruns have"
            )));
        }
    };
    let Some(child) = child else {
        return Err(Refusal::not_found(format!(
            "nothing of {plural} {namespace}/{name} runs, or is kept, on the engine"
        )));
    };
    Ok(text(backend.logs(&owner, &child, tail).await?))
}

fn text(log: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], log).into_response()
}

/// What is kept of a revision that was taken back, as long as it is.
async fn kept(
    client: Client,
    server: &LayaServer,
    revision: &str,
) -> Result<Option<String>, Refusal> {
    if !is_revision(revision) {
        return Ok(None);
    }
    let namespace = server.namespace().unwrap_or_default();
    let documents: Api<ControllerRevision> = Api::namespaced(client, &namespace);
    let name = kept_log::document_name(&server.name_any(), revision);
    let document = documents.get_opt(&name).await?;
    Ok(document.and_then(|document| its_log(server, &document)))
}

/// Becomes part of a name.
fn is_revision(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn its_log(server: &LayaServer, document: &ControllerRevision) -> Option<String> {
    let owner = document.labels().get(label::UID);
    let RawExtension(data) = document.data.as_ref()?;
    let kept = KeptLog::read(data)?;
    (owner == server.uid().as_ref()).then_some(kept.log)
}

/// The replica that is meant: of the revision that was named, else of the candidate's, the champion's, any; of those the
/// lowest number.
fn server_child(server: &LayaServer, seen: &Observed, revision: Option<&str>) -> Option<Child> {
    let status = server.status.as_ref();
    let revision_of = |version: Option<&api::kinds::laya_server::Version>| {
        version.and_then(|version| version.revision.clone())
    };
    let found: Option<&ServerSeen> = match revision {
        Some(revision) => first_of(seen, revision),
        None => {
            let candidate = revision_of(status.and_then(|status| status.candidate.as_ref()));
            let champion = revision_of(status.and_then(|status| status.champion.as_ref()));
            [candidate, champion]
                .into_iter()
                .flatten()
                .find_map(|revision| first_of(seen, &revision))
                .or_else(|| seen.servers.first())
        }
    };
    found.map(|server| Child::Server {
        revision: server.revision.clone(),
        ordinal: server.ordinal,
    })
}

fn first_of<'a>(seen: &'a Observed, revision: &str) -> Option<&'a ServerSeen> {
    seen.servers
        .iter()
        .filter(|server| server.revision == revision)
        .min_by_key(|server| server.ordinal)
}

/// The task that was started last.
fn task_child(seen: &Observed) -> Option<Child> {
    let last = seen.tasks.iter().max_by_key(|task| task.started_at)?;
    Some(Child::Task(last.key.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_log_of_this_server_is_given() {
        let server: LayaServer = serde_json::from_value(json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {"name": "main", "namespace": "default", "uid": "u1"}, "spec": {"modelRef": {"name": "v1"}},
        }))
        .unwrap();
        let document = |uid: &str, data: serde_json::Value| -> ControllerRevision {
            serde_json::from_value(json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision",
                "metadata": {"name": "ls-main-0123456789-log", "labels": {label::UID: uid}}, "data": data, "revision": 1,
            }))
            .unwrap()
        };
        let log = json!({"log": "the end"});
        assert_eq!(
            its_log(&server, &document("u1", log.clone())).as_deref(),
            Some("the end")
        );
        assert_eq!(its_log(&server, &document("u2", log)), None);
        assert_eq!(its_log(&server, &document("u1", json!({"other": 1}))), None);
    }

    #[test]
    fn what_is_no_revision_is_no_part_of_a_name() {
        for (revision, good) in [
            ("0123456789", true),
            ("", false),
            ("../x", false),
            ("a/b", false),
            ("0123456789-log", false),
        ] {
            assert_eq!(is_revision(revision), good, "{revision}");
        }
    }
}
