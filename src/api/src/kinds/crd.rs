//! The CRD of each kind: what kube derives from the types, and what it cannot say (control-plane 1.1, 1.2).

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use super::{EvaluationGate, LayaModel, LayaServer, RoutingPolicy, TrainingRun};
use crate::group::{Kind, MAX_NAME, NAME_PATTERN};

/// The CRD of a kind as a tree with sorted keys.
///
/// # Panics
/// Never for types whose tests passed: each is derived there.
#[must_use]
pub fn crd(kind: Kind) -> Value {
    let derived = match kind {
        Kind::RoutingPolicy => RoutingPolicy::crd(),
        Kind::LayaModel => LayaModel::crd(),
        Kind::LayaServer => LayaServer::crd(),
        Kind::TrainingRun => TrainingRun::crd(),
        Kind::EvaluationGate => EvaluationGate::crd(),
    };
    let mut crd = serde_json::to_value(derived).expect("a derived CRD is plain data");
    for version in crd["spec"]["versions"]
        .as_array_mut()
        .expect("a derived CRD has versions")
    {
        let schema = &mut version["schema"]["openAPIV3Schema"];
        tidy(schema);
        without_defaults(&mut schema["properties"]["status"]);
        restrict_name(schema);
        if kind == Kind::RoutingPolicy {
            no_spec_needed(schema);
        }
    }
    crd
}

/// A name must fit into the names of children. As a rule at the root it would cost a fifth of what an API server allows.
fn restrict_name(schema: &mut Value) {
    schema["properties"]["metadata"] = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": MAX_NAME, "pattern": NAME_PATTERN},
        },
    });
}

/// Every field of a policy has a default, so a document needs no `spec`, as in files. The default has what the rule at
/// `spec` reads, since an API server checks a default as it stands.
fn no_spec_needed(schema: &mut Value) {
    let profile = schema["properties"]["spec"]["properties"]["profile"]["default"].clone();
    schema["properties"]["spec"]["default"] = json!({"profile": profile});
    if let Some(object) = schema.as_object_mut() {
        object.remove("required");
    }
}

/// What nobody wrote into a status is absent: a default would be a claim that no controller made.
fn without_defaults(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.remove("default");
    if let Some(children) = object.get_mut("properties").and_then(Value::as_object_mut) {
        children.values_mut().for_each(without_defaults);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = object.get_mut(key) {
            without_defaults(child);
        }
    }
}

/// Brings what schemars writes to what the page says: no explicit nulls, signed integers, no empty words.
fn tidy(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    tidy_one(schema);
    for key in ["properties", "patternProperties"] {
        if let Some(children) = schema.get_mut(key).and_then(Value::as_object_mut) {
            children.values_mut().for_each(tidy);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(key) {
            tidy(child);
        }
    }
}

fn tidy_one(schema: &mut Map<String, Value>) {
    // A field is there or it is not: with `nullable`, `has()` would be true for a null.
    schema.remove("nullable");
    schema.remove("title");
    // An unknown field is refused, or pruned, as in every other object, and not a forbidden property.
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    let format = match schema.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "uint32" | "int8" | "int16") => Some("int32"),
        Some("uint64") => Some("int64"),
        _ => None,
    };
    if let Some(format) = format {
        schema.insert("format".to_owned(), json!(format));
    }
    for bound in ["minimum", "maximum"] {
        whole(schema, bound);
    }
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        schema.insert("description".to_owned(), json!(line.replace('`', "")));
    }
}

/// Bounds pass through a float in k8s-openapi: 5.0 is written 5.
fn whole(schema: &mut Map<String, Value>, bound: &str) {
    let Some(value) = schema.get(bound).and_then(Value::as_f64) else {
        return;
    };
    // Beyond 2^53 a float names another integer; such a bound is that of the format.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        #[allow(clippy::cast_possible_truncation)]
        schema.insert(bound.to_owned(), json!(value as i64));
    } else {
        schema.remove(bound);
    }
}
