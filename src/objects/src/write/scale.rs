//! `/scale`: the number of replicas as an `autoscaling/v1` Scale.

use serde_json::{Map, Value, json};

use super::metadata::cannot_unmarshal_field;
use super::replace::{finish, record, same_object};
use super::{Call, Patch, Unreadable, metadata, named, strict_message, unpatchable};
use crate::failure::Failure;
use crate::schema::{Scale, unknown_metadata};

const KIND: &str = "Scale";
const API_VERSION: &str = "autoscaling/v1";
const WRONG: &str = "expected autoscaling/v1, Kind=Scale";

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .filter(|part| !part.is_empty())
        .try_fold(object, |value, part| value.get(part))
}

/// The Scale of an object.
pub(crate) fn of(scale: &Scale, object: &Value) -> Value {
    let replicas = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut kept = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        metadata::carry(object, &mut kept, field);
    }
    let mut status = json!({"replicas": replicas(&scale.status_replicas)});
    let selector = scale.selector.as_deref().and_then(|path| at(object, path));
    if let Some(selector) = selector.and_then(Value::as_str) {
        status["selector"] = selector.into();
    }
    // Go leaves a zero out.
    let spec = match replicas(&scale.spec_replicas) {
        0 => json!({}),
        wanted => json!({"replicas": wanted}),
    };
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": kept["metadata"],
        "spec": spec,
        "status": status,
    })
}

/// The object to store for a Scale that was sent.
pub(crate) fn update(
    call: &Call<'_>,
    scale: &Scale,
    current: Option<&Value>,
    sent: &Value,
) -> Result<Value, Failure> {
    let current = current.ok_or_else(|| call.not_found())?;
    // As with every kind of Kubernetes, the path says what it is where the body does not.
    let mut sent = sent.clone();
    for (field, value) in [("kind", KIND), ("apiVersion", API_VERSION)] {
        if sent.is_object() && metadata::of_type(&sent, field).is_empty() {
            sent[field] = value.into();
        }
    }
    let sent = &sent;
    let replicas = read(sent).map_err(|why| {
        let said = match why {
            Unreadable::NoObject(said) | Unreadable::Unfit(said) => said,
            Unreadable::NoKind => WRONG.to_owned(),
        };
        Failure::bad_request(format!(
            "{KIND} in version \"v1\" cannot be handled as a {KIND}: {said}"
        ))
    })?;
    same_object(call, current, sent)?;
    set(call, scale, current, sent, replicas)
}

/// The object to store for a patch of its Scale.
pub(crate) fn patch(
    call: &Call<'_>,
    scale: &Scale,
    current: Option<&Value>,
    patch: &Patch,
) -> Result<Value, Failure> {
    let current = current.ok_or_else(|| call.not_found())?;
    let patched = patch.on(&of(scale, current))?;
    let replicas = read(&patched).map_err(|why| unpatchable(&patched, why))?;
    set(call, scale, current, &patched, replicas)
}

/// The number that a Scale says, if it is one.
fn read(sent: &Value) -> Result<i32, Unreadable> {
    if !sent.is_object() {
        let said =
            "json: cannot unmarshal a value that is no object into Go value of type v1.Scale";
        return Err(Unreadable::NoObject(said.to_owned()));
    }
    if metadata::of_type(sent, "kind").is_empty() {
        return Err(Unreadable::NoKind);
    }
    if sent["kind"] != KIND || sent["apiVersion"] != API_VERSION {
        return Err(Unreadable::Unfit(WRONG.to_owned()));
    }
    if let Some(said) = metadata::mistyped(sent) {
        return Err(Unreadable::Unfit(said));
    }
    let (spec, status) = (&sent["spec"], &sent["status"]);
    for (part, path, wanted) in [
        (spec, "spec", "v1.ScaleSpec"),
        (status, "status", "v1.ScaleStatus"),
    ] {
        if !part.is_object() && !part.is_null() {
            let said = cannot_unmarshal_field(part, KIND, path, wanted);
            return Err(Unreadable::Unfit(said));
        }
    }
    let number = &spec["replicas"];
    let replicas = match number {
        Value::Null => Some(0),
        number => number
            .as_i64()
            .and_then(|number| i32::try_from(number).ok()),
    };
    let replicas = replicas.ok_or_else(|| {
        let said = cannot_unmarshal_field(number, "ScaleSpec", "spec.replicas", "int32");
        Unreadable::Unfit(said)
    })?;
    let mut unknown = unknown_metadata(sent);
    for (part, above, known) in [
        (
            sent,
            "",
            &["apiVersion", "kind", "metadata", "spec", "status"][..],
        ),
        (spec, "spec.", &["replicas"]),
        (status, "status.", &["replicas", "selector"]),
    ] {
        let keys = part.as_object().into_iter().flat_map(Map::keys);
        let strange = keys.filter(|key| !known.contains(&key.as_str()));
        unknown.extend(strange.map(|key| format!("{above}{key}")));
    }
    match unknown.as_slice() {
        [] => Ok(replicas),
        unknown => Err(Unreadable::Unfit(strict_message(unknown))),
    }
}

fn set(
    call: &Call<'_>,
    scale: &Scale,
    current: &Value,
    sent: &Value,
    replicas: i32,
) -> Result<Value, Failure> {
    named(call, sent)?;
    let mut new = current.clone();
    if !metadata::text(sent, "resourceVersion").is_empty() {
        metadata::carry(sent, &mut new, "resourceVersion");
    }
    // A Scale of zero looks like one without a number, so that nobody owns the field after it.
    let was_zero = at(current, &scale.spec_replicas).is_none_or(|number| *number == 0);
    if replicas != 0 || was_zero {
        put(&mut new, &scale.spec_replicas, replicas.into());
    } else {
        take(&mut new, &scale.spec_replicas);
    }
    record(call, current, &mut new)?;
    put(&mut new, &scale.spec_replicas, replicas.into());
    finish(call, current, new)
}

fn take(object: &mut Value, path: &str) {
    if let Some((above, last)) = path.rsplit_once('.') {
        let parts = above.split('.').filter(|part| !part.is_empty());
        let place = parts.fold(object, |place, part| &mut place[part]);
        if let Value::Object(fields) = place {
            fields.remove(last);
        }
    }
}

fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}
