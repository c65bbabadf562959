//! Every bound, pattern, enum, type and required field of every kind, broken once on both servers.

use std::collections::BTreeSet;

use api::document::read_yaml;
use serde_json::{Value, json};

use crate::cluster::real;
use crate::compare::{Difference, accepted, compare, judge};
use crate::corpus::Kind;
use crate::crds;
use crate::local::Local;
use crate::mutate::{Mutants, mutants, places};
use crate::parity::{folder, own_namespace};
use crate::redact::Redaction;
use crate::target::{Ask, Target};

/// Name of the objects.
const NAME: &str = "complete";

/// Objects that together have every field of a kind.
fn complete(kind: Kind) -> Vec<Value> {
    let path = folder().join(format!("complete/{}.yaml", kind.kind.to_lowercase()));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let Value::Array(objects) = read_yaml(&text).unwrap() else {
        panic!("{}: no list", path.display())
    };
    let object = |base: &Value| kind.object(NAME, base);
    objects.iter().map(object).collect()
}

/// A complete object of each kind with its mutants below a field.
pub(crate) fn all(field: &str) -> Vec<(Kind, Value, Mutants)> {
    let mut found = Vec::new();
    for (kind, crd) in crds::all() {
        for object in complete(kind) {
            if object.get(field).is_some() {
                let mutants = mutants(crds::schema(&crd), &object, field);
                found.push((kind, object, mutants));
            }
        }
    }
    found
}

#[test]
fn complete_objects_have_every_field_of_their_kind() {
    let mut missing = Vec::new();
    for field in ["spec", "status"] {
        let complete = all(field);
        for (kind, crd) in crds::all() {
            let mut unseen = BTreeSet::new();
            places(&crds::schema(&crd)["properties"][field], field, &mut unseen);
            for (_, _, mutants) in complete.iter().filter(|(of, ..)| *of == kind) {
                unseen.retain(|place| !mutants.reached.contains(place));
            }
            missing.extend(
                unseen
                    .into_iter()
                    .map(|place| format!("{} {place}", kind.kind)),
            );
        }
    }
    assert!(missing.is_empty(), "no complete object has: {missing:#?}");
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn complete_objects_are_accepted_by_the_real_server() {
    let real = real();
    let namespace = own_namespace(&[&real], "complete");
    for (kind, object, _) in all("spec") {
        let version = create(&real, kind, &namespace, &object);
        let told = real.ask(&status(kind, &namespace, &object, &version));
        assert_eq!(told.code, 200, "{} {}", kind.kind, told.body);
        remove(&real, kind, &namespace);
    }
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn every_bound_of_a_spec_is_the_same_on_both() {
    let (real, local) = (real(), Local::start());
    let targets: [&dyn Target; 2] = [&real, &local];
    let namespace = own_namespace(&targets, "spec");
    let mut differences = Vec::new();
    for (kind, _, mutants) in all("spec") {
        let path = format!(
            "{}?dryRun=All&fieldValidation=Strict",
            kind.path(&namespace)
        );
        for mutant in mutants.all {
            let ask = Ask::json("POST", &path, &mutant.object);
            let name = format!("{} {}", kind.kind, mutant.name);
            differences.extend(both(&name, &namespace, targets, &[ask.clone(), ask]));
        }
    }
    judge(
        &differences,
        &accepted(&folder().join("differences/spec.yaml")),
    );
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn every_bound_of_a_status_is_the_same_on_both() {
    let (real, local) = (real(), Local::start());
    let targets: [&dyn Target; 2] = [&real, &local];
    let namespace = own_namespace(&targets, "status");
    let mut differences = Vec::new();
    for (kind, object, mutants) in all("status") {
        let versions = targets.map(|target| create(target, kind, &namespace, &object));
        for mutant in mutants.all {
            let ask = |version: &String| status(kind, &namespace, &mutant.object, version);
            let asks = [ask(&versions[0]), ask(&versions[1])];
            let name = format!("{} {}", kind.kind, mutant.name);
            differences.extend(both(&name, &namespace, targets, &asks));
        }
        targets
            .iter()
            .for_each(|target| remove(*target, kind, &namespace));
    }
    judge(
        &differences,
        &accepted(&folder().join("differences/status.yaml")),
    );
}

/// Asks both and tells what differs.
fn both(
    name: &str,
    namespace: &str,
    targets: [&dyn Target; 2],
    asks: &[Ask; 2],
) -> Vec<Difference> {
    let redaction = Redaction {
        namespace,
        prefix: None,
    };
    let told = |index: usize| {
        let told = targets[index].ask(&asks[index]);
        json!({"code": told.code, "answer": redaction.redact(&told.body)})
    };
    compare(name, &told(0), &told(1))
}

/// A dry write of the object's status.
fn status(kind: Kind, namespace: &str, object: &Value, version: &str) -> Ask {
    let query = "dryRun=All&fieldValidation=Strict";
    let path = format!("{}/{NAME}/status?{query}", kind.path(namespace));
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = version.into();
    Ask::json("PUT", path, &object)
}

/// Makes an object and gives its version.
fn create(target: &dyn Target, kind: Kind, namespace: &str, object: &Value) -> String {
    let path = format!("{}?fieldValidation=Strict", kind.path(namespace));
    let told = target.ask(&Ask::json("POST", path, object));
    assert_eq!(
        told.code,
        201,
        "{} {}: {}",
        target.name(),
        kind.kind,
        told.body
    );
    let version = &told.body["metadata"]["resourceVersion"];
    version.as_str().unwrap().to_owned()
}

fn remove(target: &dyn Target, kind: Kind, namespace: &str) {
    let path = format!("{}/{NAME}", kind.path(namespace));
    let delete = Ask {
        method: "DELETE",
        ..Ask::get(path)
    };
    let told = target.ask(&delete);
    assert_eq!(
        told.code,
        200,
        "{} {}: {}",
        target.name(),
        kind.kind,
        told.body
    );
}
