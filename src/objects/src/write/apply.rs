//! Server-side apply: what a manager wants is merged into what is there, or made.

use serde_json::{Value, json};

use super::{Call, create, metadata, named, replace};
use crate::failure::Failure;
use crate::fields::{self, ApplyError, Force};

/// The object to store in the place of `current`.
pub(crate) fn apply(
    call: &Call<'_>,
    current: &Value,
    config: &Value,
    force: Force,
) -> Result<Value, Failure> {
    let mut merged = merged(call, Some(current), config, force)?;
    named(call, &merged)?;
    call.resource.definition.default(&mut merged);
    replace::finish(call, current, merged)
}

/// The object to store where there is none.
pub(crate) fn apply_new(call: &Call<'_>, config: &Value, force: Force) -> Result<Value, Failure> {
    if call.part.subresource().is_some() {
        return Err(call.not_found());
    }
    let uid = metadata::text(config, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Failure::conflict(call.resource.about(call.name), &why));
    }
    let mut object = merged(call, None, config, force)?;
    named(call, &object)?;
    call.resource.definition.default(&mut object);
    super::in_namespace(call, &mut object)?;
    create::system_fields(call, &mut object);
    create::finish(call, &mut object)?;
    Ok(object)
}

fn merged(
    call: &Call<'_>,
    current: Option<&Value>,
    config: &Value,
    force: Force,
) -> Result<Value, Failure> {
    if let Some(said) = metadata::mistyped(config) {
        return Err(Failure::bad_request(format!("error decoding YAML: {said}")));
    }
    // What is of no kind at all is for the fields to refuse.
    let kind = metadata::of_type(config, "kind");
    if !kind.is_empty() && kind != call.resource.definition.kind {
        let api_version = metadata::of_type(config, "apiVersion");
        let slash = if api_version.contains('/') { "" } else { "/" };
        let said = format!("invalid object type: {slash}{api_version}, Kind={kind}");
        return Err(Failure::bad_request(said));
    }
    let shape = &call.resource.shape;
    let mut merged = fields::apply(shape, current, config, &call.writer(), force)
        .map_err(|error| refused(&error))?;
    // The version that a client names is its precondition; without one any state will do.
    let version = match metadata::text(config, "resourceVersion") {
        "" => current.map(|current| metadata::text(current, "resourceVersion")),
        asked => Some(asked),
    };
    metadata::put(&mut merged, "resourceVersion", version.map(Into::into));
    Ok(merged)
}

fn refused(error: &ApplyError) -> Failure {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|conflict| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": conflict.message(),
                    "field": conflict.field,
                })
            });
            Failure::apply_conflict(conflicts.to_string(), causes.collect())
        }
        ApplyError::BadRequest(said) => Failure::bad_request(said.as_str()),
        ApplyError::Unfit(said) => Failure::plain(said.as_str()),
        ApplyError::Caller(error) => Failure::internal(&error.to_string()),
    }
}
