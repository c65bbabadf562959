//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386) with the API server's bounds, refusals and liberties
//! (control-plane 9).
//!
//! Not by a crate: the API server's patches differ from the RFCs where it shows. `replace` adds a field that is missing,
//! `copy` of a missing field copies null, `test` takes a missing field for null, an index may count from the end, and a
//! merge patch drops nulls inside lists where it replaces.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::depth::{MAX_DEPTH, is_within};

/// How many operations one JSON patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// Most bytes that the copies of one patch may add: each can double the object.
const MAX_COPIED: usize = 3 << 20;

/// Why an object was not patched. The texts are those of the API server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is no patch: 400 `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// More operations than allowed: 413 `RequestEntityTooLarge`.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {got}")]
    TooManyOperations {
        /// How many there are.
        got: usize,
    },
    /// An operation does not fit the object, or a test in it fails: 422 `Invalid`, where the API server keeps this text to
    /// itself and says “the server rejected our request due to an error in our request”.
    #[error("{0}")]
    DoesNotApply(String),
}

/// Applies a JSON patch; the object stays as it was when an operation fails.
///
/// # Errors
/// As the variants of [`PatchError`] say.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = patch
        .as_array()
        .ok_or_else(|| malformed(patch, "jsonpatch.Patch"))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations {
            got: operations.len(),
        });
    }
    if let Some(other) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(malformed(other, "jsonpatch.Operation"));
    }
    let mut patched = object.clone();
    let mut copied = 0;
    for operation in operations {
        operate(&mut patched, operation, &mut copied).map_err(PatchError::DoesNotApply)?;
    }
    Ok(patched)
}

fn malformed(value: &Value, wanted: &str) -> PatchError {
    let got = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    PatchError::Malformed(format!(
        "json: cannot unmarshal {got} into Go value of type {wanted}"
    ))
}

fn operate(object: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let op = operation["op"].as_str().unwrap_or("unknown");
    let text = |name: &str| {
        operation[name]
            .as_str()
            .ok_or_else(|| format!("{op} operation failed to decode {name}: missing value"))
    };
    let value = || operation["value"].clone();
    match op {
        "add" => add(object, text("path")?, value()),
        "remove" => {
            let path = text("path")?;
            let place = find(object, path)
                .ok_or_else(|| format!("remove operation does not apply: doc is missing path: \"{path}\": missing value"))?;
            place
                .remove()
                .map(drop)
                .map_err(|error| format!("error in remove for path: '{path}': {error}"))
        }
        "replace" => replace(object, text("path")?, value()),
        "move" => {
            let (from, path) = (text("from")?, text("path")?);
            let place = find(object, from).ok_or_else(|| {
                format!(
                    "move operation does not apply: doc is missing from path: {from}: missing value"
                )
            })?;
            let key = place.key.clone();
            let value = place
                .remove()
                .map_err(|error| format!("error in move for path: '{key}': {error}"))?;
            fits(path, &value)?;
            let place = find(object, path).ok_or_else(|| {
                format!("move operation does not apply: doc is missing destination path: {path}: missing value")
            })?;
            place
                .add(value)
                .map_err(|error| format!("error in move for path: '{path}': {error}"))
        }
        "copy" => {
            let (from, path) = (text("from")?, text("path")?);
            let place = find(object, from).ok_or_else(|| {
                format!(
                    "copy operation does not apply: doc is missing from path: {from}: missing value"
                )
            })?;
            let value = place
                .get()
                .map_err(|error| format!("error in copy for from: '{from}': {error}"))?;
            let value = value.cloned().unwrap_or_default();
            *copied += value.to_string().len();
            if *copied > MAX_COPIED {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                ));
            }
            fits(path, &value)?;
            let place = find(object, path).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
            })?;
            place
                .add(value)
                .map_err(|error| format!("error while adding value during copy: {error}"))
        }
        "test" => test(object, text("path")?, &value()),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// Operations one after the other could nest an object without end, and whoever walks it ends with its stack.
