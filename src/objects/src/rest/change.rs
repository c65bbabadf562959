//! Requests that change objects: reads what was sent, has the writer do it, says what came of it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use serde_json::{Value, json};

use super::KeptUid;
use super::body::{self, ObjectBody};
use super::delete_options;
use super::path::Objects;
use super::protobuf;
use super::query::{self, Options, Query};
use super::read::{self, Shown};
use super::selector::Selection;
use crate::catalog::Nature;
use crate::failure::Failure;
use crate::fields::Force;
use crate::operation::{Action, Done, Operation, Run};
use crate::store::Inner;
use crate::write::{DeleteOptions, Part, Patch, cannot_be_handled, metadata};

/// What a method means for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Replace,
    Patch,
    Delete,
    DeleteMany,
}

/// The verb of a request, if the path has it.
pub(super) fn verb(objects: &Objects, method: &Method) -> Result<Verb, Failure> {
    let is_placed =
        objects.resource.scope == crate::catalog::Scope::Cluster || !objects.namespace.is_empty();
    match (method, &objects.name, objects.part) {
        (&Method::POST, None, _) if is_placed => Ok(Verb::Create),
        (&Method::DELETE, None, _) if is_placed && objects.resource.nature != Nature::Namespace => {
            Ok(Verb::DeleteMany)
        }
        (&Method::PUT, Some(_), _) => Ok(Verb::Replace),
        (&Method::PATCH, Some(_), _) => Ok(Verb::Patch),
        (&Method::DELETE, Some(_), Part::Whole) => Ok(Verb::Delete),
        _ => Err(Failure::method_not_allowed()),
    }
}

/// A request to change something.
pub(super) struct Write<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) objects: Objects,
    pub(super) query: Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) view: Shown,
    /// Of an object that is made again.
    pub(super) kept_uid: Option<&'a KeptUid>,
}

