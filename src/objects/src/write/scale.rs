//! `/scale`: the number of replicas as an `autoscaling/v1` Scale.

use serde_json::{Value, json};

use super::{Call, Patch, metadata, replace};
use crate::failure::{About, Failure};
use crate::schema::{Cause, CauseReason, Scale};

/// What a Scale is called in refusals.
const fn about(name: &str) -> About<'_> {
    About {
        group: "autoscaling",
        kind: "Scale",
        name,
    }
}

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
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": kept["metadata"],
        "spec": {"replicas": replicas(&scale.spec_replicas)},
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
    if sent["kind"] != "Scale" || sent["apiVersion"] != "autoscaling/v1" {
        return Err(Failure::bad_request(
            "wrong object passed to Scale update: expected autoscaling/v1, Kind=Scale",
        ));
    }
    if let Some(said) = metadata::mistyped(sent) {
        return Err(Failure::bad_request(said));
    }
    super::named(call, sent)?;
    let replicas = match &sent["spec"]["replicas"] {
        Value::Null => 0,
        number => number
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| {
                Failure::bad_request(
                    "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal the value of \
                     spec.replicas into Go struct field ScaleSpec.spec.replicas of type int32",
                )
            })?,
    };
    if replicas < 0 {
        let cause = Cause::with_value(
            CauseReason::Invalid,
            "spec.replicas".to_owned(),
            &replicas.into(),
            "must be greater than or equal to 0",
        );
        return Err(Failure::invalid(about(call.name), &[cause]));
    }
    let mut new = current.clone();
    put(&mut new, &scale.spec_replicas, replicas.into());
    for field in ["resourceVersion", "uid"] {
        if !metadata::text(sent, field).is_empty() {
            metadata::carry(sent, &mut new, field);
        }
    }
    replace(call, Some(current), new)
}

/// The object to store for a patch of its Scale.
pub(crate) fn patch(
    call: &Call<'_>,
    scale: &Scale,
    current: Option<&Value>,
    patch: &Patch,
) -> Result<Value, Failure> {
    let shown = of(scale, current.ok_or_else(|| call.not_found())?);
    update(call, scale, current, &patch.on(&shown)?)
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
