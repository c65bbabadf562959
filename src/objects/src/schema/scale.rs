//! What the API server demands of the fields behind `/scale` (`customresource/validator.go`), apart from their schema.

use serde_json::{Value, json};

use super::cause::{Cause, CauseReason};
use super::definition::Scale;
use super::go_text;

/// Checks `specReplicasPath`.
pub(super) fn check_spec(scale: &Scale, object: &Value, causes: &mut Vec<Cause>) {
    check_count(&scale.spec_replicas, object, causes);
}

/// Checks `statusReplicasPath` and `labelSelectorPath`.
pub(super) fn check_status(scale: &Scale, object: &Value, causes: &mut Vec<Cause>) {
    check_count(&scale.status_replicas, object, causes);
    if let Some(path) = &scale.selector
        && let Err(problem) = nested(path, object, "string", Value::is_string)
    {
        causes.push(Cause::with_value(CauseReason::Invalid, path.clone(), &json!(""), &problem));
    }
}

fn check_count(path: &str, object: &Value, causes: &mut Vec<Cause>) {
    let count = match nested(path, object, "int64", Value::is_i64) {
        Ok(found) => found.and_then(Value::as_i64).unwrap_or(0),
        Err(problem) => {
            causes.push(Cause::with_value(CauseReason::Invalid, path.to_owned(), &json!(0), &problem));
            return;
        }
    };
    let problem = if count < 0 {
        "should be a non-negative integer".to_owned()
    } else if count > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return;
    };
    causes.push(Cause::with_value(CauseReason::Invalid, path.to_owned(), &json!(count), &problem));
}

/// `unstructured.NestedInt64` and its like: nothing, the value, or what is in the way.
fn nested<'a>(
    path: &str,
    object: &'a Value,
    wanted: &str,
    fits: fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let fields: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let refused = |depth: usize, found: &Value, wanted: &str| {
        format!(
            ".{} accessor error: {} is of the type {}, expected {wanted}",
            fields[..depth].join("."),
            go_text::plain(found),
            go_text::type_name(found)
        )
    };
    let mut value = object;
    for (depth, field) in fields.iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(*field) {
                Some(found) => value = found,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(refused(depth + 1, other, "map[string]interface{}")),
        }
    }
    if fits(value) { Ok(Some(value)) } else { Err(refused(fields.len(), value, wanted)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_and_selector_are_looked_at_apart_from_the_schema() {
        let scale = Scale {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: Some(".status.selector".to_owned()),
        };
        let mut causes = Vec::new();
        for object in [json!({}), json!({"spec": {}, "status": null}), json!({"spec": {"replicas": 3}})] {
            check_spec(&scale, &object, &mut causes);
            check_status(&scale, &object, &mut causes);
            assert_eq!(causes, [], "{object}");
        }
        for (object, message) in [
            (json!({"spec": {"replicas": -1}}), "Invalid value: -1: should be a non-negative integer"),
            (
                json!({"spec": {"replicas": 2_147_483_648_u64}}),
                "Invalid value: 2147483648: should be less than or equal to 2147483647",
            ),
            (
                json!({"spec": {"replicas": "3"}}),
                "Invalid value: 0: .spec.replicas accessor error: 3 is of the type string, expected int64",
            ),
            (
                json!({"spec": [1]}),
                "Invalid value: 0: .spec.replicas accessor error: [1] is of the type []interface {}, \
                 expected map[string]interface{}",
            ),
        ] {
            causes.clear();
            check_spec(&scale, &object, &mut causes);
            let [cause] = &causes[..] else { panic!("{object}: {causes:?}") };
            assert_eq!((cause.field.as_str(), cause.message.as_str()), (".spec.replicas", message));
        }
    }
}
