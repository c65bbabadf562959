//! Every bound, pattern, enum, type and required field of every kind, broken once on both servers.

use std::collections::BTreeSet;

use api::document::read_yaml;
use serde_json::{Value, json};

use crate::cluster::real;
use crate::compare::{accepted, compare, judge};
use crate::corpus::Kind;
use crate::local::Local;
use crate::mutate::{Mutants, mutants, places};
use crate::parity::{folder, own_namespace};
use crate::redact::Redaction;
use crate::target::{Ask, Target};

/// Name of the objects.
const NAME: &str = "complete";

/// Objects that together have every field of a kind.
fn complete(kind: &str) -> Vec<Value> {
    let path = folder().join(format!("complete/{}.yaml", kind.to_lowercase()));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let Value::Array(objects) = read_yaml(&text).unwrap() else {
        panic!("{}: no list", path.display())
    };
    let object = |base: &Value| Kind::named(kind).object(NAME, base);
    objects.iter().map(object).collect()
}

fn schema(text: &str) -> Value {
    let crd = read_yaml(text).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// A complete object of each kind with its mutants below a field.
fn all(field: &str) -> Vec<(Kind, Value, Mutants)> {
    let mut found = Vec::new();
    for (kind, text) in api::crds::DOCUMENTS {
        let schema = schema(text);
        for object in complete(kind) {
            if object.get(field).is_some() {
                let mutants = mutants(&schema, &object, field);
                found.push((Kind::named(kind), object, mutants));
            }
        }
    }
    found
}

#[test]
fn complete_objects_have_every_field_of_their_kind() {
    let mut missing = Vec::new();
    for (kind, text) in api::crds::DOCUMENTS {
        let mut unseen = BTreeSet::new();
        for field in ["spec", "status"] {
            places(&schema(text)["properties"][field], field, &mut unseen);
            for (_, _, mutants) in all(field).iter().filter(|(of, ..)| of.kind == kind) {
                unseen.retain(|place| !mutants.reached.contains(place));
            }
        }
        missing.extend(unseen.into_iter().map(|place| format!("{kind} {place}")));
    }
    assert!(missing.is_empty(), "no complete object has: {missing:#?}");
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn complete_objects_are_accepted_by_the_real_server() {
    let real = real();
    let namespace = own_namespace(&[&real], "complete");
    for (kind, object, _) in all("spec") {
        create(&real, kind, &namespace, &object);
        let told = real.ask(&status(kind, &namespace, &object));
        assert_eq!(told.code, 200, "{} {}", kind.kind, told.body);
        remove(&real, kind, &namespace);
    }
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn every_bound_of_a_spec_is_the_same_on_both() {
    let (real, local) = (real(), Local::start());
    let namespace = own_namespace(&[&real, &local], "spec");
    let mut differences = Vec::new();
    for (kind, _, mutants) in all("spec") {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", kind.path(&namespace));
        for mutant in mutants.all {
            let ask = Ask::json("POST", &path, &mutant.object);
            let name = format!("{} {}", kind.kind, mutant.name);
            differences.extend(both(&name, &namespace, &ask, &real, &local));
        }
    }
    judge(&differences, &accepted(&folder().join("differences/bounds.yaml")));
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn every_bound_of_a_status_is_the_same_on_both() {
    let (real, local) = (real(), Local::start());
    let namespace = own_namespace(&[&real, &local], "status");
    let mut differences = Vec::new();
    for (kind, object, mutants) in all("status") {
        for target in [&real as &dyn Target, &local] {
            create(target, kind, &namespace, &object);
        }
        for mutant in mutants.all {
            let ask = status(kind, &namespace, &mutant.object);
            let name = format!("{} {}", kind.kind, mutant.name);
            differences.extend(both(&name, &namespace, &ask, &real, &local));
        }
        for target in [&real as &dyn Target, &local] {
            remove(target, kind, &namespace);
        }
    }
    judge(&differences, &accepted(&folder().join("differences/bounds.yaml")));
}

fn both(
    name: &str,
    namespace: &str,
    ask: &Ask,
    real: &dyn Target,
    local: &dyn Target,
) -> Vec<crate::compare::Difference> {
    let redaction = Redaction {
        namespace,
        generated: None,
    };
    let [real, local] = [real, local].map(|target| {
        let told = target.ask(ask);
        json!({"code": told.code, "answer": redaction.redact(&told.body)})
    });
    compare(name, &real, &local)
}

/// A dry write of the object's status.
fn status(kind: Kind, namespace: &str, object: &Value) -> Ask {
    let query = "dryRun=All&fieldValidation=Strict";
    let path = format!("{}/{NAME}/status?{query}", kind.path(namespace));
    Ask::json("PUT", path, object)
}

fn create(target: &dyn Target, kind: Kind, namespace: &str, object: &Value) {
    let path = format!("{}?fieldValidation=Strict", kind.path(namespace));
    let told = target.ask(&Ask::json("POST", path, object));
    assert_eq!(told.code, 201, "{} {}: {}", target.name(), kind.kind, told.body);
}

fn remove(target: &dyn Target, kind: Kind, namespace: &str) {
    let path = format!("{}/{NAME}", kind.path(namespace));
    let delete = Ask {
        method: "DELETE",
        ..Ask::get(path)
    };
    let told = target.ask(&delete);
    assert_eq!(told.code, 200, "{} {}: {}", target.name(), kind.kind, told.body);
}
