//! What a write does to one object, as pure functions: what is stored and what was sent go in, what is to be stored or why
//! not comes out. The order of checks is that of kube-apiserver (`registry/rest/create.go`, `update.go`, `delete.go`).

mod apply;
mod create;
mod delete;
pub(crate) mod metadata;
mod names;
mod nature;
mod patch;
mod replace;
pub(crate) mod scale;

use serde_json::Value;

pub(crate) use apply::{apply, apply_new};
pub(crate) use create::create;
pub(crate) use delete::{DeleteOptions, Deletion, delete, is_finished, marked};
pub(crate) use names::{label_key, label_value};
pub(crate) use patch::{Patch, patch};
pub(crate) use replace::replace;

use crate::catalog::{Nature, Resource, Scope};
use crate::failure::Failure;
use crate::fields::Writer;
use crate::schema::Cause;

/// What an API server refuses of the metadata of an object of ours that is to be made, its namespace filled in.
#[must_use]
pub fn metadata_faults(object: &Value) -> Vec<Cause> {
    metadata::check(object, true, names::subdomain)
}

/// The part of an object that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that has a path of its own.
    Whole,
    Status,
    /// The number of replicas.
    Scale,
}

impl Part {
    /// As `managedFields` names it.
    pub(crate) const fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Status => Some("status"),
            Self::Scale => Some("scale"),
        }
    }
}

/// What a write knows besides the objects. What is random was drawn before, so that the same write gives the same twice.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    pub(crate) resource: &'a Resource,
    /// Empty for kinds outside of namespaces.
    pub(crate) namespace: &'a str,
    /// Of the path; empty when an object is made.
    pub(crate) name: &'a str,
    pub(crate) part: Part,
    pub(crate) manager: &'a str,
    /// RFC 3339 in whole seconds.
    pub(crate) now: &'a str,
    pub(crate) uid: &'a str,
    /// What a generated name ends with.
    pub(crate) suffix: &'a str,
    pub(crate) api_version: &'a str,
}

impl Call<'_> {
    fn writer(&self) -> Writer<'_> {
        Writer {
            manager: self.manager,
            subresource: self.part.subresource(),
            api_version: self.api_version,
            time: self.now,
        }
    }

    fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(self.resource.about(self.name))
    }
}

/// Refuses what has fields of the wrong type in its metadata, or is of another version; fills what a kind of Kubernetes may
/// leave out.
fn decode(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    let kind = &call.resource.definition.kind;
    if !object.is_object() {
        let said = "json: cannot unmarshal a value that is no object into Go value of type map[string]interface {}";
        return Err(unrecognized(kind, said));
    }
    if call.resource.nature != Nature::Custom {
        for (field, value) in [("apiVersion", call.api_version), ("kind", kind.as_str())] {
            if object[field].as_str().unwrap_or_default().is_empty() {
                object[field] = value.into();
            }
        }
    }
    for (field, word) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if object[field].as_str().unwrap_or_default().is_empty() {
            return Err(unrecognized(kind, &format!("Object '{word}' is missing")));
        }
    }
    let sent = object["apiVersion"].as_str().unwrap_or_default();
    if sent != call.api_version {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({})",
            call.api_version
        )));
    }
    if let Some(said) = metadata::mistyped(object) {
        let sent = object["kind"].as_str().unwrap_or_default();
        return Err(Failure::bad_request(format!(
            "{sent} in version {:?} cannot be handled as a {kind}: {said}",
            call.resource.definition.version
        )));
    }
    metadata::tidy(object);
    call.resource.definition.default(object);
    Ok(())
}

fn unrecognized(kind: &str, said: &str) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {said}"
    ))
}

/// The message about fields that no schema knows.
pub(crate) fn strict_message(unknown: &[String]) -> String {
    let each: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    format!("strict decoding error: {}", each.join(", "))
}

/// Fills the namespace in, or refuses another one than the path's.
fn in_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    let sent = metadata::text(object, "namespace");
    if call.is_namespaced() && !sent.is_empty() && sent != call.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = call.is_namespaced().then(|| call.namespace.into());
    metadata::put(object, "namespace", namespace);
    Ok(())
}

/// Refuses an object of another name than the path's.
fn named(call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    let sent = metadata::text(object, "name");
    if sent.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if sent != call.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({})",
            call.name
        )));
    }
    let namespace = metadata::text(object, "namespace");
    if call.is_namespaced() && !namespace.is_empty() && namespace != call.namespace {
        return Err(Failure::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            call.namespace
        )));
    }
    Ok(())
}

fn refuse_if_any(call: &Call<'_>, object: &Value, causes: &[Cause]) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    let name = metadata::text(object, "name");
    Err(Failure::invalid(call.resource.about_kind(name), causes))
}
