//! What holds for the CRDs of all kinds (control-plane 1.1–1.3): everything has a bound, a description and a default that
//! applies; specs are read strictly, statuses leniently.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use api::group::Kind;
use api::kinds::crd::crd;
use api::kinds::{
    ConditionStatus, EvaluationGate, LayaModel, LayaServer, ProblemSeverity, RoutingPolicy,
    TrainingRun,
};
use kube::ResourceExt;
use serde_json::{Value, json};

fn schema(kind: Kind) -> Value {
    crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Every schema below `part` (`spec` or `status`) with its path and whether its parent requires it.
fn each(kind: Kind, part: &str, look: &mut dyn FnMut(&str, &Value)) {
    fn walk(path: &str, schema: &Value, look: &mut dyn FnMut(&str, &Value)) {
        look(path, schema);
        for (name, child) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), child, look);
        }
        for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[key].is_object() {
                walk(&format!("{path}{mark}"), &schema[key], look);
            }
        }
    }
    walk(
        &format!("{kind}.{part}"),
        &schema(kind)["properties"][part],
        look,
    );
}

fn both(look: &mut dyn FnMut(&str, &Value)) {
    for kind in Kind::ALL {
        each(kind, "spec", look);
        each(kind, "status", look);
    }
}

#[test]
fn everything_has_a_type_and_a_bound() {
    both(&mut |path, schema| {
        let has = |key: &str| !schema[key].is_null();
        let bounded = match schema["type"].as_str() {
            Some("string") => has("maxLength") || has("enum") || schema["format"] == "date-time",
            Some("array") => has("maxItems") && has("items"),
            Some("object") if has("additionalProperties") => has("maxProperties"),
            Some("object" | "boolean") => true,
            // Its format bounds it above.
            Some("integer") => has("format") && (has("minimum") || path.ends_with("xitCode")),
            other => panic!("{path} has type {other:?}"),
        };
        assert!(bounded, "{path} has no bound: {schema}");
    });
}

#[test]
fn nothing_is_nullable_or_beyond_what_a_structural_schema_may_have() {
    const KEYS: [&str; 20] = [
        "type",
        "format",
        "description",
        "default",
        "enum",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "maxProperties",
        "items",
        "properties",
        "additionalProperties",
        "required",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
    ];
    both(&mut |path, schema| {
        for (key, value) in schema.as_object().unwrap() {
            assert!(KEYS.contains(&key.as_str()), "{path} has {key}");
            if key == "format" {
                let known = ["int32", "int64", "date", "date-time"];
                assert!(
                    known.iter().any(|format| value == format),
                    "{path}: {value}"
                );
            }
        }
    });
}

#[test]
fn every_field_says_what_it_is_in_one_short_line() {
    for kind in Kind::ALL {
        for part in ["spec", "status"] {
            each(kind, part, &mut |path, schema| {
                for (name, child) in schema["properties"].as_object().into_iter().flatten() {
                    let text = child["description"].as_str().unwrap_or_default();
                    assert!(
                        (4..=200).contains(&text.chars().count()),
                        "{path}.{name}: {text:?}"
                    );
                    assert!(!text.contains(['`', '\n']), "{path}.{name}: {text:?}");
                }
            });
        }
    }
}

#[test]
fn an_optional_object_has_a_default_when_its_fields_do_but_where_presence_means_something() {
    const PRESENCE: [&str; 13] = [
        "gpu",
        "canary",
        "shadow",
        "force",
        "external",
        "relax",
        "http",
        "oci",
        "volume",
        "store",
        "configMap",
        "trainingRun",
        "shipped",
    ];
    for kind in Kind::ALL {
        each(kind, "spec", &mut |path, schema| {
            for (name, child) in schema["properties"].as_object().into_iter().flatten() {
                let required = schema["required"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(|item| item == name));
                let children = child["properties"].as_object();
                let inner = children
                    .is_some_and(|fields| fields.values().any(|field| !field["default"].is_null()));
                if required || !inner {
                    continue;
                }
                let meant = PRESENCE.contains(&name.as_str());
                assert_eq!(child["default"].is_null(), meant, "{path}.{name}");
                // Spelled out: what the fields say is what the object says.
                for (key, value) in child["default"].as_object().into_iter().flatten() {
                    assert_eq!(
                        child["properties"][key]["default"], *value,
                        "{path}.{name}.{key}"
                    );
                }
            }
        });
    }
}