impl Write<'_> {
    /// Does it.
    pub(super) async fn run(
        self,
        verb: Verb,
        sent: &Bytes,
    ) -> Result<Response<ObjectBody>, Failure> {
        match verb {
            Verb::Create => {
                let run = self.query.run(Options::Create)?;
                let object = self.new_object(sent)?;
                self.one(Action::Create(object), run).await
            }
            Verb::Replace => {
                let run = self.query.run(Options::Update)?;
                let object = self.whole(sent)?;
                self.one(Action::Replace(object), run).await
            }
            Verb::Patch => {
                let (action, run) = self.patch(sent)?;
                self.one(action, run).await
            }
            Verb::Delete => {
                let (options, run) = self.delete_options(sent)?;
                self.delete(options, run).await
            }
            Verb::DeleteMany => {
                let (options, run) = self.delete_options(sent)?;
                self.delete_many(&options, run).await
            }
        }
    }

    fn new_object(&self, sent: &Bytes) -> Result<Value, Failure> {
        let is_protobuf = body::media_type(self.headers) == "application/vnd.kubernetes.protobuf";
        if !is_protobuf || self.objects.resource.nature != Nature::Namespace {
            return self.whole(sent);
        }
        protobuf::namespace(sent).ok_or_else(|| {
            Failure::bad_request(
                "the body is no Namespace in protobuf with a name, labels and annotations alone; send it as JSON",
            )
        })
    }

    /// An object that was sent. One that names a key twice says what it is nevertheless, and is told by that.
    fn whole(&self, sent: &Bytes) -> Result<Value, Failure> {
        body::parse(self.headers, sent).map_err(|failure| {
            if failure.code != 400 || !failure.message.starts_with("strict") {
                return failure;
            }
            let definition = &self.objects.resource.definition;
            match serde_json::from_slice(sent) {
                Ok(object) => cannot_be_handled(definition, &object, &failure.message),
                Err(_) => failure,
            }
        })
    }

    fn operation(&self, name: &str, action: Action, run: Run) -> Operation {
        Operation {
            resource: self.objects.resource.clone(),
            namespace: self.objects.namespace.clone(),
            name: name.to_owned(),
            part: self.objects.part,
            action,
            manager: self.manager(),
            now: (self.inner.clock)(),
            uid: match self.kept_uid {
                Some(kept) => kept.0.clone(),
                None => uuid::Uuid::new_v4().to_string(),
            },
            run,
        }
    }

    async fn one(self, action: Action, run: Run) -> Result<Response<ObjectBody>, Failure> {
        let name = self.objects.name.clone().unwrap_or_default();
        let operation = self.operation(&name, action, run);
        let done = (self.inner.queue)
            .run(move |all| operation.run(all))
            .await?;
        let (code, object) = match done {
            Done::Created(object) => (201, object),
            Done::Changed(object) | Done::Deleted(object) => (200, object),
        };
        let shown = read::one(self.inner, &self.objects, object, self.view);
        Ok(super::json(code, &shown))
    }

    fn patch(&self, sent: &Bytes) -> Result<(Action, Run), Failure> {
        let is_custom = self.objects.resource.nature == Nature::Custom;
        let media_type = body::media_type(self.headers);
        let is_apply = media_type == "application/apply-patch+yaml";
        let options = if is_apply {
            Options::Apply
        } else {
            Options::Patch
        };
        let run = self.query.run(options)?;
        let decoded = || body::json(sent).map_err(patch_error);
        let action = match media_type {
            "application/json-patch+json" => Action::Patch(Patch::Json(decoded()?)),
            "application/merge-patch+json" => Action::Patch(Patch::Merge(decoded()?)),
            "application/strategic-merge-patch+json" if !is_custom => {
                Action::Patch(Patch::Strategic(decoded()?))
            }
            "application/apply-patch+yaml" if self.objects.part != Part::Scale => {
                let config = body::yaml(sent)?;
                if !config.is_object() {
                    return Err(Failure::bad_request(
                        "error decoding YAML: the configuration is no object",
                    ));
                }
                let force = self.query.force.unwrap_or(Force::No);
                Action::Apply { config, force }
            }
            _ => {
                return Err(Failure::unsupported_media_type(if is_custom {
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                } else {
                    "application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml"
                }));
            }
        };
        Ok((action, run))
    }

    /// Who writes: what the client says, else its program.
    fn manager(&self) -> String {
        if !self.query.manager.is_empty() {
            return self.query.manager.clone();
        }
        let agent = self.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        let program = agent.unwrap_or_default().split('/').next();
        let printable = program.unwrap_or_default().chars().take(128);
        let name: String = printable.filter(|c| !c.is_control()).collect();
        if name.is_empty() {
            "unknown".to_owned()
        } else {
            name
        }
    }

    fn delete_options(&self, sent: &Bytes) -> Result<(DeleteOptions, Run), Failure> {
        let body = if sent.is_empty() {
            Value::Null
        } else {
            body::parse(self.headers, sent)?
        };
        delete_options::read(&body, &self.query)
    }

    async fn delete(
        self,
        options: DeleteOptions,
        run: Run,
    ) -> Result<Response<ObjectBody>, Failure> {
        let name = self.objects.name.clone().unwrap_or_default();
        let operation = self.operation(&name, Action::Delete(options), run);
        let done = (self.inner.queue)
            .run(move |all| operation.run(all))
            .await?;
        match done {
            Done::Deleted(last) => Ok(super::json(200, &self.success(&last))),
            Done::Changed(object) | Done::Created(object) => {
                let shown = read::one(self.inner, &self.objects, object, self.view);
                Ok(super::json(200, &shown))
            }
        }
    }

    fn success(&self, last: &Value) -> Value {
        let definition = &self.objects.resource.definition;
        let mut details = json!({
            "name": metadata::text(last, "name"),
            "kind": definition.plural,
            "uid": metadata::text(last, "uid"),
        });
        if !definition.group.is_empty() {
            details["group"] = definition.group.as_str().into();
        }
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        })
    }

    /// Deletes what a list finds, one after the other, as the API server does: each is a write of its own.
    async fn delete_many(
        self,
        options: &DeleteOptions,
        run: Run,
    ) -> Result<Response<ObjectBody>, Failure> {
        query::list_options(&self.query)?;
        let resource = &self.objects.resource;
        let selection = Selection::parse(resource, &self.query.labels, &self.query.fields)?;
        let page = read::page(self.inner, &self.objects, &self.query, &selection).await?;
        let mut deleted = Vec::new();
        for item in &page.items {
            let operation = self.operation(&item.name, Action::Delete(options.clone()), run);
            let done = (self.inner.queue).run(move |all| operation.run(all)).await;
            match done {
                Ok(Done::Created(object) | Done::Changed(object) | Done::Deleted(object)) => {
                    deleted.push(object);
                }
                // Somebody else was faster.
                Err(failure) if failure.code == 404 => {}
                Err(failure) => return Err(failure),
            }
        }
        let metadata = json!({"resourceVersion": page.version.to_string()});
        let shown = read::many(self.inner, &self.objects, &metadata, &deleted, self.view);
        Ok(super::json(200, &shown))
    }
}

/// A patch that does not parse is said to be one.
fn patch_error(failure: Failure) -> Failure {
    if failure.code != 400 || failure.message.starts_with("strict") {
        return failure;
    }
    Failure::bad_request(format!("error decoding patch: {}", failure.message))
}
