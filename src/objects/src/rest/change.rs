//! Requests that change objects: reads what was sent, has the writer do it, says what came of it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use serde_json::{Value, json};

use super::body::{self, ObjectBody};
use super::path::Objects;
use super::protobuf;
use super::query::{self, Query};
use super::read::{self, Shown};
use super::selector::Selection;
use crate::catalog::Nature;
use crate::failure::Failure;
use crate::fields::Force;
use crate::operation::{Action, Done, Operation, Run};
use crate::store::Inner;
use crate::write::{DeleteOptions, Part, Patch, metadata};

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
                let object = self.new_object(sent)?;
                self.one(Action::Create(object)).await
            }
            Verb::Replace => {
                let object = body::parse(self.headers, sent)?;
                self.one(Action::Replace(object)).await
            }
            Verb::Patch => {
                let action = self.patch(sent)?;
                self.one(action).await
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
            return body::parse(self.headers, sent);
        }
        protobuf::namespace(sent).ok_or_else(|| {
            Failure::bad_request(
                "the body is no Namespace in protobuf with a name, labels and annotations alone; send it as JSON",
            )
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
            uid: uuid::Uuid::new_v4().to_string(),
            run,
        }
    }

    async fn one(self, action: Action) -> Result<Response<ObjectBody>, Failure> {
        let name = self.objects.name.clone().unwrap_or_default();
        let operation = self.operation(&name, action, self.query.run);
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

    fn patch(&self, sent: &Bytes) -> Result<Action, Failure> {
        let is_custom = self.objects.resource.nature == Nature::Custom;
        let media_type = body::media_type(self.headers);
        let is_apply = media_type == "application/apply-patch+yaml";
        query::patch_options(&self.query, is_apply)?;
        let decoded = || body::json(sent).map_err(patch_error);
        match media_type {
            "application/json-patch+json" => Ok(Action::Patch(Patch::Json(decoded()?))),
            "application/merge-patch+json" => Ok(Action::Patch(Patch::Merge(decoded()?))),
            "application/strategic-merge-patch+json" if !is_custom => {
                Ok(Action::Patch(Patch::Strategic(decoded()?)))
            }
            "application/apply-patch+yaml" if self.objects.part != Part::Scale => {
                let config = body::yaml(sent)?;
                if !config.is_object() {
                    return Err(Failure::bad_request(
                        "error decoding YAML: the configuration is no object",
                    ));
                }
                let force = self.query.force.unwrap_or(Force::No);
                Ok(Action::Apply { config, force })
            }
            _ => Err(Failure::unsupported_media_type(if is_custom {
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            } else {
                "application/json-patch+json, application/merge-patch+json, \
                 application/strategic-merge-patch+json, application/apply-patch+yaml"
            })),
        }
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
        let options = if sent.is_empty() {
            Value::Null
        } else {
            body::parse(self.headers, sent)?
        };
        if !options.is_null() && !options.is_object() {
            return Err(Failure::bad_request(
                "decoded object cannot be converted to DeleteOptions",
            ));
        }
        let policy = option_text(&options, "propagationPolicy")?;
        let policy = policy.or_else(|| self.query.propagation.clone());
        let mut orphan = query::is_orphaning(policy.as_deref())?;
        orphan |= match &options["orphanDependents"] {
            Value::Null => false,
            Value::Bool(orphan) => *orphan,
            _ => return Err(mistyped_option("orphanDependents", "bool")),
        };
        let run = match &options["dryRun"] {
            Value::Null => self.query.run,
            Value::Array(words) if words.is_empty() => self.query.run,
            Value::Array(words) if words.iter().all(|word| word == "All") => Run::Dry,
            Value::Array(_) => {
                return Err(Failure::bad_request(format!(
                    "dryRun: Unsupported value: {}: supported values: \"All\"",
                    options["dryRun"]
                )));
            }
            _ => return Err(mistyped_option("dryRun", "[]string")),
        };
        let preconditions = &options["preconditions"];
        if !preconditions.is_null() && !preconditions.is_object() {
            return Err(mistyped_option("preconditions", "v1.Preconditions"));
        }
        let asked = DeleteOptions {
            uid: option_text(preconditions, "uid")?,
            resource_version: option_text(preconditions, "resourceVersion")?,
            orphan,
        };
        Ok((asked, run))
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

/// An option that is a text. One of another type must not count as none: a delete would do more than it was asked for.
fn option_text(options: &Value, name: &str) -> Result<Option<String>, Failure> {
    match &options[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(mistyped_option(name, "string")),
    }
}

fn mistyped_option(name: &str, wanted: &str) -> Failure {
    Failure::bad_request(format!(
        "json: cannot unmarshal the value of DeleteOptions.{name} into a value of type {wanted}"
    ))
}

/// A patch that does not parse is said to be one.
fn patch_error(failure: Failure) -> Failure {
    if failure.code != 400 || failure.message.starts_with("strict") {
        return failure;
    }
    Failure::bad_request(format!("error decoding patch: {}", failure.message))
}
