//! What kube-apiserver 1.35.4 answered to a corpus of objects (recorded under `golden/schema`, see the README there),
//! against what `objects::schema` says: verdict, fields, reasons, texts, unknown fields, and the object that would be
//! stored.

use std::fs;
use std::path::{Path, PathBuf};

use objects::schema::{Cause, Definition};
use serde_json::{Map, Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema")
}

fn read(name: &str) -> Value {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A case with its objects: those of our kinds are bases with parts set and removed.
fn whole(case: &Value, bases: &Value) -> Value {
    let Some(base) = case.get("base").and_then(Value::as_str) else { return case.clone() };
    let mut object = bases[base].clone();
    for (pointer, value) in case.get("set").and_then(Value::as_object).into_iter().flatten() {
        let (parent, key) = parent_of(&mut object, pointer);
        match parent {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[key] = value.clone(),
        }
    }
    for pointer in case.get("remove").and_then(Value::as_array).into_iter().flatten() {
        let (parent, key) = parent_of(&mut object, pointer.as_str().unwrap());
        assert!(parent.as_object_mut().unwrap().remove(&key).is_some(), "{case}");
    }
    let mut whole = case.clone();
    whole["object"] = object;
    if let Some(old) = case.get("old").and_then(Value::as_str) {
        whole["old"] = bases[old].clone();
    }
    whole
}

fn parent_of<'a>(object: &'a mut Value, pointer: &str) -> (&'a mut Value, String) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    (object.pointer_mut(parent).unwrap(), key.replace("~1", "/").replace("~0", "~"))
}

/// What we answer, in the form of the record.
fn answer(definition: &Definition, case: &Value) -> Value {
    let mut new = case["object"].clone();
    let unknown = definition.unknown_fields(&new);
    if !unknown.is_empty() {
        let list: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        return json!({"status": 400, "message": format!("strict decoding error: {}", list.join(", "))});
    }
    definition.default(&mut new);
    let old = case.get("old").map(|old| {
        let mut old = old.clone();
        definition.default(&mut old);
        old
    });
    let causes = match (&old, case.get("subresource")) {
        (None, _) => {
            new.as_object_mut().unwrap().remove("status");
            definition.validate(&new, None)
        }
        (Some(old), None) => {
            replace(&mut new, "status", old.get("status"));
            definition.validate(&new, Some(old))
        }
        (Some(old), Some(_)) => {
            let mut whole = old.clone();
            replace(&mut whole, "status", new.get("status"));
            new = whole;
            definition.validate_status(Vec::new(), &new, old)
        }
    };
    if causes.is_empty() {
        return json!({"status": if old.is_some() { 200 } else { 201 }, "object": plain_numbers(&new)});
    }
    json!({"status": 422, "causes": sorted(causes)})
}

fn replace(object: &mut Value, field: &str, value: Option<&Value>) {
    let map = object.as_object_mut().unwrap();
    match value {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// The server goes through maps in no order, so the record is sorted.
fn sorted(causes: Vec<Cause>) -> Vec<[String; 3]> {
    let mut causes: Vec<[String; 3]> =
        causes.into_iter().map(|cause| [cause.field, cause.reason.as_str().to_owned(), cause.message]).collect();
    causes.sort();
    causes
}

/// 1.0 and 1 are one number in JSON that went through Go.
fn plain_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => json!(float as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain_numbers).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), plain_numbers(value))).collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}

/// What of a recorded answer is compared.
fn expected(recorded: &Value) -> Value {
    match recorded["status"].as_u64() {
        Some(400) => {
            let message = recorded["message"].as_str().unwrap();
            let at = message.find("strict decoding error").unwrap_or(0);
            json!({"status": 400, "message": &message[at..]})
        }
        Some(422) => json!({"status": 422, "causes": recorded["causes"]}),
        _ => match recorded.get("object") {
            Some(object) => json!({"status": recorded["status"], "object": plain_numbers(object)}),
            None => json!({"status": recorded["status"]}),
        },
    }
}

fn compare(name: &str, at_least: usize) {
    let definition = Definition::compile(&read(&format!("{name}.crd.json"))).unwrap();
    let cases = read(&format!("{name}.cases.json"));
    let answers = read(&format!("{name}.answers.json"));
    let bases = folder().join(format!("{name}.bases.json"));
    let bases = if bases.exists() { read(&format!("{name}.bases.json")) } else { Value::Null };
    let (cases, answers) = (cases.as_array().unwrap(), answers.as_array().unwrap());
    assert_eq!(cases.len(), answers.len(), "cases without a recorded answer: run record.py");
    assert!(cases.len() >= at_least, "{} cases of {name}", cases.len());
    let mut different = Vec::new();
    for (case, recorded) in cases.iter().zip(answers) {
        assert_eq!(case["name"], recorded["name"], "answers are not those of the cases: run record.py");
        let (mut ours, theirs) = (answer(&definition, &whole(case, &bases)), expected(recorded));
        if theirs.get("object").is_none() {
            // most stored objects are not in the record
            ours.as_object_mut().unwrap().remove("object");
        }
        if ours != theirs {
            different.push(format!("{}\n    ours {ours}\n  theirs {theirs}", case["name"]));
        }
    }
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), cases.len(), different.join("\n"));
}

fn without_descriptions(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| *key != "description" || !value.is_string());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_descriptions(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        _ => value.clone(),
    }
}

#[test]
fn the_record_was_made_over_the_crds_of_today() {
    for (kind, text) in api::crds::DOCUMENTS {
        let crd = api::document::read_yaml(text).unwrap();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
        let recorded = read(&format!("{plural}.crd.json"));
        assert!(without_descriptions(&crd) == recorded, "{kind}: crds/{plural}.yaml has changed: run record.py");
    }
}

#[test]
fn layamodels_are_answered_as_by_the_api_server() {
    compare("layamodels", 300);
}

#[test]
fn layaservers_are_answered_as_by_the_api_server() {
    compare("layaservers", 600);
}

#[test]
fn trainingruns_are_answered_as_by_the_api_server() {
    compare("trainingruns", 500);
}

#[test]
fn evaluationgates_are_answered_as_by_the_api_server() {
    compare("evaluationgates", 250);
}

#[test]
fn routingpolicies_are_answered_as_by_the_api_server() {
    compare("routingpolicies", 400);
}

#[test]
fn every_keyword_is_answered_as_by_the_api_server() {
    compare("gadgets", 200);
}
