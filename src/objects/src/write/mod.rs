//! What a write does to one object, as pure functions: what is stored and what was sent go in, what is to be stored or why
//! not comes out. The order of checks is that of kube-apiserver (`registry/rest/create.go`, `update.go`, `delete.go`).

mod apply;
mod create;
mod delete;
mod event;
pub(crate) mod metadata;
mod names;
mod nature;
mod numbers;
mod patch;
mod replace;
pub(crate) mod scale;
mod typed;

use serde_json::Value;

pub(crate) use apply::{apply, apply_new};
pub(crate) use create::create;
pub(crate) use delete::{DeleteOptions, Deletion, delete, is_finished, marked};
pub(crate) use names::{label_key, label_value};
pub(crate) use patch::{Patch, patch};
pub(crate) use replace::replace;

use crate::catalog::{Nature, Resource, Scope};
use crate::failure::{About, Failure};
use crate::fields::Writer;
use crate::schema::{Cause, CauseReason, Definition};

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

/// Why what was sent is no object of the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unreadable {
    /// It does not say what it is.
    NoObject(String),
    NoKind,
    /// It says so, and is not.
    Unfit(String),
}

/// Refuses what cannot be read as the kind at all: no kind, types of Go that it does not have, fields that nobody knows.
fn read(call: &Call<'_>, object: &mut Value) -> Result<(), Unreadable> {
    let definition = &call.resource.definition;
    if !object.is_object() {
        let said = "json: cannot unmarshal a value that is no object into Go value of type map[string]interface {}";
        return Err(Unreadable::NoObject(said.to_owned()));
    }
    if call.resource.nature != Nature::Custom {
        for (field, value) in [
            ("apiVersion", call.api_version),
            ("kind", definition.kind.as_str()),
        ] {
            if object[field].as_str().unwrap_or_default().is_empty() {
                object[field] = value.into();
            }
        }
    }
    if metadata::of_type(object, "kind").is_empty() {
        return Err(Unreadable::NoKind);
    }
    if let Some(said) = metadata::mistyped(object) {
        return Err(Unreadable::Unfit(said));
    }
    if call.resource.nature != Nature::Custom
        && let Some(said) = typed::mistyped(call.resource, object)
    {
        return Err(Unreadable::Unfit(said));
    }
    let unknown = definition.unknown_fields(object);
    if !unknown.is_empty() {
        return Err(Unreadable::Unfit(strict_message(&unknown)));
    }
    metadata::tidy(object);
    // What is of another kind, or of a version that there is not, has defaults of its own.
    if definition.is_of_kind(object) && metadata::of_type(object, "apiVersion") == call.api_version
    {
        definition.default(object);
    }
    Ok(())
}

/// Reads what a client sent whole.
fn decode(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    read(call, object).map_err(|why| undecodable(&call.resource.definition, object, why))?;
    let sent = metadata::of_type(object, "apiVersion");
    if sent != call.api_version {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({})",
            call.api_version
        )));
    }
    Ok(())
}

fn undecodable(definition: &Definition, object: &Value, why: Unreadable) -> Failure {
    match why {
        Unreadable::NoObject(said) => unrecognized(&definition.kind, &said),
        Unreadable::NoKind => unrecognized(&definition.kind, "Object 'Kind' is missing"),
        Unreadable::Unfit(said) => cannot_be_handled(definition, object, &said),
    }
}

/// 400 for what says that it is of a kind and does not fit it. Its words name the kind and version that were sent.
pub(crate) fn cannot_be_handled(definition: &Definition, object: &Value, said: &str) -> Failure {
    let api_version = metadata::of_type(object, "apiVersion");
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Failure::bad_request(format!(
        "{} in version {version:?} cannot be handled as a {}: {said}",
        metadata::of_type(object, "kind"),
        definition.kind
    ))
}

/// 422 for a patch whose result cannot be read: the server checks the result, not the patch, and says so.
fn unpatchable(patched: &Value, why: Unreadable) -> Failure {
    let text = crate::schema::go_text::json(patched);
    let said = match why {
        Unreadable::NoKind => format!("Object 'Kind' is missing in '{text}'"),
        Unreadable::NoObject(said) | Unreadable::Unfit(said) => said,
    };
    let field = "patch".to_owned();
    let cause = Cause::with_value(CauseReason::Invalid, field, &text.into(), &said);
    let nothing = About {
        group: "",
        kind: "",
        name: "",
    };
    Failure::invalid(nothing, &[cause])
}

fn unrecognized(kind: &str, said: &str) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {said}"
    ))
}

/// The message about fields that no schema knows.
fn strict_message(unknown: &[String]) -> String {
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
        return Err(other_namespace());
    }
    let namespace = call.is_namespaced().then(|| call.namespace.into());
    metadata::put(object, "namespace", namespace);
    Ok(())
}

/// Refuses an object of another name than the path's.
fn named(call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    let namespace = metadata::text(object, "namespace");
    if call.is_namespaced() && !namespace.is_empty() && namespace != call.namespace {
        return Err(other_namespace());
    }
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
    Ok(())
}

fn other_namespace() -> Failure {
    Failure::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// What an invalid object is called: by the kind and group that it says it is of.
fn refuse_if_any(call: &Call<'_>, object: &Value, causes: &[Cause]) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    let mut about = call.resource.about_kind(metadata::text(object, "name"));
    if call.resource.nature == Nature::Custom {
        about.kind = metadata::of_type(object, "kind");
        let group = metadata::of_type(object, "apiVersion").split_once('/');
        about.group = group.map_or("", |(group, _)| group);
    }
    Err(Failure::invalid(about, causes))
}