fn fits(path: &str, value: &Value) -> Result<(), String> {
    let above = path.split('/').skip(1).count();
    match MAX_DEPTH.checked_sub(above) {
        Some(left) if is_within(value, left) => Ok(()),
        _ => Err(format!(
            "the object would have more than {MAX_DEPTH} levels"
        )),
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    fits(path, &value)?;
    let place = find(object, path).ok_or_else(|| {
        format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
    })?;
    place
        .add(value)
        .map_err(|error| format!("error in add for path: '{path}': {error}"))
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    fits(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".into());
        }
        *object = value;
        return Ok(());
    }
    let place = find(object, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: missing value")
    })?;
    place.set(value).map_err(|_| {
        format!("replace operation does not apply: doc is missing key: {path}: missing value")
    })
}

fn test(object: &mut Value, path: &str, wanted: &Value) -> Result<(), String> {
    let failed = || Err(format!("testing value {path} failed: test failed"));
    let found = if path.is_empty() {
        object.clone()
    } else {
        let place = find(object, path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: missing value")
        })?;
        let found = place
            .get()
            .map_err(|error| format!("error in test for path: '{path}': {error}"))?;
        found.cloned().unwrap_or_default()
    };
    if found == *wanted { Ok(()) } else { failed() }
}

/// A place in an object or a list, there or not.
struct Place<'a> {
    parent: Parent<'a>,
    key: String,
}

enum Parent<'a> {
    Object(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

/// The place a pointer names; `None` when it has no parent.
fn find<'a>(object: &'a mut Value, path: &str) -> Option<Place<'a>> {
    let mut steps: Vec<String> = path.split('/').skip(1).map(unescaped).collect();
    let key = steps.pop()?;
    let mut parent = object;
    for step in steps {
        parent = match parent {
            Value::Object(fields) => fields.get_mut(&step)?,
            Value::Array(items) => {
                let at = index(&step, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    let parent = match parent {
        Value::Object(fields) => Parent::Object(fields),
        Value::Array(items) => Parent::List(items),
        _ => return None,
    };
    Some(Place { parent, key })
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// An index below `len`; a negative one counts from the end.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let number: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 {
        number.saturating_add(len)
    } else {
        number
    };
    match usize::try_from(at) {
        Ok(found) if at < len => Ok(found),
        _ => Err(format!(
            "Unable to access invalid index: {number}: invalid index referenced"
        )),
    }
}

impl Place<'_> {
    fn get(&self) -> Result<Option<&Value>, String> {
        match &self.parent {
            Parent::Object(fields) => Ok(fields.get(&self.key)),
            Parent::List(items) => index(&self.key, items.len()).map(|at| items.get(at)),
        }
    }

    fn add(self, value: Value) -> Result<(), String> {
        match self.parent {
            Parent::Object(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(items) if self.key == "-" => items.push(value),
            Parent::List(items) => {
                let at = index(&self.key, items.len() + 1).map_err(|error| {
                    if error.starts_with("strconv") {
                        format!(
                            "value was not a proper array index: '{}': {error}",
                            self.key
                        )
                    } else {
                        error
                    }
                })?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn set(self, value: Value) -> Result<(), String> {
        match self.parent {
            Parent::Object(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(items) => {
                let at = index(&self.key, items.len())?;
                items[at] = value;
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, String> {
        match self.parent {
            Parent::Object(fields) => fields.remove(&self.key).ok_or_else(|| {
                format!(
                    "Unable to remove nonexistent key: {}: missing value",
                    self.key
                )
            }),
            Parent::List(items) => index(&self.key, items.len()).map(|at| items.remove(at)),
        }
    }
}

/// Applies a merge patch: objects merge, null removes, everything else replaces.
///
/// # Errors
/// When the patch is not an object, since an object cannot be patched into something else.
pub fn merge_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let fields = patch
        .as_object()
        .ok_or_else(|| PatchError::Malformed("Invalid JSON Patch".into()))?;
    let mut patched = object.clone();
    match patched.as_object_mut() {
        Some(object) => merge_fields(object, fields),
        None => patched = without_nulls(patch),
    }
    Ok(patched)
}

fn merge_fields(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (object.get_mut(name), value) {
            (_, Value::Null) => {
                object.remove(name);
            }
            (Some(Value::Object(fields)), Value::Object(patch)) => merge_fields(fields, patch),
            // A list in the place of an object is taken as it is; everything else loses its nulls.
            (Some(place @ Value::Object(_)), value) => *place = value.clone(),
            _ => {
                object.insert(name.clone(), without_nulls(value));
            }
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
