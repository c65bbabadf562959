//! Removing an object, at once or when its last finalizer has gone.

use serde_json::Value;

use super::{Call, metadata};
use crate::catalog::Nature;
use crate::failure::Failure;

/// What a delete asks for. Grace periods are accepted and mean nothing here: nothing of ours takes time to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    /// Whether what it owns stays.
    pub(crate) orphan: bool,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deletion {
    /// Nothing holds it.
    Remove,
    /// Somebody has work to do first: this is to be stored.
    Mark(Value),
    /// The same, and it was asked for before.
    Waits,
}

/// Decides what a delete does to an object.
pub(crate) fn delete(
    call: &Call<'_>,
    current: &Value,
    options: &DeleteOptions,
) -> Result<Deletion, Failure> {
    meant(call, current, options)?;
    if call.resource.nature == Nature::Namespace && metadata::text(current, "name") == "default" {
        let why = "this namespace may not be deleted";
        return Err(Failure::forbidden(call.resource.about("default"), why));
    }
    if metadata::finalizers(current).is_empty() {
        return Ok(Deletion::Remove);
    }
    if metadata::is_deleting(current) {
        return Ok(Deletion::Waits);
    }
    Ok(Deletion::Mark(marked(call, current)))
}

/// The object with its end asked for.
pub(crate) fn marked(call: &Call<'_>, current: &Value) -> Value {
    let mut object = current.clone();
    metadata::put(&mut object, "deletionTimestamp", Some(call.now.into()));
    metadata::put(&mut object, "deletionGracePeriodSeconds", Some(0.into()));
    let generation = metadata::generation(current);
    if generation > 0 {
        metadata::put(&mut object, "generation", Some((generation + 1).into()));
    }
    if call.resource.nature == Nature::Namespace {
        object["status"]["phase"] = "Terminating".into();
    }
    object
}

/// Whether a changed object has lost the last finalizer that held it.
pub(crate) fn is_finished(object: &Value) -> bool {
    metadata::is_deleting(object) && metadata::finalizers(object).is_empty()
}

fn meant(call: &Call<'_>, current: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    let about = call.resource.about_kind(call.name);
    let uid = metadata::text(current, "uid");
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been \
             deleted and then recreated"
        );
        return Err(Failure::conflict(about, &why));
    }
    let version = metadata::text(current, "resourceVersion");
    let asked = options.resource_version.as_deref();
    if let Some(asked) = asked.filter(|asked| *asked != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        );
        return Err(Failure::conflict(about, &why));
    }
    Ok(())
}