#[test]
fn no_status_field_is_required_but_keys_of_lists_and_the_shape_of_a_condition() {
    for kind in Kind::ALL {
        let mut keys = Vec::new();
        each(kind, "status", &mut |path, schema| {
            for key in schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
            {
                keys.push((format!("{path}[]"), key.clone()));
            }
            assert!(schema["default"].is_null(), "{path} has a default");
        });
        each(kind, "status", &mut |path, schema| {
            if path.ends_with(".conditions[]") {
                return;
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                let is_key = keys.contains(&(path.to_owned(), name.clone()));
                assert!(is_key, "{path}.{name} is required");
            }
        });
    }
}

#[test]
fn rules_have_a_message_and_use_what_both_evaluators_know() {
    both(&mut |path, schema| {
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = rule["rule"].as_str().unwrap();
            let message = rule["message"].as_str().unwrap_or_default();
            assert!(
                (5..=200).contains(&message.len()),
                "{path}: {text}: {message:?}"
            );
            assert!(
                !text.contains(".?") && !text.contains("[?"),
                "{path}: optional syntax in {text}"
            );
            assert!(rule["optionalOldSelf"].is_null(), "{path}: {text}");
            if let Some(field) = rule["fieldPath"].as_str() {
                let name = field.strip_prefix('.').unwrap();
                assert!(
                    schema["properties"][name].is_object(),
                    "{path} has no {field}"
                );
            }
        }
        for name in schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            assert!(
                !name.contains('_'),
                "{path}.{name}: underscores are escaped in two ways"
            );
        }
    });
}

#[test]
fn columns_read_fields_that_there_are() {
    for kind in Kind::ALL {
        let crd = crd(kind);
        let schema = schema(kind);
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]
            .as_array()
            .unwrap()
        {
            let path = column["jsonPath"].as_str().unwrap();
            if path == ".metadata.creationTimestamp" {
                continue;
            }
            let mut at = &schema;
            for step in path.split('.').filter(|step| !step.is_empty()) {
                // Filters have dots and quotes of their own.
                let name = step.split('[').next().unwrap();
                if name.is_empty() || name.starts_with(['r', 't']) && step.contains("==") {
                    continue;
                }
                at = &at["properties"][name];
                assert!(at.is_object(), "{kind}: {path}: no {name}");
                if step.contains('[') {
                    at = &at["items"];
                }
            }
        }
    }
}

fn object(kind: Kind, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": api::group::API_VERSION, "kind": kind.as_str(),
        "metadata": {"name": "odin", "namespace": "asgard"}, "spec": spec, "status": status,
    })
}

#[test]
fn a_status_of_a_newer_program_is_read() {
    let status = json!({
        "acceptedRevision": "0123456789", "novelty": {"a": 1},
        "conditions": [{
            "type": "Accepted", "status": "Perhaps", "reason": "Novel", "message": "",
            "lastTransitionTime": "2026-11-30T00:00:00Z",
        }],
        "problems": [{"severity": "Hint", "path": "spec", "message": "m", "code": 7}],
    });
    let policy: RoutingPolicy =
        serde_json::from_value(object(Kind::RoutingPolicy, &json!({}), &status)).unwrap();
    assert_eq!(policy.name_any(), "odin");
    let status = policy.status.unwrap();
    assert_eq!(status.conditions[0].status, ConditionStatus::Unknown);
    assert_eq!(status.problems[0].severity, ProblemSeverity::Unknown);

    let status = json!({"phase": "Dreaming", "fetch": {"attempt": 2, "speed": 3}, "usedBy": [{"role": "Spare"}]});
    let spec = json!({"source": {"trainingRun": {"name": "thor", "uid": "u-1"}}});
    let model: LayaModel = serde_json::from_value(object(Kind::LayaModel, &spec, &status)).unwrap();
    assert_eq!(model.status.unwrap().fetch.unwrap().attempt, Some(2));
}

