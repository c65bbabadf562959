//! Questions to an object API and its answers as JSON trees, through `kube::Client`: every answer has a deadline and a
//! bound. Objects stay untyped, so that nothing a server knows is lost on the way.

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;

use crate::context::Chosen;
use crate::error::CliError;
use crate::kinds::{Kind, Scope};
use crate::refusal::ServerError;

/// Largest answer, in bytes: a page of 500 objects, most of them large.
const MAX_ANSWER: usize = 128 << 20;
/// Objects of one page of a list.
const PAGE: usize = 500;
/// Most objects that are listed: more than a store or a cluster of ours may hold (control-plane 9, 19).
const MAX_OBJECTS: usize = 50_000;
/// Manager of what this program applies.
pub(crate) const MANAGER: &str = "relayctl";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// What gives columns instead of objects.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// In which form a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects.
    Objects,
    /// Rows with columns.
    Table,
}

impl Form {
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Objects => JSON,
            Self::Table => TABLE,
        }
    }
}

/// Whether a write is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// It is.
    Commit,
    /// Only what would come of it is asked.
    DryRun,
}

/// Whether fields of other managers are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    /// They are.
    Yes,
    /// They are a conflict.
    No,
}

/// One object API.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) client: kube::Client,
    pub(crate) context: Chosen,
    /// Namespace of what names none.
    pub(crate) namespace: String,
    /// For one answer.
    pub(crate) timeout: Duration,
}

/// Which objects of a kind are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// `None` = of all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// An answer to a write.
#[derive(Debug)]
pub(crate) struct Written {
    /// Whether the object is new.
    pub(crate) created: bool,
    pub(crate) object: Value,
}

