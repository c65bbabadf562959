//! Making an object.

use serde_json::Value;

use super::{Call, decode, in_namespace, metadata, names, nature, numbers, refuse_if_any};
use crate::catalog::Nature;
use crate::failure::Failure;
use crate::fields::record_update;
use crate::schema::Cause;

/// Most characters of a generated name without its end.
const MAX_GENERATED: usize = 58;

/// The object to store for what a client sent.
pub(crate) fn create(call: &Call<'_>, mut object: Value) -> Result<Value, Failure> {
    decode(call, &mut object)?;
    in_namespace(call, &mut object)?;
    let version = metadata::text(&object, "resourceVersion").to_owned();
    system_fields(call, &mut object);
    let written = record_update(&call.resource.shape, None, &mut object, &call.writer());
    written.map_err(|error| Failure::internal(&error.to_string()))?;
    finish(call, &mut object)?;
    if version.parse().is_ok_and(|version: u64| version != 0) {
        return Err(Failure::plain(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    Ok(object)
}

/// What the server says of an object, whatever the client sent.
pub(super) fn system_fields(call: &Call<'_>, object: &mut Value) {
    for field in [
        "resourceVersion",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        metadata::put(object, field, None);
    }
    metadata::put(object, "creationTimestamp", Some(call.now.into()));
    metadata::put(object, "uid", Some(call.uid.into()));
    let prefix = metadata::text(object, "generateName");
    if !prefix.is_empty() && metadata::text(object, "name").is_empty() {
        let mut end = prefix.len().min(MAX_GENERATED);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let name = format!("{}{}", &prefix[..end], call.suffix);
        metadata::put(object, "name", Some(name.into()));
    }
}

/// Drops what a create must not set, and checks the rest.
pub(super) fn finish(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    if call.resource.definition.has_status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    if call.resource.nature == Nature::Custom {
        metadata::put(object, "generation", Some(1.into()));
    }
    nature::complete(call.resource.nature, object);
    refuse_if_any(call, object, &causes(call, object))?;
    let rule = metadata::check(object, call.is_namespaced(), names::path_segment);
    refuse_if_any(call, object, &rule)?;
    if call.resource.nature == Nature::Custom {
        numbers::settle(object);
    }
    Ok(())
}

fn causes(call: &Call<'_>, object: &Value) -> Vec<Cause> {
    let rule = match call.resource.nature {
        Nature::Namespace => names::label,
        Nature::Custom | Nature::Event | Nature::Revision => names::subdomain,
    };
    let earlier = metadata::check(object, call.is_namespaced(), rule);
    let definition = &call.resource.definition;
    let mut causes = definition.validate_after(earlier, object, None);
    causes.extend(nature::check(call.resource, object));
    causes
}
