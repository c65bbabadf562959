//! `docs/examples/`: each file is read by the types, and together they show every field of every spec.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use api::document::{read_yaml, typed};
use api::group::{API_VERSION, Kind};
use api::kinds::page::spec_paths;
use api::kinds::{
    EvaluationGateSpec, LayaModelSpec, LayaServerSpec, RoutingPolicySpec, TrainingRunSpec,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Every document of every example, with its file.
fn examples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for part in std::fs::read_to_string(&path).unwrap().split("\n---\n") {
            let tree = read_yaml(part).unwrap_or_else(|error| panic!("{name}: {error}"));
            found.push((name.clone(), tree));
        }
    }
    assert!(found.len() >= 20, "{} documents", found.len());
    found
}

fn kind(name: &str, tree: &Value) -> Kind {
    assert_eq!(tree["apiVersion"], API_VERSION, "{name}");
    let word = tree["kind"].as_str().unwrap();
    Kind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .unwrap_or_else(|| panic!("{name} is of kind {word}"))
}

/// What is written is what was read: nothing is lost on the way through the type but defaults that were not written.
fn keeps<T: DeserializeOwned + Serialize>(name: &str, spec: &Value) {
    let read: T = typed(spec.clone()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let written = serde_json::to_value(&read).unwrap();
    let again: T = typed(written.clone()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert_eq!(serde_json::to_value(&again).unwrap(), written, "{name}");
    contains(name, "spec", &written, spec);
}

fn contains(name: &str, path: &str, whole: &Value, part: &Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let path = format!("{path}.{key}");
                // `disabled: false` and the like are not written again.
                match whole.get(key) {
                    Some(found) => contains(name, &path, found, value),
                    None => assert_eq!(*value, Value::Bool(false), "{name}: {path} is lost"),
                }
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{name}: {path}");
            for (at, (whole, part)) in whole.iter().zip(part).enumerate() {
                contains(name, &format!("{path}[{at}]"), whole, part);
            }
        }
        (whole, part) => assert_eq!(whole, part, "{name}: {path}"),
    }
}

#[test]
fn every_example_is_read_by_its_type_without_loss() {
    for (name, tree) in examples() {
        let spec = &tree["spec"];
        match kind(&name, &tree) {
            Kind::LayaModel => keeps::<LayaModelSpec>(&name, spec),
            Kind::LayaServer => keeps::<LayaServerSpec>(&name, spec),
            Kind::TrainingRun => keeps::<TrainingRunSpec>(&name, spec),
            Kind::EvaluationGate => keeps::<EvaluationGateSpec>(&name, spec),
            Kind::RoutingPolicy => keeps::<RoutingPolicySpec>(&name, spec),
        }
    }
}

fn paths(path: &str, tree: &Value, seen: &mut BTreeSet<String>) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                seen.insert(path.clone());
                paths(&path, value, seen);
            }
        }
        Value::Array(list) => {
            for item in list {
                paths(&format!("{path}[]"), item, seen);
            }
        }
        _ => {}
    }
}

#[test]
fn the_examples_of_a_kind_show_every_field_of_its_spec() {
    let examples = examples();
    for wanted in Kind::ALL {
        let mut seen = BTreeSet::new();
        for (name, tree) in &examples {
            if kind(name, tree) == wanted {
                paths("spec", &tree["spec"], &mut seen);
            }
        }
        let missing: Vec<_> = spec_paths(wanted)
            .into_iter()
            .filter(|path| !seen.contains(path))
            .collect();
        assert!(missing.is_empty(), "{wanted}: no example shows {missing:?}");
    }
}