impl Server {
    /// Path of a kind's collection.
    pub(crate) fn collection(kind: &Kind, namespace: Option<&str>) -> String {
        let root = if kind.group.is_empty() {
            format!("/api/{}", kind.version)
        } else {
            format!("/apis/{}/{}", kind.group, kind.version)
        };
        match (kind.scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                format!("{root}/namespaces/{}/{}", encode(namespace), kind.plural)
            }
            _ => format!("{root}/{}", kind.plural),
        }
    }

    fn object_path(kind: &Kind, namespace: &str, name: &str) -> String {
        format!(
            "{}/{}",
            Self::collection(kind, Some(namespace)),
            encode(name)
        )
    }

    /// A failure as the error of a command.
    pub(crate) fn failed(&self, error: ServerError) -> CliError {
        error.into_error(&self.context.name)
    }

    /// One object.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        form: Form,
    ) -> Result<Value, ServerError> {
        let path = Self::object_path(kind, namespace, name);
        Ok(self.ask(Method::GET, &path, form, None).await?.1)
    }

    /// One object, or nothing where there is none.
    pub(crate) async fn find(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ServerError> {
        match self.get(kind, namespace, name, Form::Objects).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A list of objects or a table of them, page by page.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        selection: &Selection,
        form: Form,
    ) -> Result<Value, ServerError> {
        let entries = match form {
            Form::Objects => "items",
            Form::Table => "rows",
        };
        let path = Self::collection(kind, selection.namespace.as_deref());
        let mut all: Option<Value> = None;
        let mut next: Option<String> = None;
        loop {
            let mut query = selection.query();
            query.append_pair("limit", &PAGE.to_string());
            if let Some(next) = &next {
                query.append_pair("continue", next);
            }
            let page = format!("{path}?{}", query.finish());
            let (_, mut answer) = self.ask(Method::GET, &page, form, None).await?;
            next = answer["metadata"]["continue"]
                .as_str()
                .filter(|next| !next.is_empty())
                .map(str::to_owned);
            let list = match &mut all {
                None => all.insert(answer),
                Some(list) => {
                    if let (Some(list), Value::Array(more)) =
                        (list[entries].as_array_mut(), answer[entries].take())
                    {
                        list.extend(more);
                    }
                    list
                }
            };
            let count = list[entries].as_array().map_or(0, Vec::len);
            if next.is_none() {
                return Ok(all.unwrap_or(Value::Null));
            }
            if count >= MAX_OBJECTS {
                return Err(ServerError::Strange(format!(
                    "there are more than {MAX_OBJECTS} {}; name some, or select by labels",
                    kind.plural
                )));
            }
        }
    }

    /// Server-side apply by our manager, strict about fields.
    pub(crate) async fn apply(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        object: &Value,
        write: Write,
        force: Force,
    ) -> Result<Written, ServerError> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fieldManager", MANAGER);
        query.append_pair("fieldValidation", "Strict");
        query.append_pair("force", if force == Force::Yes { "true" } else { "false" });
        if write == Write::DryRun {
            query.append_pair("dryRun", "All");
        }
        let path = Self::object_path(kind, namespace, name);
        let path = format!("{path}?{}", query.finish());
        // JSON is YAML; the media type says what is meant by it.
        let body = ("application/apply-patch+yaml", object);
        let (status, object) = self
            .ask(Method::PATCH, &path, Form::Objects, Some(body))
            .await?;
        Ok(Written {
            created: status == StatusCode::CREATED,
            object,
        })
    }

    /// Merge patch of one object by a manager of ours, strict about fields: what it sets is owned by that manager from then
    /// on, whatever a later apply of a file says.
    pub(crate) async fn patch(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        manager: &str,
        patch: &Value,
        write: Write,
    ) -> Result<Value, ServerError> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fieldManager", manager);
        query.append_pair("fieldValidation", "Strict");
        if write == Write::DryRun {
            query.append_pair("dryRun", "All");
        }
        let path = Self::object_path(kind, namespace, name);
        let path = format!("{path}?{}", query.finish());
        let body = (MERGE_PATCH, patch);
        Ok(self
            .ask(Method::PATCH, &path, Form::Objects, Some(body))
            .await?
            .1)
    }

    /// [`Self::patch`] in the namespace in force, with what was attempted in its failure.
    pub(crate) async fn change(
        &self,
        kind: &Kind,
        name: &str,
        manager: &str,
        patch: &Value,
        write: Write,
    ) -> Result<Value, CliError> {
        let changed = self.patch(kind, &self.namespace, name, manager, patch, write);
        changed.await.map_err(|error| {
            self.failed(error)
                .attempting(format!("cannot change {}", kind.full(name)))
        })
    }

    /// The same server with another patience for one answer.
    pub(crate) fn with_patience(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// Creates an object where the path names none; or calls the daemon.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, ServerError> {
        let body = (JSON, object);
        Ok(self
            .ask(Method::POST, path, Form::Objects, Some(body))
            .await?
            .1)
    }

    /// Deletes one object, if it still is the one that was seen.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
        write: Write,
    ) -> Result<Value, ServerError> {
        let mut options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        });
        if let Some(uid) = uid {
            options["preconditions"] = serde_json::json!({ "uid": uid });
        }
        if write == Write::DryRun {
            options["dryRun"] = serde_json::json!(["All"]);
        }
        let path = Self::object_path(kind, namespace, name);
        let body = (JSON, &options);
        Ok(self
            .ask(Method::DELETE, &path, Form::Objects, Some(body))
            .await?
            .1)
    }

    /// Any path that answers with JSON.
    pub(crate) async fn read(&self, path: &str) -> Result<Value, ServerError> {
        Ok(self.ask(Method::GET, path, Form::Objects, None).await?.1)
    }

    /// Any path that answers with text, as logs do.
    pub(crate) async fn text(&self, path: &str) -> Result<String, ServerError> {
        let request = Request::get(path)
            .header(header::ACCEPT, "text/plain, */*")
            .body(Body::empty())
            .map_err(|error| ServerError::Strange(error.to_string()))?;
        let (_, bytes) = tokio::time::timeout(self.timeout, self.exchange_bytes(request))
            .await
            .map_err(|_| ServerError::TimedOut(self.timeout))??;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        form: Form,
        body: Option<(&str, &Value)>,
    ) -> Result<(StatusCode, Value), ServerError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, form.accept());
        let bytes = match body {
            Some((media_type, tree)) => {
                request = request.header(header::CONTENT_TYPE, media_type);
                tree.to_string().into_bytes()
            }
            None => Vec::new(),
        };
        let request = request
            .body(Body::from(bytes))
            .map_err(|error| ServerError::Strange(error.to_string()))?;
        tokio::time::timeout(self.timeout, self.exchange(request))
            .await
            .map_err(|_| ServerError::TimedOut(self.timeout))?
    }

    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Value), ServerError> {
        let (status, bytes) = self.exchange_bytes(request).await?;
        // What was only accepted needs to say nothing.
        if bytes.is_empty() && matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok((status, serde_json::json!({})));
        }
        let tree: Value = serde_json::from_slice(&bytes)
            .map_err(|error| ServerError::Strange(format!("its answer is no JSON: {error}")))?;
        if !tree.is_object() {
            return Err(ServerError::Strange("its answer is no object".to_owned()));
        }
        Ok((status, tree))
    }

    async fn exchange_bytes(
        &self,
        request: Request<Body>,
    ) -> Result<(StatusCode, bytes::Bytes), ServerError> {
        let response = self
            .client
            .send(request)
            .await
            .map_err(ServerError::unsent)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        let bytes = body
            .collect()
            .await
            .map_err(ServerError::broken)?
            .to_bytes();
        if status.is_success() {
            Ok((status, bytes))
        } else {
            Err(ServerError::refused(status, &bytes))
        }
    }
}

/// The first object of a list, if there is one.
pub(crate) fn first(list: &Value) -> Option<Value> {
    list["items"].as_array()?.first().cloned()
}

impl Selection {
    /// One object by name.
    pub(crate) fn of_name(namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            labels: None,
            fields: Some(format!("metadata.name={name}")),
        }
    }

    /// Everything in a namespace.
    pub(crate) fn within(namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::default()
        }
    }

    pub(crate) fn query(&self) -> form_urlencoded::Serializer<'static, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(labels) = &self.labels {
            query.append_pair("labelSelector", labels);
        }
        if let Some(fields) = &self.fields {
            query.append_pair("fieldSelector", fields);
        }
        query
    }
}

/// A text as one part of a path.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn paths_are_those_of_kubernetes() {
        let policy = kinds::routing_policy();
        for (path, expected) in [
            (
                Server::collection(policy, None),
                "/apis/relay.dev/v1alpha1/routingpolicies",
            ),
            (
                Server::object_path(policy, "team", "default"),
                "/apis/relay.dev/v1alpha1/namespaces/team/routingpolicies/default",
            ),
            (
                Server::object_path(policy, "a/../b", ".."),
                "/apis/relay.dev/v1alpha1/namespaces/a%2F..%2Fb/routingpolicies/..",
            ),
            (
                Server::collection(kinds::named("Namespace").unwrap(), Some("x")),
                "/api/v1/namespaces",
            ),
        ] {
            assert_eq!(path, expected);
        }
    }
}