#[test]
fn a_spec_with_an_unknown_field_or_word_is_not_read() {
    for spec in [
        json!({"modelRef": {"name": "freya"}, "colour": "red"}),
        json!({"modelRef": {"name": "freya"}, "device": "Gpu"}),
        json!({"modelRef": {"name": "freya"}, "rollout": {"strategy": "BlueGreen", "speed": 1}}),
        json!({}),
    ] {
        let read =
            serde_json::from_value::<LayaServer>(object(Kind::LayaServer, &spec, &Value::Null));
        assert!(read.is_err(), "{spec}");
    }
}

#[test]
fn a_plain_spec_has_the_defaults_of_the_page() {
    let read = |spec: Value| serde_json::from_value(object(Kind::LayaServer, &spec, &Value::Null));
    let server: LayaServer = read(json!({"modelRef": {"name": "freya"}})).unwrap();
    let spec = serde_json::to_value(server.spec).unwrap();
    assert_eq!(
        spec,
        json!({
            "modelRef": {"name": "freya"}, "promotions": "Accept", "replicas": 1, "device": "Auto",
            "devicePolicy": "Require", "deviceCheck": {"maxP50Millis": 120}, "serverApi": "Relay",
            "serving": {"maxConcurrent": 16, "threads": 0, "batchWindowMicros": 0, "precision": "F32"},
            "probe": {"intervalSeconds": 60, "timeoutMillis": 5000},
            "rollout": {
                "strategy": "BlueGreen", "onInconclusive": "Pause", "approval": "Automatic", "retry": 0,
                "paused": false, "whenNoRoom": "Auto", "autoRollback": true,
                "progressDeadlineSeconds": 900, "minReadySeconds": 10, "drainSeconds": 30,
                "rollbackWindowSeconds": 600,
            },
            "suspend": false,
        })
    );
    let run: TrainingRun = serde_json::from_value(object(
        Kind::TrainingRun,
        &json!({"baseRef": {"name": "freya"}, "dataset": {"store": {}}}),
        &Value::Null,
    ))
    .unwrap();
    assert_eq!(
        serde_json::to_value(run.spec).unwrap(),
        json!({
            "baseRef": {"name": "freya"}, "dataset": {"store": {"name": "learned"}, "minRows": 50},
            "recipe": {
                "name": "standard", "epochs": 3, "seed": 7, "microBatch": 2, "gradAccumulation": 8,
                "lowMemory": "Auto",
            },
            "device": "Auto", "devicePolicy": "Require", "promote": {"mode": "Never", "approved": false},
            "deadlineSeconds": 14400, "noProgressSeconds": 1200, "maxRestarts": 3,
            "ttlSecondsAfterFinished": 604_800, "suspend": false, "cancel": false,
        })
    );
    let model: LayaModel = serde_json::from_value(object(
        Kind::LayaModel,
        &json!({"source": {"volume": {"name": "vali", "path": "vidar"}}}),
        &Value::Null,
    ))
    .unwrap();
    assert_eq!(
        serde_json::to_value(model.spec).unwrap(),
        json!({
            "source": {"volume": {"name": "vali", "path": "vidar"}},
            "storage": {"accessMode": "ReadWriteOnce", "onDelete": "Delete"},
            "fetch": {"deadlineSeconds": 3600, "maxAttempts": 5, "minBytesPerSecond": 1024},
            "suspend": false,
        })
    );
    let gate: EvaluationGate = serde_json::from_value(object(
        Kind::EvaluationGate,
        &json!({
            "heldOut": [{"name": "loki", "shipped": {}}],
            "checks": [{"name": "hel", "metric": "Accuracy", "floor": "0.5", "relax": {"against": "Anchor"}}],
        }),
        &Value::Null,
    ))
    .unwrap();
    assert_eq!(
        serde_json::to_value(gate.spec).unwrap(),
        json!({
            "heldOut": [{"name": "loki", "shipped": {}}],
            "checks": [{
                "name": "hel", "metric": "Accuracy", "floor": "0.5",
                "relax": {"against": "Anchor", "margin": "0"}, "maxRegressionPercent": 0,
                "against": "Both", "minSamples": 100, "onFewSamples": "Inconclusive", "required": true,
            }],
            "confidence": "0.95", "device": "Auto", "precision": "F32", "deadlineSeconds": 3600,
        })
    );
}
