//! Changing an object to what a client sent, or to what a patch made of it.

use serde_json::{Map, Value};

use super::{
    Call, Part, decode, in_namespace, metadata, named, names, nature, numbers, refuse_if_any,
};
use crate::catalog::Nature;
use crate::failure::Failure;
use crate::fields::{record_update, settle_times};
use crate::schema::go_text::quote;
use crate::schema::{Cause, CauseReason};

/// The object to store in the place of `current` for one that was sent whole. Its uid, if it has one, says which object of
/// its name is meant.
pub(crate) fn replace(
    call: &Call<'_>,
    current: Option<&Value>,
    mut new: Value,
) -> Result<Value, Failure> {
    decode(call, &mut new)?;
    named(call, &new)?;
    let current = current.ok_or_else(|| call.not_found())?;
    same_object(call, current, &new)?;
    change(call, current, new)
}

/// The object to store in the place of `current` for one that was read.
pub(super) fn change(call: &Call<'_>, current: &Value, mut new: Value) -> Result<Value, Failure> {
    record(call, current, &mut new)?;
    finish(call, current, new)
}

/// Notes who owns what changed.
pub(super) fn record(call: &Call<'_>, current: &Value, new: &mut Value) -> Result<(), Failure> {
    let shape = &call.resource.shape;
    record_update(shape, Some(current), new, &call.writer())
        .map_err(|error| Failure::internal(&error.to_string()))
}

/// What is common to all changes: whether it is to this state of the object, what no client may change, and the checks.
pub(super) fn finish(call: &Call<'_>, current: &Value, mut new: Value) -> Result<Value, Failure> {
    same_version(call, current, &mut new)?;
    in_namespace(call, &mut new)?;
    metadata::carry(current, &mut new, "generation");
    match call.part {
        Part::Status => only_status(current, &mut new),
        Part::Whole | Part::Scale => all_but_status(call, current, &mut new),
    }
    if metadata::text(&new, "uid").is_empty() {
        metadata::carry(current, &mut new, "uid");
    }
    metadata::carry(current, &mut new, "creationTimestamp");
    if metadata::is_deleting(current) {
        metadata::carry(current, &mut new, "deletionTimestamp");
    }
    if new["metadata"].get("deletionGracePeriodSeconds").is_none() {
        metadata::carry(current, &mut new, "deletionGracePeriodSeconds");
    }
    nature::keep(call.resource.nature, &mut new);
    refuse_if_any(call, &new, &causes(call, current, &new))?;
    if call.resource.nature == Nature::Custom {
        numbers::settle(&mut new);
    }
    settle_times(current, &mut new);
    Ok(new)
}

/// An object with a uid is meant as that one, not as another of its name.
pub(super) fn same_object(call: &Call<'_>, current: &Value, new: &Value) -> Result<(), Failure> {
    let (sent, is) = (metadata::text(new, "uid"), metadata::text(current, "uid"));
    if sent.is_empty() || sent == is {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {is}");
    Err(Failure::conflict(call.resource.about(call.name), &why))
}

fn same_version(call: &Call<'_>, current: &Value, new: &mut Value) -> Result<(), Failure> {
    let sent = metadata::text(new, "resourceVersion");
    if sent.is_empty() || sent == "0" {
        if call.resource.nature != Nature::Custom {
            metadata::carry(current, new, "resourceVersion");
            return Ok(());
        }
        let cause = Cause::with_value(
            CauseReason::Invalid,
            "metadata.resourceVersion".to_owned(),
            &0.into(),
            "must be specified for an update",
        );
        return Err(Failure::invalid(call.resource.about(call.name), &[cause]));
    }
    if version(sent)? == version(metadata::text(current, "resourceVersion"))? {
        return Ok(());
    }
    Err(Failure::modified(call.resource.about(call.name)))
}

/// A version as a number. What is none fails as it does in Go, which takes it for an error of its own.
fn version(text: &str) -> Result<u64, Failure> {
    let is_number = text.bytes().all(|c| c.is_ascii_digit());
    text.parse().map_err(|_| {
        let why = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        Failure::plain(format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
    })
}

/// Everything but status and ownership is as it was.
fn only_status(current: &Value, new: &mut Value) {
    let status = new["status"].take();
    let owners = new["metadata"]["managedFields"].take();
    *new = current.clone();
    put_status(new, (!status.is_null()).then_some(status));
    metadata::put(new, "managedFields", (!owners.is_null()).then_some(owners));
}

/// The status is as it was; the generation counts changes of the rest.
fn all_but_status(call: &Call<'_>, current: &Value, new: &mut Value) {
    if call.resource.definition.has_status {
        put_status(new, current.get("status").cloned());
    }
    if call.resource.nature == Nature::Custom && wish(current) != wish(new) {
        let next = metadata::generation(current) + 1;
        metadata::put(new, "generation", Some(next.into()));
    }
}

fn put_status(object: &mut Value, status: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        match status {
            Some(status) => fields.insert("status".to_owned(), status),
            None => fields.remove("status"),
        };
    }
}

/// What somebody wishes: all but the metadata.
fn wish(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flat_map(Map::iter);
    fields.filter(|(key, _)| *key != "metadata").collect()
}

fn causes(call: &Call<'_>, current: &Value, new: &Value) -> Vec<Cause> {
    // The API server checks the metadata of a change twice, and tells it twice.
    let mut causes = metadata::check(new, call.is_namespaced(), names::path_segment);
    causes.extend(metadata::check_change(new, current));
    let earlier = metadata::check_change(new, current);
    let definition = &call.resource.definition;
    causes.extend(match call.part {
        Part::Status => definition.validate_status(earlier, new, current),
        Part::Whole | Part::Scale => definition.validate_after(earlier, new, Some(current)),
    });
    causes.extend(nature::check_change(call.resource, new, current));
    causes
}
